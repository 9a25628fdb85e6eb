#!/usr/bin/env bash
# Build, repair, check and test wheels for this machine's Pythons: wheel.sh TOOLS
#
# TOOLS is an environment with packaging/requirements.txt. Python 3.10 and 3.11 get a wheel each; 3.12
# and later share one. Writes to dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/pythons.sh
tools=$1
wheels=build/wheels
rm -rf "$wheels" dist/*.whl
mkdir -p "$wheels" dist

build_all() {
    local python
    for python in $(pythons); do
        if ! compatible "$python" "$wheels"/*.whl > /dev/null; then
            echo "== building with $("$python" --version)"
            rm -rf build/wheel-venv
            "$python" -m venv build/wheel-venv
            build/wheel-venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$wheels" .
        fi
    done
}

# The wheel that a Python can install.
compatible() {
    local python=$1 tag
    shift
    tag=$("$python" -c 'import sys; v = sys.version_info; print("cp312-abi3" if v >= (3, 12) else f"cp3{v[1]}-cp3{v[1]}")')
    printf '%s\n' "$@" | grep -- "-$tag-"
}

check_all() {
    local wheel
    # Repairing may change only the name, which lists the systems that the wheel runs on.
    for wheel in "$wheels"/*.whl; do
        PATH=$tools:$PATH "$tools/auditwheel" repair --wheel-dir dist "$wheel"
    done
    "$tools/twine" check --strict dist/*.whl
    "$tools/check-wheel-contents" dist/*.whl
    "$tools/abi3audit" --strict --summary dist/*abi3*.whl
    for wheel in dist/*.whl; do
        [ "$(stat -c %s "$wheel")" -le 3000000 ] || { echo "$wheel has more than 3 MB." >&2; exit 1; }
    done
    ls -l dist/*.whl
}

build_all
check_all
for python in $(pythons); do
    packaging/try_wheel.sh "$python" "$(compatible "$python" dist/*.whl)"
done
