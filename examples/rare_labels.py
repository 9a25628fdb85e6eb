"""
Rare labels
===========

Most labels are rare, and a model that is judged by its hits alone learns to leave them out.
``tail`` moves rare labels up when predictions are ordered: no new fit, and the scores stay.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from ldsm import LdSMClassifier, datasets, metrics

train = datasets.make_xmc("eurlex", scale=0.1, seed=0)
test = datasets.make_xmc("eurlex", scale=0.1, seed=0, part="test")
clf = LdSMClassifier(10, n_jobs=2, random_state=0).fit(train)
counts = clf.label_counts_
print(f"training rows of a label: {np.median(counts):.0f} in the middle, {counts.max()} at most")

# %%
# Labels in groups by their number of training rows: how many of the test rows that have such a
# label get it among their five best?

edges = [1, 5, 10, 20, 50, counts.max() + 1]
found = {}
for tail in (0, 0.5, 1):
    labels, _ = clf.predict_topk(test.X, k=5, tail=tail)
    ones = np.ones(labels.size, dtype=np.int8)
    given = sp.csr_array((ones, labels.ravel(), np.arange(0, labels.size + 1, 5)), test.Y.shape)
    hits, true = given.multiply(test.Y).sum(axis=0), test.Y.sum(axis=0)
    groups = [(counts >= low) & (counts < high) for low, high in pairwise(edges)]
    found[tail] = [hits[group].sum() / true[group].sum() for group in groups]

    precision = metrics.precision_at_k(test.Y, labels, k=5)
    psp = metrics.psp_at_k(test.Y, labels, k=5, propensities=metrics.propensities(train.Y))
    print(f"tail={tail}: P@5 {100 * precision:.1f} %, PSP@5 {100 * psp:.1f} %")

# %%
# The larger ``tail`` is, the more often labels with few rows are found, and frequent ones less.

names = [f"{low} to {high - 1}" for low, high in pairwise(edges)]
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for (tail, recall), marker in zip(found.items(), "os^", strict=True):
    ax.plot(names, recall, marker=marker, label=f"tail={tail}")
ax.set(xlabel="training rows of the label", ylabel="share found among the best five", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
