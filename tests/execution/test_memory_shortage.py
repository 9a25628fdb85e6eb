"""Too little memory: an error that names the operation, never an abort."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import patience
from ldsm import LdSMClassifier, datasets
from ldsm._execution.memory import available_bytes, out_of_memory
from ldsm._model.fitted import MOST_FEATURES

PROGRAM = """
import faulthandler, resource, sys
faulthandler.dump_traceback_later(300, exit=True)
import numpy as np, scipy.sparse as sp
from ldsm import LdSMClassifier, load
rng = np.random.default_rng(0)
X = sp.random_array((6000, 2000), density=0.01, random_state=rng, dtype=np.float32, format="csr")
Y = sp.csr_array(sp.random_array((6000, 300), density=0.01, random_state=rng) > 0).astype(np.int8)
small = LdSMClassifier(n_estimators=2, n_jobs=2, random_state=0).fit(X[:600], Y[:600])
small.save(sys.argv[3])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * 4096
limit = used + int(float(sys.argv[1]) * 1e6)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    LdSMClassifier(n_estimators=6, n_jobs=int(sys.argv[2]), random_state=0).fit(X, Y)
    load(sys.argv[3]).predict_topk(X, k=5)
    print("enough")
except (MemoryError, OSError) as error:
    print(type(error).__name__, error)
"""


def with_spare(megabytes: float, n_jobs: int, path) -> str:
    command = [sys.executable, "-c", PROGRAM, str(megabytes), str(n_jobs), str(path / "m.ldsm")]
    run = patience.run(command)
    if "Timeout" in run.stderr and "MemoryError" in run.stderr and " in start\n" in run.stderr:
        # Python's own: a thread that dies before its first line leaves `Thread.start` waiting.
        return "OSError of a thread of Python's that had no memory to begin with"
    assert run.returncode == 0, (megabytes, n_jobs, run.returncode, run.stderr[-2000:])
    return run.stdout.strip()


@pytest.mark.linux
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.long), 2])
def test_too_little_memory(tmp_path, n_jobs):
    assert with_spare(4, n_jobs, tmp_path).startswith("MemoryError")
    assert with_spare(2000, n_jobs, tmp_path) == "enough"


@pytest.mark.linux
@pytest.mark.long
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_never_aborts(tmp_path, n_jobs):
    said = [with_spare(megabytes, n_jobs, tmp_path) for megabytes in np.linspace(1, 160, 40)]
    assert all(text == "enough" or text.split()[0] in ("MemoryError", "OSError") for text in said)
    assert all("memory" in text or "thread" in text for text in said if text != "enough")


def test_empty_memory_error_gets_message():
    text = r"^Too little memory to fly \(std::bad_alloc\).$"
    with pytest.raises(MemoryError, match=text), out_of_memory("fly"):
        raise MemoryError("std::bad_alloc")
    with pytest.raises(MemoryError, match=r"^It says all.$"), out_of_memory("fly"):
        raise MemoryError("It says all.")


def test_memory_follows_content(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("1 2147483639 2147483639\n0,5 3:1\n")
    data = datasets.load_xmlrepo(path)
    assert data.X.shape == (1, 2147483639)
    with pytest.raises(MemoryError, match="y has 2,147,483,639 columns: training needs at least"):
        LdSMClassifier(n_estimators=1).fit(data)
    few = sp.csr_array(np.array([[1], [1]], dtype=np.int8))
    wide = sp.csr_array((np.ones(2, np.float32), [0, 7], [0, 1, 2]), shape=(2, MOST_FEATURES + 1))
    with pytest.raises(ValueError, match="X must have at most 268,435,456 columns. Got 268,435,45"):
        LdSMClassifier(n_estimators=1).fit(wide, few)


@pytest.mark.linux
def test_process_memory_limit():
    program = (
        "import resource; from ldsm._execution.memory import available_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "print(available_bytes())"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 0 < int(run.stdout) < min(3 << 30, available_bytes())
