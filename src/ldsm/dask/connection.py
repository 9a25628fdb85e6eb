"""Connect to a cluster by its address, or start a local one."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

import dask

from .tasks import ClusterError

_SILENT = logging.CRITICAL + 1  # the caller reports how it ends


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the cluster at `address`; ``local:N`` starts N processes and stops them at exit.

    Raises a ValueError if the address is invalid, a ClusterError if no scheduler answers.
    """
    if not address.startswith("local:"):
        with _client(address) as client:
            yield client
        return
    if not re.fullmatch(r"local:[1-9]\d{0,3}", address):
        raise ValueError(f"must be local:N with N processes. Got {address!r}.")
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),  # 5 % of workers' time
        LocalCluster(
            n_workers=int(address.removeprefix("local:")),
            threads_per_worker=1,
            processes=True,
            memory_limit=None,  # Dask would count mapped pages of the store and kill workers
            dashboard_address=":0",
            silence_logs=_SILENT,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _client(address: str) -> Client:
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(_SILENT)
    try:
        return Client(address)
    except (AssertionError, ValueError):  # Dask raises either, depending on the mistake
        raise ValueError(
            "must be local:N or the address of a scheduler, tcp://HOST:PORT or "
            f"tls://HOST:PORT. Got {address!r}."
        ) from None
    except (OSError, RuntimeError, TypeError) as error:
        raise ClusterError(
            f"Cannot connect to the scheduler {address!r}: {str(error).rstrip('.')}. Check that it "
            "is running; for tls, Dask's configuration on this machine must name the certificates."
        ) from error
