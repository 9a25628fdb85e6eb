"""
On a Dask cluster
=================

Dask grows each tree as a task on one of its workers. The model is the same, bit for bit, as on one
machine. In this example, the workers are threads of this process. To use a cluster, connect with
``Client("tcp://scheduler:8786")`` and choose a folder that all machines can access.
"""

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from distributed import Client, LocalCluster, get_task_stream

import ldsm.dask
from ldsm import LdSMClassifier, datasets

folder = Path(tempfile.mkdtemp())
for part in ("train", "test"):
    data = datasets.make_xmc("bibtex", scale=0.4, seed=0, part=part)
    datasets.save_store(data, folder / part)
params = {"n_estimators": 12, "random_state": 0}

# %%
# Workers receive paths instead of data, and write each finished tree to a folder.

with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster) as client,
):
    with get_task_stream(client) as tasks:
        clf = ldsm.dask.fit(client, folder / "train", None, params, folder / "trees")
    clf.save(folder / "model.ldsm")
    found = ldsm.dask.evaluate(client, folder / "model.ldsm", folder / "test")

alone = LdSMClassifier(**params).fit(datasets.open_store(folder / "train"))
print("same model:", clf.fingerprint_ == alone.fingerprint_)
print({name: round(value, 3) for name, value in found.items() if name.startswith("precision")})
shutil.rmtree(folder)

# %%
# Each bar shows which worker grew a tree, and when.

trees = [task for task in tasks.data if task["key"].startswith("ldsm-tree")]
workers = sorted({task["worker"] for task in trees})
begin = min(step["start"] for task in trees for step in task["startstops"])

fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
for task in trees:
    place = workers.index(task["worker"])
    for step in task["startstops"]:
        if step["action"] == "compute":
            span = (step["start"] - begin, step["stop"] - step["start"])
            ax.broken_barh([span], (place - 0.3, 0.6), color="#0072B2", edgecolor="white")
ax.set_yticks(range(len(workers)), [f"worker {i + 1}" for i in range(len(workers))])
ax.set(xlabel="seconds since the first tree started", title="Trees grown by each worker")
plt.show()
