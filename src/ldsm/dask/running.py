"""Run all work of a block on the workers of a cluster."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from distributed import Client

from .._execution.chosen import running_on
from .._storage.paths import PathLike
from .._trees.checkpoint import prepare_folder
from ..datasets.dataset import StoreLocation
from ..datasets.store import check_same_store
from .executor import DaskExecutor
from .tasks import ClusterError
from .workers import check_client, check_workers, sees_folder, share_hint


@contextmanager
def running_on_workers(
    client: Client, checkpoint_dir: PathLike | None, store: StoreLocation | None = None
) -> Iterator[str]:
    """Fits, updates and predictions of this block run on the workers of a cluster.

    Yields the folder through which they exchange data: `checkpoint_dir`, or a temporary one that
    all workers must see. Raises a ClusterError if a worker cannot use it, or not the `store` of the
    rows.
    """
    check_client(client)
    with _place(checkpoint_dir) as place:
        folder = prepare_folder(place)
        with sees_folder(folder) as shared:
            stored = [] if store is None else [partial(check_same_store, store)]
            try:
                check_workers(client, [*stored, shared])
            except ClusterError as error:
                if checkpoint_dir is None and repr(folder) in str(error):
                    raise ClusterError(f"{error} {share_hint('checkpoint')}") from error
                raise
        kept = (
            ""
            if checkpoint_dir is None
            else f"Finished trees and parts are kept in {folder!r}: the same fit continues from "
            "there, with or without Dask."
        )
        try:
            with running_on(DaskExecutor(client, folder, kept)):
                yield folder
        except OSError as error:
            if isinstance(error, ClusterError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise ClusterError(f"The driver could not write: {error}. {kept}".rstrip()) from error


def _place(folder: PathLike | None) -> AbstractContextManager[PathLike]:
    return tempfile.TemporaryDirectory() if folder is None else nullcontext(folder)
