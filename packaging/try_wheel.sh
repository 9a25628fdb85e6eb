#!/usr/bin/env bash
# Install a wheel as a user without a compiler would, and run the README's first example:
# try_wheel.sh PYTHON WHEEL
set -euo pipefail
python=$1 wheel=$(realpath "$2")
root=$(realpath "$(dirname "$0")/..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$python" -m venv venv
start=$(date +%s)
# Nothing but the environment is on the path, and nothing may be built.
env -i HOME="$folder" PATH="$folder/venv/bin" PIP_CONFIG_FILE="${PIP_CONFIG_FILE:-}" CC=false CXX=false \
    $(env | grep -E '^(PIP_|https?_proxy|no_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)' || true) \
    venv/bin/python -m pip install --quiet --only-binary :all: "$wheel"
env -i HOME="$folder" PATH="$folder/venv/bin" venv/bin/python - "$root/README.md" <<'END'
import re
import sys
from pathlib import Path

code = re.search(r"```python\n(.*?)```", Path(sys.argv[1]).read_text("utf-8"), re.DOTALL)[1]
exec(compile(code, "README.md", "exec"))
END
test -s tags.ldsm
env -i HOME="$folder" PATH="$folder/venv/bin" ldsm predict tags.ldsm "the invoice was charged twice" -k 1 > /dev/null
echo "== $("$python" --version), $(basename "$wheel"): installed and the README's first example run" \
    "in $(($(date +%s) - start)) s"
