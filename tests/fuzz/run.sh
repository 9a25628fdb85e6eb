#!/bin/sh
# Fuzzes the core with libFuzzer under AddressSanitizer and UndefinedBehaviorSanitizer.
#
#   tests/fuzz/run.sh text|model SECONDS
#
# New inputs that reach new code go to build/fuzz; a failure leaves its input there and exits with 1.
# Needs clang with its run-time libraries; CLANG names it.
set -eu
target=$1 seconds=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
clang=${CLANG:-$(command -v clang++ || command -v clang++-14 || echo clang++)}
out=$root/build/fuzz/$target
mkdir -p "$out/found"
case $target in
text) sources="text/text_format.cpp" ;;
model)
    sources="matching/shortlists.cpp ranking/blend.cpp ranking/label_products.cpp
        ranking/weights_by_feature.cpp routing/feature_maps.cpp routing/router.cpp simd/kernels.cpp simd/portable.cpp text/names.cpp"
    ;;
*)
    echo "error: the first argument must be text or model, got '$target'." >&2
    exit 2
    ;;
esac
flags="-std=c++20 -O1 -g -fno-omit-frame-pointer -ffp-contract=off -I$root/core
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"
objects=
for source in $sources; do
    object=$out/$(echo "${source%.cpp}" | tr / -).o
    "$clang" $flags -c "$root/core/$source" -o "$object" ${LDSM_FUZZ_FLAGS:-}
    objects="$objects $object"
done
"$clang" $flags "$root/tests/fuzz/$target.cpp" $objects -o "$out/fuzz"
cd "$out"
exec ./fuzz -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
    found "$root/tests/fuzz/corpus/$target"
