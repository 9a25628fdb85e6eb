"""
Explanations
============

Why does a text get a tag? The log-odds of a score are a sum. The trees contribute to it, and so do
the linear classifier, the index of words and tags, the tag's frequency and its name.
"""

import matplotlib.pyplot as plt

from ldsm import LdSMClassifier, TextTagger, datasets

# %%
# The texts are docstrings of Python's standard library. The tag is the module.

texts, tags = [], []
corpus = datasets.load_stdlib_docs(min_count=20)
for text, all_tags in zip(corpus.texts, corpus.labels, strict=True):
    modules = [tag.removeprefix("module:") for tag in all_tags if tag.startswith("module:")]
    if modules:
        texts.append(text)
        tags.append(modules)
tagger = TextTagger(LdSMClassifier(n_estimators=10, n_jobs=2, random_state=0)).fit(texts, tags)

question = "Connect to a mail server and send the message"
explained = tagger.explain(question, max_words=8, max_tags=3)
for tag in explained.scores:
    print(f"{tag.score:.2f}", tag)

# %%
# The upper row shows what each stage adds to the log-odds, for the three best tags. The lower row
# shows which words count for or against each tag in its linear classifier.

fig, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained", sharex="row")
for (above, below), tag in zip(axes.T, explained.scores, strict=True):
    for ax, parts in ((above, list(tag.shares.items())), (below, tag.words)):
        names, values = zip(*reversed(parts), strict=True)
        ax.barh(names, values, color=["#D55E00" if value < 0 else "#0072B2" for value in values])
        ax.axvline(0, color="grey", linewidth=0.8)
    above.set(title=f"{tag.tag}: {tag.score:.2f}", xlabel="added to the log-odds")
    below.set(xlabel="added to the margin")
plt.show()
