"""Which host names a service accepts.

A web page can point its own host name to this machine (DNS rebinding) and then call the service as
if it were a page of the service. The `Host` header, which has that name, reveals it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import ip_address

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:\[([\da-fA-F:.]+)\]|([^\s:\[\]/@?#]+))(?::\d*)?")


def hosts_of(listener: socket.socket, named: Sequence[str]) -> tuple[str, ...]:
    """The hosts that a service on this socket accepts; empty if it accepts any."""
    if not named and not _is_loopback(listener.getsockname()[0]):
        return ()
    return tuple(dict.fromkeys([*LOCAL_NAMES, *map(str.lower, named)]))


def is_allowed(given: Sequence[str], server: Sequence[object] | None, hosts: Sequence[str]) -> bool:
    """Whether a request is for one of these hosts, or for the address that received it.

    Parameters
    ----------
    given : list of str
        The `Host` headers of the request; there must be one.
    server : (address, port), optional
        The address that received the request.
    hosts : list of str
        Names in lower case, without a port.
    """
    found = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        return False
    name = (found[1] or found[2]).lower()
    return name in hosts or (server is not None and name == server[0])


def is_host(text: str) -> bool:
    """Whether it is a host name or an address, without a port."""
    found = _HOST.fullmatch(f"[{text}]" if text.count(":") > 1 else text)
    return found is not None and (found[1] or found[2]) == text


def _is_loopback(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback
