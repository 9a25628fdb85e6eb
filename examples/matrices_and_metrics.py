"""
Matrices and metrics
====================

Train on sparse matrices and compute the metrics of extreme classification. The example shows what
the second stage adds to the trees, and what happens if you favour rare labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from ldsm import LdSMClassifier, datasets, metrics

train = datasets.make_xmc("eurlex", scale=0.1, seed=0)
test = datasets.make_xmc("eurlex", scale=0.1, seed=0, part="test")
print(f"X {train.X.shape}, Y {train.Y.shape}, {train.Y.nnz / len(train):.1f} labels per row")

# %%
# Trees alone score a label by its share of the rows in a leaf. In the second stage, linear
# classifiers rescore the labels that the trees find. ``tail=1`` changes the order of the
# predictions, but not their scores.

trees = LdSMClassifier(10, rerank=None, n_jobs=2, random_state=0).fit(train)
both = LdSMClassifier(10, rerank="linear", n_jobs=2, random_state=0).fit(train)
predicted = {
    "trees alone": trees.predict_topk(test.X, k=5),
    "with a second stage": both.predict_topk(test.X, k=5),
    "second stage, tail=1": both.predict_topk(test.X, k=5, tail=1),
}
reports = {
    name: metrics.ranking_report(test.Y, best, [1, 3, 5], y_train=train.Y)
    for name, best in predicted.items()
}

# %%
# P@k counts hits. nDCG@k gives more weight to hits at the top, and PSP@k to hits on rare labels.

shown = {"P": "precision", "nDCG": "ndcg", "PSP": "psp"}
bars = [(f"{short}@{k}", f"{metric}@{k}") for short, metric in shown.items() for k in (1, 3, 5)]
for name, report in reports.items():
    print(f"{name:19}", "  ".join(f"{label} {100 * report[key]:.1f}" for label, key in bars))

fig, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
places = np.arange(len(bars))
for shift, (name, report) in zip((-0.27, 0, 0.27), reports.items(), strict=True):
    ax.bar(places + shift, [100 * report[key] for _, key in bars], 0.25, label=name)
ax.set_xticks(places, [label for label, _ in bars])
ax.set(ylabel="percent", ylim=(0, 100))
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()
