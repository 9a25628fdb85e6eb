"""Shared fixtures. Tests on benchmark data run where LDSM_DATA names its folder.

Under `make sanitize`, which sets LDSM_SANITIZER, tests marked `not_under` are skipped.
"""

import os
import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from patience import left_processes, mark_processes

# How long a single example takes says more of the machine than of the code.
settings.register_profile("ldsm", deadline=None)
settings.load_profile("ldsm")

# Without a browser to try it in, there is nothing to collect there.
collect_ignore = [] if find_spec("selenium") else ["browser"]

# A shell starts what runs in its background with Ctrl-C ignored, and children inherit that: tests
# that send it would wait for ever. A handler of our own is not passed on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_process_left():
    """Whatever the tests start, they end: the last one fails if a process is left."""
    mark_processes()
    yield
    left = left_processes()
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert not left


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks():
    """Files of tests need not survive a power cut, so nothing is flushed to the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def benchmark_data():
    folder = os.environ.get("LDSM_DATA")
    if not folder:
        pytest.skip("LDSM_DATA is not set: no benchmark data at hand")
    return Path(folder)


def pytest_report_header():
    if name := os.environ.get("LDSM_SANITIZER"):
        from ldsm import _core

        return f"{name} sanitizer, core: {_core.__file__}"
    return None


def pytest_collection_modifyitems(items):
    name = os.environ.get("LDSM_SANITIZER")
    no_proc = pytest.mark.skip(reason="needs /proc, which only Linux has")
    for item in items:
        if item.get_closest_marker("linux") and not Path("/proc/self/status").exists():
            item.add_marker(no_proc)
        for mark in item.iter_markers("not_under"):
            if name in mark.args:
                item.add_marker(pytest.mark.skip(reason=mark.kwargs["reason"]))
