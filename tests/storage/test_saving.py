"""Saving is atomic: a file is the old one or the new one, whatever happens."""

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import patience
from full_disk import no_file_beyond
from ldsm import load
from ldsm._storage import atomic
from ldsm._storage import container as model_file
from small_classifier import XS, YS, small


@pytest.fixture
def calls(monkeypatch):
    """The system calls on files, in order."""
    calls = []

    def spy(name):
        real = getattr(os, name)

        def call(descriptor, *given):
            calls.append((name, *given))
            return real(descriptor, *given)

        monkeypatch.setattr(os, name, call)

    for name in ("fdatasync", "posix_fadvise"):
        spy(name)
    return calls


@pytest.mark.skipif(not model_file.CAN_FORGET, reason="the system cannot drop cached pages")
def test_file_need_not_stay_in_memory(tmp_path, calls):
    path, arrays = tmp_path / "m", {"a": np.arange(12_000_000, dtype=np.int32)}
    step, size = model_file.UNCACHED_BYTES, arrays["a"].nbytes
    dont_need = os.POSIX_FADV_DONTNEED
    model_file.write(path, {"kind": "x"}, arrays, cached=False)
    # What the disk does not have yet, the system would keep: first the one, then the other.
    assert calls[::2] == [("fdatasync",)] * (size // step)
    forgotten = [end for _, start, end, advice in calls[1::2] if start == 0 and advice == dont_need]
    assert len(forgotten) == size // step and forgotten[-1] > size - step
    assert np.diff([0, *forgotten]).max() < step + model_file.CHUNK_BYTES
    calls.clear()
    _, found = model_file.read(path, cached=False)
    np.testing.assert_array_equal(found["a"], arrays["a"])
    assert {(name, advice) for name, *_, advice in calls} == {("posix_fadvise", dont_need)}
    assert sum(length for _, _, length, _ in calls) == size
    calls.clear()
    model_file.write(path, {"kind": "x"}, arrays)
    model_file.read(path)
    assert not calls


def test_paths(tmp_path):
    clf = small().fit(XS, YS)
    (tmp_path / "real").mkdir()
    clf.save(str(tmp_path / "real" / "m.ldsm"))
    os.chmod(tmp_path / "real" / "m.ldsm", 0o640)
    (tmp_path / "link.ldsm").symlink_to(tmp_path / "real" / "m.ldsm")
    other = small(random_state=4).fit(XS, YS)
    other.save(tmp_path / "link.ldsm")
    assert (tmp_path / "link.ldsm").is_symlink()
    assert load(tmp_path / "link.ldsm").fingerprint_ == other.fingerprint_
    assert load(str(tmp_path / "real" / "m.ldsm")).fingerprint_ == other.fingerprint_
    assert stat.S_IMODE(os.stat(tmp_path / "real" / "m.ldsm").st_mode) == 0o640
    assert os.listdir(tmp_path / "real") == ["m.ldsm"]
    with pytest.raises(FileNotFoundError):
        clf.save(tmp_path / "nowhere" / "m.ldsm")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.ldsm")
    with pytest.raises(OSError):
        clf.save(tmp_path / "real")
    with pytest.raises(ValueError, match="it is not a regular file"):
        load(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="it is not a regular file"):
        load(tmp_path / "pipe")
    assert sorted(os.listdir(tmp_path)) == ["link.ldsm", "pipe", "real"]


def test_model_survives_deleted_file(tmp_path):
    clf, other = small().fit(XS, YS), small(random_state=4).fit(XS, YS)
    clf.save(tmp_path / "m.ldsm")
    mapped = load(tmp_path / "m.ldsm", verify=False)
    other.save(tmp_path / "m.ldsm")
    assert mapped.fingerprint_ == clf.fingerprint_
    os.unlink(tmp_path / "m.ldsm")
    assert mapped.fingerprint_ == clf.fingerprint_


@pytest.mark.parametrize("exists", [True, False])
def test_failed_save_changes_nothing(tmp_path, monkeypatch, exists):
    path = tmp_path / "m.ldsm"
    clf = small().fit(XS, YS)
    if exists:
        small(random_state=4).fit(XS, YS).save(path)
    before = path.read_bytes() if exists else None

    def check():
        assert os.listdir(tmp_path) == (["m.ldsm"] if exists else [])
        assert not exists or path.read_bytes() == before

    for n_bytes in (0, 100, 5000):
        with no_file_beyond(n_bytes), pytest.raises(OSError) as caught:
            clf.save(path)
        assert caught.value.errno == errno.EFBIG
        check()
    for name in ("pwrite", "fsync", "replace"):
        for error in (OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), MemoryError()):
            with monkeypatch.context() as patched:

                def fail(*args, error=error):
                    raise error

                patched.setattr(os, name, fail)
                with pytest.raises(type(error)):
                    clf.save(path)
            check()
    # Short writes are not failures.
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:1000], at))
    clf.save(path)
    assert load(path).fingerprint_ == clf.fingerprint_


KILLED = """
    import os, random, signal, sys, time
    import numpy as np, scipy.sparse as sp
    from dataclasses import replace
    from ldsm import LdSMClassifier, load
    from ldsm._storage.atomic import is_temporary
    folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    path = os.path.join(folder, "m.ldsm")
    X = sp.random(300, 50, 0.2, "csr", dtype=np.float32, random_state=0)
    Y = sp.csr_array(sp.random(300, 9, 0.3, "csr", random_state=1) != 0).astype(int)
    models = []
    for state in (1, 2):
        clf = LdSMClassifier(n_estimators=20, random_state=state).fit(X, Y)
        for _ in range(5):  # some MB, so that saving takes its time
            clf.model_ = replace(clf.model_, forest=clf.forest_.extended(clf.forest_))
        models.append(clf)
    prints = {clf.fingerprint_ for clf in models}
    models[0].save(path)
    random.seed(seed)
    torn, known = 0, set()
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            while True:
                for clf in models:
                    clf.save(path)
        while not set(os.listdir(folder)) - known - {"m.ldsm"}:
            time.sleep(0.001)  # until it saves
        time.sleep(random.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert load(path).fingerprint_ in prints
        left = set(filter(is_temporary, os.listdir(folder)))
        torn += len(left - known)
        known = left
        for name in left:  # as if some time had passed
            os.utime(os.path.join(folder, name), (0, 0))
    models[0].save(path)
    assert os.listdir(folder) == ["m.ldsm"]
    print(torn)
"""


def killed_saves(folder, kills):
    """Kill a process that saves without end; return how often it was amid a save."""
    code = [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), str(kills), "1"]
    run = patience.run(code)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_killed_saves_leave_whole_file(tmp_path):
    assert killed_saves(tmp_path, 8) > 0


@pytest.mark.long
def test_fifty_killed_saves(tmp_path):
    assert killed_saves(tmp_path, 50) > 10


def test_save_removes_old_leftovers(tmp_path):
    path, others = tmp_path / "m.ldsm", tmp_path / "other.ldsm"
    clf = small().fit(XS, YS)
    old, young, elsewhere, link, pipe = (
        Path(atomic.temporary_path(str(tmp_path), atomic.mark_of(str(target))))
        for target in (path, path, others, path, path)
    )
    others.write_bytes(b"not to be touched")
    link.symlink_to(others)
    os.mkfifo(pipe)
    for file in (old, young, elsewhere):
        file.write_bytes(b"half a model")
    for file in (old, elsewhere, others):
        os.utime(file, (0, 0))
    clf.save(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, others, young, elsewhere, link, pipe])
    # A long name must not become too long, and its leftovers are found as well.
    path = tmp_path / ("ü" * 125 + ".ldsm")
    old = Path(atomic.temporary_path(str(tmp_path), atomic.mark_of(str(path))))
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    clf.save(path)
    assert path.exists() and not old.exists()


def test_concurrent_saves(tmp_path, monkeypatch):
    """One save begins and ends amid another, which for long seems to do nothing."""
    path = tmp_path / "m.ldsm"
    slow, quick = small().fit(XS, YS), small(random_state=4).fit(XS, YS)
    write = os.pwrite

    def delayed(*args):
        monkeypatch.setattr(os, "pwrite", write)
        for file in tmp_path.iterdir():
            os.utime(file, (0, 0))
        quick.save(path)
        assert load(path).fingerprint_ == quick.fingerprint_
        assert len(list(filter(atomic.is_temporary, os.listdir(tmp_path)))) == 1
        return write(*args)

    monkeypatch.setattr(os, "pwrite", delayed)
    slow.save(path)
    assert load(path).fingerprint_ == slow.fingerprint_
    assert os.listdir(tmp_path) == ["m.ldsm"]


FULL = """
    import errno, os, sys
    import numpy as np
    from ldsm import LdSMClassifier, load
    folder, = sys.argv[1:]
    path = os.path.join(folder, "m.ldsm")
    X = np.random.default_rng(0).random((300, 20), dtype=np.float32)
    small, large = (LdSMClassifier(n_estimators=n, random_state=0).fit(X, X > 0.6) for n in (1, 99))
    small.save(path)
    try:
        large.save(path)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        assert os.listdir(folder) == ["m.ldsm"]
        assert load(path).fingerprint_ == small.fingerprint_
        print("full")
"""


@pytest.mark.long
def test_full_disk(tmp_path):
    """A file system of 1 MB, where the machine lets us mount one."""
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    disk = f"mount -t tmpfs -o size=1m none {tmp_path} && "
    try:
        subprocess.run([*mount, disk + "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    code = [*mount, disk + 'exec "$@"', "sh", sys.executable, "-c", textwrap.dedent(FULL)]
    run = patience.run([*code, str(tmp_path)])
    assert (run.returncode, run.stdout) == (0, "full\n"), run.stderr


@pytest.mark.not_under("thread", reason="ThreadSanitizer delivers signals late")
def test_ctrl_c_during_a_save(tmp_path):
    clf = small().fit(XS, YS)
    for _ in range(9):  # several chunks, so that threads take part
        clf.model_ = replace(clf.model_, forest=clf.forest_.extended(clf.forest_))
    small().fit(XS, YS).save(tmp_path / "m.ldsm")
    before = (tmp_path / "m.ldsm").read_bytes()
    write = os.pwrite

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        return write(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "pwrite", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.save(tmp_path / "m.ldsm")
    assert os.listdir(tmp_path) == ["m.ldsm"]
    assert (tmp_path / "m.ldsm").read_bytes() == before
