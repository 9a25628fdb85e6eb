#!/usr/bin/env bash
# Build the sdist, unpack it elsewhere, install it and run its tests: sdist.sh TOOLS PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$1 python=$2
mkdir -p dist
rm -f dist/*.tar.gz
"$tools/python" -m build --sdist
"$tools/twine" check --strict dist/*.tar.gz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xzf dist/*.tar.gz -C "$folder"
cd "$folder"/ldsm-*
"$python" -m venv venv
venv/bin/python -m pip install --quiet ".[test]"
venv/bin/python -m pytest -n 3 --dist worksteal
