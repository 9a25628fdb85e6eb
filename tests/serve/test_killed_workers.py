"""A worker is killed under load: the service continues, and no acknowledged correction is lost."""

import http.client
import itertools
import os
import signal

import pytest

from ldsm.serve.corrections import CorrectionReader
from patience import meanwhile, wait_until
from services import service

TAGS = "/v1/projects/tags"


@pytest.mark.linux
@pytest.mark.long
def test_no_correction_is_lost(own_model):
    kept, wrong, number = [], [], itertools.count()

    def ask():
        text = f"cod and herring {next(number)}"
        try:
            found = served.form(f"{TAGS}/suggest", text=text)
            body = [{"text": text, "subjects": [{"label": "fish"}]}]
            learned = served.post(f"{TAGS}/learn", body)
        except (OSError, http.client.HTTPException):
            return  # of the worker that was killed
        if found.status != 200 or learned.status != 204:
            wrong.append((found, learned))
        else:
            kept.append(text)

    with service(own_model, "--workers", 2, "--port", 0) as served, meanwhile(ask, 4):
        for _ in range(10):
            before, n_kept = served.workers(), len(kept)
            os.kill(before[0], signal.SIGKILL)
            # The other one keeps answering, and the one that died is replaced.
            wait_until(lambda n=n_kept: len(kept) > n + 8)
            wait_until(lambda old=before: set(served.workers()) - set(old))
        n_kept = len(kept)
        wait_until(lambda: len(kept) > n_kept + 8)
    assert wrong == []
    reader = CorrectionReader(own_model.with_name("tags.corrections.jsonl"))
    assert set(kept) <= {text for text, _ in reader.read()}
