"""The same data and parameters give the same models and answers as before."""

import json
from pathlib import Path

from reference_models import matrices, taggers

GOLDEN = Path(__file__).parents[1] / "golden" / "answers.json"


def test_reference_models_are_unchanged():
    models = {name: list(result) for name, result in (*matrices(), *taggers())}
    assert models == json.loads(GOLDEN.read_text())
