"""Weights of features from their counts; they equal scikit-learn's, to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs_fast import (
    inplace_csr_row_normalize_l1,
    inplace_csr_row_normalize_l2,
)

from .words import Counts


def idf_of(
    texts_with: NDArray[Any], n_texts: int, dtype: Any, *, smooth: bool = True
) -> NDArray[Any]:
    """The inverse frequency of each feature, from the number of texts with it."""
    frequencies = texts_with.astype(dtype) + np.dtype(dtype).type(smooth)
    idf: NDArray[Any] = np.full_like(frequencies, n_texts + int(smooth))
    idf /= frequencies
    np.log(idf, out=idf)
    idf += 1.0
    return idf


def weighed(counts: Counts, settings: Mapping[str, Any], idf: NDArray[Any] | None) -> Counts:
    """The features of a block's counts, made in place; for a text much faster than scikit-learn."""
    values = counts.data
    if settings["binary"]:
        values[:] = 1
    if settings["sublinear_tf"]:
        np.log(values, values)
        values += 1.0
    if idf is not None:
        values *= idf[counts.indices]
    rescaled(counts, settings)
    return counts


def rescaled(X: Any, settings: Mapping[str, Any]) -> Any:
    """Rows scaled as the settings say, in place."""
    scale = {"l1": inplace_csr_row_normalize_l1, "l2": inplace_csr_row_normalize_l2}
    if settings["norm"] in scale:
        scale[settings["norm"]](X)
    return X
