"""One process at a time changes a file, whatever happens to the file or to the process."""

import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from ldsm import load
from ldsm._storage.locks import FileLocked, FileReplaced, locked
from small_classifier import XS, YS, small


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.ldsm"
    small().fit(XS, YS).save(path)
    return path


def in_thread(work):
    """What the work returns or raises in another thread."""
    found = []

    def run():
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def is_locked(path):
    def attempt():
        with locked(path, timeout=0):
            return False

    return isinstance(in_thread(attempt), FileLocked)


def test_lock_excludes_other_threads_until_released(model):
    assert not is_locked(model)
    with locked(model):
        assert is_locked(model)
        with locked(model):  # the same thread already holds the lock
            pass
        assert is_locked(model)
        assert not is_locked(model.with_name("other.ldsm"))
    assert not is_locked(model)
    assert os.listdir(model.parent) == [model.name]


def test_save_waits_for_lock(model):
    other = small(random_state=4).fit(XS, YS)
    saved = threading.Thread(target=other.save, args=(model,))
    with locked(model, changes=True):
        before = load(model).fingerprint_
        saved.start()
        saved.join(0.2)
        assert saved.is_alive() and load(model).fingerprint_ == before
    saved.join()
    assert load(model).fingerprint_ == other.fingerprint_


def test_waiting_is_reported_once(model):
    calls, waits, released = [], threading.Event(), threading.Event()

    def hold():
        with locked(model):
            waits.set()
            released.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    waits.wait()

    def waiting():
        calls.append("waiting")
        released.set()

    with locked(model, waiting=waiting):
        assert calls == ["waiting"]
    holder.join()


def test_link_has_lock_of_target(model, tmp_path):
    (tmp_path / "more").mkdir()
    link = tmp_path / "more" / "link.ldsm"
    link.symlink_to(model)
    with locked(link):
        assert is_locked(model)
        assert os.listdir(link.parent) == [link.name]
    with locked(model):
        assert is_locked(link)


def test_lock_survives_replacing_the_file(model, tmp_path):
    with locked(model, changes=True):
        small(random_state=4).fit(XS, YS).save(model)
        assert is_locked(model)
        (tmp_path / "other").write_bytes(model.read_bytes())
        os.replace(tmp_path / "other", model)
        assert is_locked(model)
        model.unlink()
        assert is_locked(model)


@pytest.mark.parametrize("how", ["replaced", "written to", "removed"])
def test_changes_keep_foreign_files(model, tmp_path, how):
    clf = small(random_state=4).fit(XS, YS)
    with locked(model, changes=True):
        clf.save(model)
        clf.save(model)  # its own saves do not count
        if how == "replaced":
            (tmp_path / "other").write_text("another program's")
            os.replace(tmp_path / "other", model)
        elif how == "written to":
            model.write_text("another program's")
        else:
            model.unlink()
        with pytest.raises(FileReplaced, match=r"m\.ldsm was replaced by another program while"):
            clf.save(model)
    assert [path.read_text() for path in tmp_path.iterdir()] == (
        [] if how == "removed" else ["another program's"]
    )
    clf.save(model)  # a plain save replaces whatever is there
    assert load(model).fingerprint_ == clf.fingerprint_


HOLDER = """
import sys, time
from ldsm._storage.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_killed_holder_releases_lock(model):
    command = [sys.executable, "-c", HOLDER, str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            assert is_locked(model)
        finally:
            holder.send_signal(signal.SIGKILL)
    assert len(os.listdir(model.parent)) == 2  # its lock file, which locks nothing
    assert not is_locked(model)
    assert os.listdir(model.parent) == [model.name]


def count_up(path, times):
    for _ in range(times):
        with locked(path):
            path.write_text(str(int(path.read_text()) + 1))


def test_processes_take_turns(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=count_up, args=(path, 200)) for _ in range(3)]
    for process in others:
        process.start()
    try:
        count_up(path, 200)
    finally:
        for process in others:
            process.join()
    assert path.read_text() == "800" and os.listdir(tmp_path) == ["count"]


@pytest.mark.parametrize("planted", ["link", "pipe"])
def test_planted_lock_is_refused(model, tmp_path_factory, planted):
    with locked(model):
        [name] = set(os.listdir(model.parent)) - {model.name}
    victim = tmp_path_factory.mktemp("elsewhere") / "victim"
    victim.write_text("precious")
    if planted == "link":
        (model.parent / name).symlink_to(victim)
    else:
        os.mkfifo(model.parent / name)
    with pytest.raises(OSError) as caught:
        small().fit(XS, YS).save(model)
    assert caught.value.filename == str(model.parent / name)
    assert victim.read_text() == "precious"


def test_file_system_without_locks(model, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    clf = small(random_state=4).fit(XS, YS)
    clf.save(model)
    assert load(model).fingerprint_ == clf.fingerprint_
    assert os.listdir(model.parent) == [model.name]
