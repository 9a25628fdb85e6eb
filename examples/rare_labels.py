"""
Rare labels
===========

Most tags are rare, but a model that maximises hits prefers the frequent ones. ``tail`` moves rare
tags up when you predict. The model and its scores stay the same.
"""

from bisect import bisect_right
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from ldsm import LdSMClassifier, TextTagger, datasets, metrics

train, test = datasets.load_stdlib_docs(min_count=3).split(0.2, seed=0)
tagger = TextTagger(LdSMClassifier(10, n_jobs=2, random_state=0)).fit(train)
counts = Counter(tag for tags in train.labels for tag in tags)
middle, most = np.median(list(counts.values())), max(counts.values())
print(f"{len(counts)} tags; documents per tag: median {middle:.0f}, maximum {most}")

# %%
# Group the tags by their number of training documents. In each group, how often is a true tag of a
# held-out document among the five best?

starts = [1, 5, 10, 20, 50]
groups = ["1 to 4", "5 to 9", "10 to 19", "20 to 49", "50 and more"]
found = {}
for tail in (0, 0.5, 1):
    tags, _ = tagger.predict_topk(test.texts, k=5, tail=tail)
    hits, true = np.zeros(len(groups)), np.zeros(len(groups))
    for given, wanted in zip(tags.tolist(), test.labels, strict=True):
        for tag in wanted:
            group = bisect_right(starts, counts[tag]) - 1
            true[group] += 1
            hits[group] += tag in given
    found[tail] = hits / true
    print(f"tail={tail}: P@5 {100 * metrics.precision_at_k(test.labels, tags, k=5):.1f} %")

# %%
# With a larger ``tail``, the model finds more of the rare tags and fewer of the frequent ones.

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for (tail, share), marker in zip(found.items(), "os^", strict=True):
    ax.plot(groups, share, marker=marker, label=f"tail={tail}")
ax.set(xlabel="training documents per tag", ylabel="share found among the five best", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
