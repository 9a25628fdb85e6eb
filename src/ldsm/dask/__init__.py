"""Training and prediction on a Dask cluster.

A fit has tasks for trees, for chunks of rows and for ranges of features and of labels. Workers
receive paths, not arrays: of a store (`ldsm.datasets.save_store`), of a model file and of the
folder through which they exchange data. The driver and all workers must see the same files at these
paths, which is checked before work starts. Finished work is on disk, so it survives the loss of a
worker or of the whole cluster. See ``docs/scaling.md``.

    client = distributed.Client("tcp://scheduler:8786")
    clf = ldsm.dask.fit(client, "train_store", checkpoint_dir="/shared/trees")
    clf.save("/shared/model.ldsm")
    ldsm.dask.evaluate(client, "/shared/model.ldsm", "test_store")
"""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        'ldsm.dask needs Dask, which is not installed: pip install "ldsm[dask]".'
    ) from error

from .fitting import fit
from .prediction import evaluate, predict
from .tasks import ClusterError

__all__ = ["ClusterError", "evaluate", "fit", "predict"]
