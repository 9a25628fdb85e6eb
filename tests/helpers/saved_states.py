"""Fitted objects as header entries and arrays of a file, to be damaged by tests."""

from typing import Any

from ldsm._ranking.saved_form import stage_to_state
from ldsm.text.fitted import fitted_text
from ldsm.text.saved_form import tagger_to_state


def tagger_state(tagger: Any) -> Any:
    return tagger_to_state(tagger, fitted_text(tagger))


def stage_state(stage: Any) -> Any:
    return stage_to_state(stage, stage.label_counts)
