#!/bin/bash
# Runs every fuzz target under libFuzzer, ASan and UBSan for some seconds: fuzz.sh [SECONDS]
# A target is a file tests/**/fuzz_*.c with a first line "// fuzz: SOURCE..." naming the files it needs.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-15}
out=build/fuzz
mkdir -p $out
ran=0
for target in $(find tests -name 'fuzz_*.c' -not -path '*/node_modules/*' | sort); do
    sources=$(sed -nE '1s|^// fuzz: *||p' "$target")
    [ -n "$sources" ] || continue
    name=$(basename "$target" .c)
    mkdir -p "$out/corpus-$name"
    # shellcheck disable=SC2046,SC2086
    clang -std=c11 -D_GNU_SOURCE -DGPUTAP_FUZZING -DGPUTAP_PROJECT_VERSION='"fuzz"' -DGPUTAP_STATIC -O1 -g \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. -Iclient/include -Ibuild/release/generated/include \
        "$target" $sources $(pkg-config --cflags --libs jansson) -lm -lpthread -o "$out/$name"
    echo "== $name"
    "$out/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 "$out/corpus-$name" 2>&1 |
        tail -8
    test "${PIPESTATUS[0]}" -eq 0
    ran=$((ran + 1))
done
echo "$ran fuzz targets"
test "$ran" -gt 0
