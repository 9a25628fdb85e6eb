"""A worker is killed under load: the service goes on, and no acknowledged correction is lost."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from itertools import pairwise

import pytest

from ldsm.serve.corrections import CorrectionReader
from services import service

TAGS = "/v1/projects/tags"


@pytest.mark.linux
@pytest.mark.long
def test_no_correction_is_lost(own_model):
    kept, wrong, answered, stop = [], [], [], threading.Event()

    def ask(number):
        i = 0
        while not stop.is_set():
            i += 1
            text = f"cod and herring {number} {i}"
            try:
                found = served.form(f"{TAGS}/suggest", text=text)
                body = [{"text": text, "subjects": [{"label": "fish"}]}]
                learned = served.post(f"{TAGS}/learn", body)
            except (OSError, http.client.HTTPException):
                continue  # of the worker that was killed
            if found.status != 200 or learned.status != 204:
                wrong.append((found, learned))
                continue
            kept.append(text)
            answered.append(time.monotonic())

    with service(own_model, "--workers", 2, "--port", 0) as served:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            time.sleep(0.5)
            before = served.workers()
            os.kill(before[0], signal.SIGKILL)
            end = time.monotonic() + 20
            while time.monotonic() < end and not set(served.workers()) - set(before):
                time.sleep(0.05)
            assert set(served.workers()) - set(before)
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == [] and len(kept) > 20
    assert max(later - earlier for earlier, later in pairwise(sorted(answered))) < 5
    reader = CorrectionReader(own_model.with_name("tags.corrections.jsonl"))
    assert set(kept) <= {text for text, _ in reader.read()}
