"""The registry of the parts of a second stage."""

from __future__ import annotations

from collections.abc import Mapping

from .._matching.feature_index import FeatureIndex
from .._matching.names import NameIndex
from .._matching.part import Part
from .label_vectors import LabelVectors

# Saving, relabelling, updating and inspecting go through the parts of a model and need no other
# list. What a part reads is in `READS`.
PARTS: Mapping[str, type[Part]] = {
    "index": FeatureIndex,
    "sub_index": FeatureIndex,
    "names": NameIndex,
    "ranker": LabelVectors,
    "centroids": LabelVectors,
}
