"""
Tags from a CSV file
====================

A table of texts and tags becomes a model that tags new texts. The table here holds the docstrings
of Python's standard library; their tags are the module, the kind of object and words of its name.
"""

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.evaluation import Evaluation

folder = Path(tempfile.mkdtemp())
table = folder / "docstrings.csv"
datasets.save_table(datasets.load_stdlib_docs(min_count=20), table, separator=";")
print(table.read_text(encoding="utf-8")[:300], "...")

# %%
# Read it, and hold out a fifth to see how well new texts will be tagged.

data = datasets.load_table(table, text="text", labels="labels", separator=";")
train, test = data.split(0.2, seed=0)
tagger = TextTagger(LdSMClassifier(n_estimators=10, n_jobs=2, random_state=0)).fit(train)

for question in ("parse a date and time", "wait until a thread ends"):
    (answer,) = tagger.predict([question], k=3)
    print(f"{question}: {', '.join(f'{tag} {score:.2f}' for tag, score in answer)}")

# %%
# Of the k best tags, how many are right? Texts have few tags, so even a model that is always right
# gives some wrong ones if it must give five. The most frequent tags, the same for every text, show
# how much there is to be learned.

ks = range(1, 6)
found = Evaluation(tagger, test).scores(ks)
frequent = train.Y.sum(axis=0).argsort()[::-1]
baseline = [test.Y[:, frequent[:k]].sum() / k / len(test) for k in ks]

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.plot(ks, [found.best_precision[k] for k in ks], ":", color="grey", label="best possible")
ax.plot(ks, [found.ranking[f"precision@{k}"] for k in ks], "o-", label="tagger")
ax.plot(ks, baseline, "s--", label="most frequent tags")
ax.set(xlabel="tags per text (k)", ylabel="share of them that is right", ylim=(0, 1), xticks=ks)
ax.legend(frameon=False)
plt.show()
shutil.rmtree(folder)
