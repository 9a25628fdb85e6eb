"""The registry of the parts of a second stage: matchers and scorers."""

from __future__ import annotations

from collections.abc import Mapping

from .._matching.matchers import MATCHERS
from .._matching.part import Part, Scorer
from .centroids import Centroids
from .ranker import Ranker

SCORERS: Mapping[str, type[Scorer]] = {"ranker": Ranker, "centroids": Centroids}
# Training, saving, relabelling, updating and inspecting go through the parts of a model and need no
# other list. What a part reads is in `READS`, what its scores are used for in `SIGNALS`.
PARTS: Mapping[str, type[Part]] = {**MATCHERS, **SCORERS}
