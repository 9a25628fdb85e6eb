"""
Tags from a CSV file
====================

Train a model on a table of texts and tags, and use it to tag new texts. The table contains the
docstrings of Python's standard library. Their tags are the module, the kind of object and the words
of its name.
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
# Read the table and hold out a fifth of the rows to measure how well the model tags new texts.

data = datasets.load_table(table, text="text", labels="labels", separator=";")
train, test = data.split(0.2, seed=0)
tagger = TextTagger(LdSMClassifier(n_estimators=10, n_jobs=2, random_state=0)).fit(train)

for question in ("parse a date and time", "wait until a thread ends"):
    (answer,) = tagger.predict([question], k=3)
    print(f"{question}: {', '.join(f'{tag} {score:.2f}' for tag, score in answer)}")

# %%
# How many of the k best tags are right? Texts have few tags, so even a perfect model is sometimes
# wrong if it must predict five. The baseline predicts the most frequent tags for every text.

ks = range(1, 6)
found = Evaluation(tagger, test).scores(ks)
frequent = train.Y.sum(axis=0).argsort()[::-1]
baseline = [test.Y[:, frequent[:k]].sum() / k / len(test) for k in ks]

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.plot(ks, [found.best_precision[k] for k in ks], ":", color="grey", label="best possible")
ax.plot(ks, [found.ranking[f"precision@{k}"] for k in ks], "o-", label="tagger")
ax.plot(ks, baseline, "s--", label="baseline: most frequent tags")
ax.set(xlabel="tags per text (k)", ylabel="share of right tags", ylim=(0, 1), xticks=ks)
ax.legend(frameon=False)
plt.show()
shutil.rmtree(folder)
