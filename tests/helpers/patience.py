"""Processes that always end, and waiting that does not depend on how busy the machine is."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Seconds after which something is stuck, however busy the machine.
PATIENCE = 600


def wait_until(condition: Callable[[], Any], what: str = "it did not happen") -> Any:
    """What the condition gives, once that is true."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.01)
    return found


@contextmanager
def started(command: Any, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that ends with the block, and all processes that it has started with it."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def run(
    command: Any,
    *,
    input: Any = None,
    text: bool = True,
    seconds: float = PATIENCE,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Like `subprocess.run` with what it writes, but nothing is left of it if it fails."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started(command, text=text, **pipes, **options) as process:
        out, errors = process.communicate(input, timeout=seconds)
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


@contextmanager
def meanwhile(work: Callable[[], Any], n_threads: int) -> Iterator[None]:
    """Threads that repeat the work until the block ends, however it ends."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=repeat) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def little_work(seconds: float) -> Iterator[None]:
    """Raise an error if the block takes more time of the processor, whatever the clock says."""
    before = time.process_time()
    yield
    used = time.process_time() - before
    assert used < seconds, f"{used:.1f} s of the processor"


# -- what is left ------------------------------------------------------------------------------

_MARK = "LDSM_TESTS"
_GRACE = 60  # seconds in which processes end whose parent has just ended
# Processes that Python's libraries keep for this one, and end themselves.
_KEPT = (b"resource_tracker", b"forkserver", b"popen_loky")


def mark_processes() -> None:
    """From here on, whatever this process starts can be distinguished from other processes."""
    os.environ[_MARK] = str(os.getpid())


def left_processes() -> dict[int, str]:
    """The commands of processes that were started here and do not end; Linux only."""
    end = time.monotonic() + _GRACE
    while (left := _running_processes()) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def _running_processes() -> dict[int, str]:
    ours, mark = os.getpid(), f"{_MARK}={os.getpid()}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            number, command = int(folder.name), (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            marked = mark in (folder / "environ").read_bytes().split(b"\0")
            if number == ours or not command or not (marked or parent == ours):
                continue
            if parent == ours and any(name in command for name in _KEPT):
                continue
            found[number] = command.replace(b"\0", b" ").decode(errors="replace")
    return found
