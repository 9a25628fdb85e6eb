"""The option --dask: where a command runs its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ...datasets.dataset import StoreLocation
from ..command import wrong_use

DASK = "--dask"
DaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Dask cluster: tcp://HOST:PORT, or local:N for N processes.",
    ),
]


@contextmanager
def on_cluster(
    address: str | None, folder: Path | None = None, store: StoreLocation | None = None
) -> Iterator[Path | str | None]:
    """Run the work of this block on the cluster at `address`; None: on this machine.

    Yields the folder for checkpoints: the given one, or a temporary one on a cluster. The workers
    exchange data through it. The rows may be in a `store`.
    """
    if address is None:
        yield folder
        return
    from ...dask.connection import connected  # an optional extra
    from ...dask.running import running_on_workers

    with ExitStack() as stack:
        try:
            client = stack.enter_context(connected(address))
        except ValueError as error:
            raise wrong_use(str(error), DASK) from None
        yield stack.enter_context(running_on_workers(client, folder, store))
