"""
Incremental learning
====================

New documents arrive with a tag that the model has never seen. ``partial_fit`` learns them in a
fraction of the training time.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from ldsm import LdSMClassifier, TextTagger, datasets

NEW = "module:decimal"
data, test = datasets.load_stdlib_docs(min_count=20).split(0.2, seed=0)
has_new = np.array([NEW in tags for tags in data.labels])
held_out = [text for text, tags in zip(test.texts, test.labels, strict=True) if NEW in tags]

classifier = LdSMClassifier(n_estimators=10, n_jobs=2, random_state=0)
start = time.perf_counter()
tagger = TextTagger(classifier).fit(data.select(np.flatnonzero(~has_new)))
print(f"{sum(~has_new)} documents without {NEW}: {time.perf_counter() - start:.2f} s to fit")

# %%
# Documents with the new tag arrive in batches. After each batch, we measure how many held-out
# documents with this tag have it among their five best tags.


def share_found(model):
    return np.mean([NEW in dict(best) for best in model.predict(held_out, k=5)])


seen, found = [0], [share_found(tagger)]
for batch in np.array_split(np.flatnonzero(has_new), 8):
    start = time.perf_counter()
    tagger.partial_fit(data.select(batch))
    print(f"{len(batch)} more: {time.perf_counter() - start:.2f} s to learn")
    seen.append(seen[-1] + len(batch))
    found.append(share_found(tagger))

# %%
# For comparison, the dotted line shows a model trained on all documents.

retrained = share_found(TextTagger(classifier).fit(data))
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.axhline(retrained, color="grey", linestyle=":", label="retrained on all documents")
ax.plot(seen, found, "o-", label="updated batch by batch")
ax.set(xlabel=f"documents with {NEW} learned", ylabel="share found", ylim=(0, 1.02))
ax.legend(frameon=False, loc="lower right")
plt.show()
