"""What users do to a loaded model: let it learn, rename labels, drop some."""

from typing import Any

import numpy as np
import scipy.sparse as sp

import ldsm

# Files that lack what new rows are added to, or claim more rows than there can be.
CANNOT_LEARN = "The model cannot learn"
TEXTS = ["Cod and herring, pêche!", "a" * 60, "", "uusi cod", "uusi herring"]


def change(model: ldsm.LdSMClassifier | ldsm.TextTagger) -> None:
    """Let a model learn, if it can, rename a label and drop another."""
    try:
        learn(model)
    except ValueError as error:
        if not str(error).startswith(CANNOT_LEARN):
            raise
    labels = model.classes_.tolist()
    kind = type(labels[-1])
    model.rename_labels({labels[-1]: "renamed" if kind is str else kind(labels[-1] + 1)})
    if len(labels) > 1:
        model.drop_labels(labels[:1])


def learn(model: ldsm.LdSMClassifier | ldsm.TextTagger) -> None:
    first, last = model.classes_[[0, -1]].tolist()
    if isinstance(model, ldsm.TextTagger):
        model.partial_fit(TEXTS, [[first], [last], [], ["uudet"], ["uudet"]])
    else:
        rows = sp.csr_array((2, model.n_features_in_), dtype=np.float32)
        model.partial_fit(rows, [[first], [last]], **dense(model, 2))


def dense(model: ldsm.LdSMClassifier, n_rows: int) -> dict[str, Any]:
    """Embeddings of some rows, if the model reads them."""
    width = model.model_.layout.dense
    return {"embeddings": np.ones((n_rows, width), np.float32)} if width else {}
