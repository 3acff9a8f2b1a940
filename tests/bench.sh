#!/bin/sh
# Prints the rows of the design's targets that exist so far, as ratios within one run: bench.sh BIN. Never fails for slowness.
cd "$(dirname "$0")/.." || exit 1
bin=$1
echo "machine: $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg)"
"$bin/bench/shm_bench" 600
"$bin/bench/waiters_bench" 100
python3 -B tests/bench/annotate_bench.py "$bin"
[ -x "$bin/bench/reader_bench" ] && python3 -B tests/bench/reader_bench.py "$bin"
python3 -B tests/bench/python_bench.py "$bin"
python3 -B tests/bench/tick_bench.py "$bin" 4
"$bin/bench/scan_bench"
GPUTAP_BIN=$bin "$bin/bench/bridge_bench" 200 3
exit 0
