#!/usr/bin/env bash
# The tests with an instrumented core: run.sh address|thread PYTHON [arguments of pytest].
#
# address: AddressSanitizer and UndefinedBehaviorSanitizer; thread: ThreadSanitizer. PYTHON has the
# packages that the tests need. The core goes into an environment of its own below build/, which
# borrows these packages: no other run can find it, and processes that tests start find no other.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Builds the core in build/sanitize-<name> and puts it, with the package, into the environment there.
build() {
    local tools packages
    tools=$(dirname "$(realpath -s "$python")")
    PATH=$tools:$PATH cmake -S . -B "$folder" -G Ninja --log-level=WARNING \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLDSM_SANITIZE="$sanitizer" \
        -DPython_EXECUTABLE="$tools/$(basename "$python")"
    PATH=$tools:$PATH cmake --build "$folder"
    "$python" -m venv --without-pip "$folder/venv"
    packages=$(packages_of "$folder/venv/bin/python")
    packages_of "$python" > "$packages/borrowed.pth"
    rm -rf "$packages/ldsm"
    cp -r src/ldsm "$packages/ldsm"
    rm -f "$packages"/ldsm/_core*.so
    cp "$folder"/_core*.so "$packages/ldsm/"
}

packages_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("platlib"))'; }

# Reports go to files: one of a process that a test started must count as well.
set_options() {
    case $sanitizer in
        address)
            runtime=libasan.so
            # Python keeps memory until it ends, by design: leaks look the same. Asking
            # for more memory than there is must give MemoryError, as it does elsewhere.
            export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:log_path=$reports/asan"
            # What is undefined is said on stderr only; it aborts, so that it is reported here too.
            ASAN_OPTIONS+=":handle_abort=1"
            export UBSAN_OPTIONS="abort_on_error=1:print_stacktrace=1:log_path=$reports/asan"
            ;;
        thread)
            runtime=libtsan.so
            # All reports, not only the first; a forked child may continue.
            export TSAN_OPTIONS="halt_on_error=0:die_after_fork=0:log_path=$reports/tsan"
            TSAN_OPTIONS+=":suppressions=$PWD/tests/sanitizers/thread.supp"
            ;;
        *)
            echo "The sanitizer must be address or thread. Got '$sanitizer'." >&2
            exit 2
            ;;
    esac
}

library() { realpath "$("${CXX:-c++}" -print-file-name="$1")"; }

main() {
    sanitizer=$1 python=$2
    shift 2
    folder=$PWD/build/sanitize-$sanitizer
    reports=$folder/reports
    set_options
    build
    rm -rf "$reports"
    mkdir "$reports"
    # Python is not instrumented, so the run-time library must be there before it; and libstdc++ too,
    # or the library finds no exceptions to watch. No other core may be found, nor the benchmark data:
    # hours of accuracy would show nothing that small data do not.
    local status=0
    env -u PYTHONPATH -u LDSM_SIMD -u LDSM_DATA LDSM_SANITIZER="$sanitizer" \
        LD_PRELOAD="$(library $runtime) $(library libstdc++.so)" \
        "$folder/venv/bin/python" -m pytest -rs --capture=sys -p no:cacheprovider "$@" || status=$?
    if [ -n "$(ls "$reports")" ]; then
        cat "$reports"/*
        echo "$sanitizer: reports of $(find "$reports" -type f | wc -l) processes in $reports" >&2
        exit 1
    fi
    return "$status"
}

main "$@"
exit
