#!/bin/bash
# Runs every fuzz target under libFuzzer, ASan and UBSan for some seconds each: fuzz.sh [SECONDS]. Finds are left in build/fuzz.
# To keep what a long run has found: -merge=1 its corpus into an empty folder, and pack that into tests/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-15}
targets=(fuzz_segment_libfuzzer fuzz_clients_libfuzzer fuzz_gpu_metrics_libfuzzer fuzz_providers_libfuzzer bridge_fuzz)
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${targets[@]}" | tail -1
for target in "${targets[@]}"; do
    corpus=build/fuzz/corpus-$target
    mkdir -p "$corpus"
    [ ! -f tests/corpus/"$target".tar.gz ] || tar -C "$corpus" -xzf tests/corpus/"$target".tar.gz # what longer runs have found
    echo "== $target, $seconds s"
    build/fuzz/bin/tests/"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix=build/fuzz/ "$corpus" 2>&1 | tail -8
done
