#!/usr/bin/env bash
# Test the core on ARM64 in an emulator: arm64.sh PYTHON
#
# Unpacks Debian's Python for ARM64 and the registry's wheels into build/arm64, without installing
# anything. Cross-compiles the core and runs its tests under qemu. The models trained there must have the
# same fingerprints as those that PYTHON, which must have ldsm, trains here.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
tools=$(dirname "$python")
folder=$PWD/build/arm64
root=$folder/root

needs() {
    command -v "$1" > /dev/null || {
        echo "$1 is missing. On Debian: apt-get install g++-aarch64-linux-gnu qemu-user" >&2
        exit 1
    }
}

# apt with its own state, for another architecture. Needs no privileges and no settings of this machine.
apt_arm64() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=1 \
        -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" \
        -o Dir::Cache="$folder/apt" -o APT::Sandbox::User="$(id -un)" "$@"
}

fetch_python() {
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$root"
    touch "$folder/apt/status"
    apt_arm64 update
    apt_arm64 install --yes --download-only --no-install-recommends python3 libpython3-dev libstdc++6
    local package
    for package in "$folder"/apt/archives/*.deb; do
        dpkg-deb --extract "$package" "$root"
    done
}

# The same versions as here, so that only the architecture differs.
fetch_packages() {
    local pins
    pins=$("$python" -m pip list --format freeze |
        grep -iE '^(numpy|scipy|scikit-learn|joblib|typer|rich|pytest|hypothesis|pandas|safetensors)==')
    "$python" -m pip install --quiet --upgrade --target "$folder/packages" \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
        --python-version "$version" --only-binary :all: $pins
}

build_core() {
    PATH=$tools:$PATH cmake -S . -B "$folder/build" -G Ninja --log-level=WARNING \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS="-isystem $root/usr/include" \
        -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$root/usr/include/python$version"
    PATH=$tools:$PATH cmake --build "$folder/build"
    rm -rf "$folder/packages/ldsm"
    cp -r src/ldsm "$folder/packages/ldsm"
    rm -f "$folder"/packages/ldsm/_core*.so
    # CMake names it after this machine.
    cp "$folder"/build/_core*.so "$folder/packages/ldsm/_core.so"
}

emulated() {
    env -u LDSM_SIMD -u LDSM_DATA PYTHONPATH="$folder/packages" PYTHONDONTWRITEBYTECODE=1 \
        qemu-aarch64 -L "$root" "$root/usr/bin/python$version" "$@"
}

needs aarch64-linux-gnu-g++
needs qemu-aarch64
[ -d "$root/usr" ] || fetch_python
version=$(basename "$(readlink "$root/usr/bin/python3")")
version=${version#python}
[ -d "$folder/packages" ] || fetch_packages
build_core
emulated tests/reference_models.py > "$folder/arm64.json"
"$python" tests/reference_models.py > "$folder/here.json"
diff "$folder/here.json" "$folder/arm64.json"
echo "The same models on both machines."
emulated -m pytest -p no:cacheprovider tests/core tests/model/test_model_file.py "${@:2}"
