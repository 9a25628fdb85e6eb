"""uvicorn's HTTP protocol with limits on the resources of a connection.

uvicorn itself accepts request heads of any size, queues any number of pipelined requests, and keeps
unread answers forever. Here a connection has

- `HEAD_SECONDS` for the head of a request, which may have `MAX_HEAD` bytes and `MAX_HEADERS`
  fields (431 otherwise);
- `MAX_QUEUED` requests in its queue; beyond that it is closed once these are answered;
- the time limit of a request for reading an answer. If all unread answers together exceed
  `MAX_UNREAD` bytes, the connection that has been slow for longest is closed.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..._execution.memory import return_free_memory
from ..settings import TIMEOUT_STATE, Settings

HEAD_SECONDS = 10.0
MAX_HEAD = 65_536
MAX_HEADERS = 100
MAX_QUEUED = 8
MAX_UNREAD = 64_000_000
_LINGER_SECONDS = 2.0  # time for a refused client to finish sending and read the answer
_MANY_BYTES = 16_000_000
_RETURN_SECONDS = 1.0  # by then, the requests of a closed connection have ended
_AT_ONCE = struct.pack("ii", 1, 0)  # close without waiting for the peer
_PIECE = 16_384  # bytes parsed at a time, so that limits take effect early

# Members of uvicorn's class that this module depends on.
_METHODS = [
    "connection_made",
    "connection_lost",
    "data_received",
    "send_400_response",
    "pause_writing",
    "resume_writing",
    "on_message_begin",
    "on_url",
    "on_header",
    "on_headers_complete",
    "on_body",
]
_ATTRIBUTES = ["loop", "transport", "flow", "cycle", "pipeline", "app_state"]


def check_uvicorn(protocol: type = HttpToolsProtocol) -> None:
    """Raise an ImportError if this uvicorn lacks members that the limits depend on."""
    missing = [name for name in _METHODS if not callable(getattr(protocol, name, None))]
    missing += [name for name in _ATTRIBUTES if name not in protocol.__init__.__code__.co_names]  # type: ignore[misc]
    if missing:
        raise ImportError(
            "ldsm.serve cannot limit the connections of this version of uvicorn, whose "
            f"HttpToolsProtocol has no {', '.join(missing)}. Install another version of uvicorn."
        )


check_uvicorn()


class _Stop(Exception):
    """Stops parsing the data of a connection."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection with limits."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._n_head = self._n_headers = 0  # bytes and fields of the current head
        self._n_unparsed = 0  # bytes that the parser holds or skips
        self._n_bytes = 0  # received, or waiting for a slow reader
        self._in_body = self._is_refused = self._is_ending = False
        self._is_head_too_large = False
        self._last_cycle: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    # Time

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        _count_ended(self.loop, self._n_bytes)
        if self._timer is not None:
            self._timer.cancel()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)
        self.pipeline.clear()  # the client has disconnected

    def _look(self) -> None:
        """Close a connection on which no request has started since the last check."""
        cycle = self.cycle
        if self.transport.is_closing():
            # A slowly read answer has its own timer; this covers its last bytes.
            if self._is_ending and self._reading_timer is None:
                self.cut_off()
                return
            self._is_ending = True
        elif cycle is None or (cycle is self._last_cycle and cycle.response_complete):
            self.transport.close()
        self._last_cycle = cycle
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look)

    # Answers that are not read

    def pause_writing(self) -> None:
        super().pause_writing()
        seconds = self.app_state.get(TIMEOUT_STATE, Settings.timeout)
        self._reading_timer = self.loop.call_later(seconds, self.cut_off)
        slow_readers[self] = None
        unread = {one: one.transport.get_write_buffer_size() for one in slow_readers}
        total = sum(unread.values())
        self._n_bytes += unread[self]
        for one, n_bytes in unread.items():
            if total <= MAX_UNREAD or one is self:  # a single large answer is not refused
                break
            one.cut_off()
            total -= n_bytes

    def resume_writing(self) -> None:
        self._stop_waiting_for_reader()
        super().resume_writing()

    def cut_off(self) -> None:
        """Drop the connection and all unsent data, including the system's buffers."""
        self._stop_waiting_for_reader()
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _stop_waiting_for_reader(self) -> None:
        slow_readers.pop(self, None)
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    # Heads and pipelined requests

    def data_received(self, data: bytes) -> None:
        self._n_bytes += len(data)
        for start in range(0, len(data), _PIECE):
            if self._is_refused or self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            self._n_unparsed += len(piece)
            super().data_received(piece)
            if self._n_head + self._n_unparsed > MAX_HEAD and not self._is_refused:
                self._is_head_too_large = True
                self.send_400_response("")

    def on_message_begin(self) -> None:
        self._n_head = self._n_headers = self._n_unparsed = 0
        self._in_body = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._n_headers += 1
        self._count(len(name) + len(value) + 4)  # with colon, space and line end
        if not self._in_body:  # trailers are not part of the checked head
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._n_unparsed = 0
        if len(self.pipeline) >= MAX_QUEUED:
            raise _Stop
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._n_unparsed = 0
        super().on_body(body)

    def _count(self, n_bytes: int) -> None:
        self._n_unparsed = 0
        self._n_head += n_bytes
        if self._n_head > MAX_HEAD or self._n_headers > MAX_HEADERS:
            self._is_head_too_large = True
            raise _Stop

    def send_400_response(self, msg: str) -> None:
        """Refuse the received data; uvicorn calls this when the parser stops."""
        self._is_refused = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not self._in_body:
                # Answers must be in request order: finish the earlier ones first.
                cycle.keep_alive = False
                return
            if self.pipeline or cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True  # its body will never be complete
            cycle.message_event.set()
        self.transport.write(_TOO_LARGE if self._is_head_too_large else _BAD)
        self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)


def _count_ended(loop: asyncio.AbstractEventLoop, n_bytes: int) -> None:
    """Return memory to the system after connections with much data."""
    global _n_ended
    _n_ended += n_bytes
    if _n_ended > _MANY_BYTES:
        _n_ended = 0
        loop.call_later(_RETURN_SECONDS, return_free_memory)


def _refusal(status: str, text: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n"
    return f"{head}content-length: {len(text)}\r\nconnection: close\r\n\r\n{text}".encode()


_BAD = _refusal("400 Bad Request", "The request is not valid HTTP.")
_TOO_LARGE = _refusal(
    "431 Request Header Fields Too Large",
    f"The head of a request may have at most {MAX_HEAD:,} bytes and {MAX_HEADERS} fields.",
)
_n_ended = 0  # bytes of closed connections
# Connections with unread answers, the slowest first.
slow_readers: dict[LimitedProtocol, None] = {}
