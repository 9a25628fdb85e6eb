#!/usr/bin/env bash
# Install a wheel without a compiler, then run the README's first example and the core's tests:
# try_wheel.sh PYTHON WHEEL
set -euo pipefail
python=$1 wheel=$(realpath "$2")
root=$(realpath "$(dirname "$0")/..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$python" -m venv venv

# Only the environment is on the path, and compilers fail. Settings of pip's index are kept.
mapfile -d '' kept < <(env -0 | grep -zE '^(PIP_\w+|\w+_(proxy|PROXY)|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)=')
as_user() {
    env -i ${kept[@]+"${kept[@]}"} HOME="$folder" PATH="$folder/venv/bin" CC=false CXX=false "$@"
}

start=$(date +%s)
as_user python -m pip install --quiet --only-binary :all: "$wheel"
as_user python - "$root/README.md" << 'END'
import re
import sys
from pathlib import Path

code = re.search(r"```python\n(.*?)```", Path(sys.argv[1]).read_text("utf-8"), re.DOTALL)[1]
exec(compile(code, "README.md", "exec"))
END
took=$(($(date +%s) - start))
as_user ldsm predict tags.ldsm "parse a date and time" -k 1
as_user python - "$root/pyproject.toml" << 'END'
import re
import sys
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

project = Path(sys.argv[1]).read_text("utf-8")
extras = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\n", project, re.DOTALL)[1]
named = set(re.findall(r"^(\w+) = ", extras, re.MULTILINE))
assert named == set(metadata("ldsm").get_all("Provides-Extra")), "The wheel has other extras."
assert find_spec("ldsm.mlflow") and "annif" in {p.name for p in Path(find_spec("ldsm").origin).parent.iterdir()}
END
as_user python -m pip install --quiet --only-binary :all: pytest hypothesis
as_user python -m pytest -q -p no:cacheprovider --rootdir "$root" -c "$root/pyproject.toml" "$root/tests/core"
echo "== $("$python" --version), $(basename "$wheel"): installed and ran the README's first example in" \
    "$took s; the core's tests pass"
