"""Connecting to a cluster by its address, or to one that is started for the occasion."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

from .tasks import ClusterError

_SILENT = logging.CRITICAL + 1  # how it ends is for the caller to say


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the cluster at an address; ``local:N`` starts one of N processes, then stops it.

    Raises
    ------
    ValueError
        If `address` cannot be an address.
    ClusterError
        If no scheduler answers there.
    """
    if not address.startswith("local:"):
        with _client(address) as client:
            yield client
        return
    if not re.fullmatch(r"local:[1-9]\d{0,3}", address):
        raise ValueError(f"must be local:N with N processes. Got {address!r}.")
    with (
        LocalCluster(
            n_workers=int(address.removeprefix("local:")),
            threads_per_worker=1,
            processes=True,
            memory_limit=None,  # Dask would count pages of the store, and kill whoever reads it
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
    except (AssertionError, ValueError):  # Dask has one for each mistake
        raise ValueError(
            "must be local:N, or the address that a scheduler prints, tcp://HOST:PORT or "
            f"tls://HOST:PORT. Got {address!r}."
        ) from None
    except (OSError, RuntimeError, TypeError) as error:
        raise ClusterError(
            f"The scheduler {address!r} cannot be reached: {str(error).rstrip('.')}. It must be "
            "running; for tls, Dask's configuration here must name certificates."
        ) from error
