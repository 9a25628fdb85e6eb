"""Metrics of extreme multi-label classification, as fractions in [0, 1].

**True labels** (`y_true`, `y_train`): a 0/1 matrix with one column per label, sparse or dense; or a
list of label-id lists, one per row. A list of lists always means label ids.

**Predictions** (`y_pred` of the ``*_at_k`` functions), one of:

- a sparse matrix of scores. Labels that are not stored are not predicted; stored values, including
  zero and negative ones, are ordered by value.
- a dense array of *floating* scores. Every label counts, even at 0; ``-inf`` means "not predicted".
- an array of *integer* label ids, best first, -1 where a prediction is missing.
- a tuple ``(labels, scores)`` as returned by ``predict_topk``. The order of the columns counts; the
  scores are only checked.

So the dtype of a dense array decides: integers are label ids, floats are scores. Ties go to the
lower label id. If a row has fewer than k predictions, the missing ones count as misses. Rows
without true labels count as 0 in precision and are left out of nDCG and recall; if no row has a
label, all metrics except precision are nan. Input is never modified.
"""

from .propensities import propensities
from .ranking import (
    coverage_at_k,
    f1_score,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    r_precision_at_k,
    ranking_report,
    recall_at_k,
)
from .scorer import topk_scorer

__all__ = [
    "coverage_at_k",
    "f1_score",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "r_precision_at_k",
    "ranking_report",
    "recall_at_k",
    "topk_scorer",
]
