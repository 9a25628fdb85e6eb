#!/usr/bin/env bash
# Run the whole suite with other versions of the dependencies: test_versions.sh oldest|newest
#
# oldest: the lowest versions that pyproject.toml allows, on the oldest Python of this machine.
# newest: the newest versions, on the newest Python of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/pythons.sh
case $1 in
    oldest) python=$(pythons | sed -n 1p) ;;
    newest) python=$(pythons | sed -n '$p') ;;
    *)
        echo "The versions must be oldest or newest. Got '$1'." >&2
        exit 2
        ;;
esac
venv=.venv-$1
rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --upgrade pip tomli
constraints=$venv/constraints.txt
: > "$constraints"
if [ "$1" = oldest ]; then
    "$venv/bin/python" packaging/lowest.py | cat - packaging/contemporaries.constraints > "$constraints"
fi
"$venv/bin/python" -m pip install --quiet --constraint "$constraints" ".[test]"
"$venv/bin/python" --version
"$venv/bin/python" -m pip list --format freeze
"$venv/bin/python" -m pytest -n 3 --dist worksteal
