"""The tests themselves: they do not look at the clock, and whatever they start, they end."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE, left_processes, little_work, run, started, wait_until
from services import Process, service, small_tagger

TESTS = Path(__file__).parents[1]
CLOCKS = ("perf_counter", "monotonic", "time.time")
LIMITED = ("run", "communicate", "wait", "join", "get", "urlopen", "create_connection")


def calls(node):
    """The names of functions and methods that are called within."""
    return [called(call) for call in ast.walk(node) if isinstance(call, ast.Call)]


def called(call):
    name = ast.unparse(call.func)
    return name if name == "time.time" else name.rpartition(".")[2]


def looks_at_the_clock(node):
    return isinstance(node, ast.Assert) and any(name in CLOCKS for name in calls(node.test))


def has_a_tight_limit(node):
    """Whether a busy machine might not be done in time."""
    if not isinstance(node, ast.Call) or called(node) not in LIMITED:
        return False
    limits = [option.value for option in node.keywords if option.arg == "timeout"]
    return any(isinstance(limit, ast.Constant) and limit.value < PATIENCE for limit in limits)


@pytest.mark.lint
def test_no_clock_in_tests():
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text("utf-8")
        if path.name == "patience.py" or not any(word in text for word in (*CLOCKS, "timeout")):
            continue
        for node in ast.walk(ast.parse(text)):
            if looks_at_the_clock(node) or has_a_tight_limit(node):
                found.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    assert found == []


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.linux
def test_failing_block_ends_processes():
    command = ["sh", "-c", "sleep 1000 & echo $!; wait"]
    with (
        pytest.raises(ZeroDivisionError),
        started(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        child = int(process.stdout.readline())
        assert is_running(child)
        raise ZeroDivisionError
    assert process.returncode == -9
    wait_until(lambda: not is_running(child))


@pytest.mark.linux
def test_slow_command_is_ended(tmp_path):
    note = tmp_path / "child"
    command = ["sh", "-c", f"sleep 1000 & echo $! > '{note}'; wait"]
    with pytest.raises(subprocess.TimeoutExpired):
        run(command, seconds=0.2)
    if note.exists() and note.read_text():
        wait_until(lambda: not is_running(int(note.read_text())))


@pytest.mark.linux
def test_silent_service_is_ended(tmp_path, monkeypatch):
    seen = []

    def give_up(self):
        seen.append(self.process)
        seen.extend(wait_until(self.workers))
        raise TimeoutError

    small_tagger().save(tmp_path / "tags.ldsm")
    monkeypatch.setattr(Process, "wait_until_ready", give_up)
    with (
        pytest.raises(TimeoutError),
        service(tmp_path / "tags.ldsm", "--workers", 2, "--port", 0),
    ):
        raise AssertionError("it is not ready")
    process, *workers = seen
    assert process.returncode is not None and workers
    wait_until(lambda: not any(map(is_running, workers)))


@pytest.mark.linux
def test_leftover_processes_are_noticed(monkeypatch):
    monkeypatch.setattr("patience._GRACE", 0)
    # Its parent has ended, and it is in a session of its own.
    code = (
        "import subprocess; sleep = subprocess.Popen(['sleep', '1000'], start_new_session=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print(sleep.pid)"
    )
    orphan = int(run([sys.executable, "-c", code]).stdout)
    try:
        assert "sleep 1000" in left_processes()[orphan]
    finally:
        os.kill(orphan, 9)
    wait_until(lambda: orphan not in left_processes())


def test_processor_time_limits():
    with started(["sleep", "0.3"]) as process, little_work(0.2):
        process.wait()
    with pytest.raises(AssertionError, match="of the processor"), little_work(0.01):
        sum(i * i for i in range(3_000_000))
