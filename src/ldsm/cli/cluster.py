"""Fits on a Dask cluster: one that runs somewhere, or one of a few processes for the time."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..classifier import LdSMClassifier
from ..datasets import Dataset
from .command import wrong_use
from .estimator import EstimatorOptions
from .screen import Report

FLAG = "--dask"
_SILENT = logging.CRITICAL + 1  # how it ends is for the command to say


def fit_on_cluster(
    address: str,
    params: EstimatorOptions,
    rows: Dataset | None,
    checkpoint: Path | None,
    report: Report,
) -> LdSMClassifier:
    """A classifier whose trees the workers at `address` grow; wrong use if that cannot be."""
    if rows is None or rows.store is None or rows.texts is not None:
        raise wrong_use("DATA must be a store of features: see `ldsm convert`.", FLAG)
    if checkpoint is None:
        raise wrong_use("--checkpoint must name a folder that all workers share.", FLAG)
    from .. import dask  # Dask is there only where its extra was installed

    with _connected(address) as client:
        return dask.fit(client, rows, params, checkpoint, callback=report)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of a cluster: ``local:N`` starts one of N processes, and stops it in the end."""
    from distributed import Client, LocalCluster

    if not address.startswith("local:"):
        with _client(address) as client:
            yield client
        return
    if not re.fullmatch(r"local:[1-9]\d{0,3}", address):
        raise wrong_use(f"must be local:N with N processes. Got {address!r}.", FLAG)
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


def _client(address: str) -> Any:
    from distributed import Client

    from ..dask import ClusterError

    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(_SILENT)
    try:
        return Client(address)
    except (AssertionError, ValueError):  # Dask has one for each mistake
        raise wrong_use(
            f"must be local:N, or as a scheduler tells it, tcp://HOST:PORT or tls://HOST:PORT. Got "
            f"{address!r}.",
            FLAG,
        ) from None
    except (OSError, RuntimeError, TypeError) as error:
        raise ClusterError(
            f"There is no way to the scheduler {address!r} of {FLAG}: {str(error).rstrip('.')}. It "
            "must run; for tls Dask's configuration here must name certificates."
        ) from error
