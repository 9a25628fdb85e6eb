"""
Thresholds
==========

``predict`` returns the labels whose score reaches a threshold. A high threshold gives few labels,
and most of them are right. A low one gives many and misses few. ``fit`` chooses the threshold with
the best F1 per row, without holding out rows. ``tune_threshold`` chooses another one on held-out
rows, such as the best for F1 over all pairs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score, precision_score, recall_score

from ldsm import LdSMClassifier, datasets

train, held_out = datasets.make_xmc("bibtex", scale=0.4, seed=0).split(0.25, seed=0)
test = datasets.make_xmc("bibtex", scale=0.4, seed=0, part="test")
clf = LdSMClassifier(10, n_jobs=2, random_state=0).fit(train)

# %%
# Scores of the second stage are probabilities. F1 usually needs a threshold below 0.5.


def micro_f1():
    return f1_score(test.Y, clf.predict(test.X), average="micro")


print(f"chosen by fit: {clf.threshold_:.2f}, micro F1 on the test rows: {micro_f1():.3f}")
clf.threshold_ = 0.5
print(f"set by hand:   {clf.threshold_:.2f}, micro F1 on the test rows: {micro_f1():.3f}")
clf.tune_threshold(held_out.X, held_out.Y)
print(f"held-out rows: {clf.threshold_:.2f}, micro F1 on the test rows: {micro_f1():.3f}")

# %%
# The curves show the test rows at every threshold. The threshold was tuned without these rows.

scores = clf.predict_proba(test.X)
thresholds = np.linspace(0.02, 0.98, 49)
curves = {"precision": [], "recall": [], "F1": []}
for threshold in thresholds:
    sets = (scores >= threshold).astype(np.int8)
    for name, metric in zip(curves, (precision_score, recall_score, f1_score), strict=True):
        curves[name].append(metric(test.Y, sets, average="micro", zero_division=1))

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, values in curves.items():
    ax.plot(thresholds, values, label=name, linewidth=2.5 if name == "F1" else 1.5)
ax.axvline(clf.threshold_, color="grey", linestyle=":")
ax.text(clf.threshold_ + 0.01, 0.03, f"tuned: {clf.threshold_:.2f}", color="grey")
ax.set(xlabel="threshold", ylabel="micro average", xlim=(0, 1), ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
