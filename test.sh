#!/bin/bash
# Installs what the tests need, then runs them all: style, models, unit and scenario tests under ASan and UBSan, the ring and the
# client's threads under ThreadSanitizer, fuzzing in short, benchmarks (which never fail), and the page in a real browser.
# Ends with one line of totals. QUICK=1 leaves out fuzzing and benchmarks.
set -u
cd "$(dirname "$0")" || exit 1
start=$(date +%s)
logs=build/test-logs
mkdir -p $logs
passed=0 failed=0 skipped=0

note() { printf '== %s (%d s)\n' "$1" "$(($(date +%s) - start))"; }
count() { # PASSED FAILED SKIPPED
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}
# One check that passes or fails as a whole; its output is shown when it fails.
step() { # NAME COMMAND...
    local name=$1 log
    shift
    log=$logs/$(printf %s "$name" | tr -c 'a-z0-9' _).log
    if "$@" >"$log" 2>&1; then
        count 1 0 0
    else
        count 0 1 0
        printf 'FAILED: %s (%s)\n' "$name" "$*"
        tail -60 "$log"
    fi
}
skip() {
    count 0 0 1
    printf 'skipped: %s: %s\n' "$1" "$2"
}
# Adds up the "N passed, N failed, N skipped" lines of a log, whatever else is in it.
add_totals() {
    local p f s
    read -r p f s < <(sed -nE 's/^[0-9]+: .*: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$1" |
        awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
    count "$p" "$f" "$s"
    grep -hE 'skipped [a-z0-9_]+: |\.\.\. skipped' "$1" | sed 's/^/  /' || true
    total_failed=$f
}
build() { # PRESET [CMAKE ARGUMENTS]: configures and builds, or ends the whole run
    local preset=$1
    shift
    if ! { cmake --preset "$preset" -DGPUTAP_WERROR=ON "$@" && cmake --build --preset "$preset" "${targets[@]}"; } >"$logs/build-$preset.log" 2>&1; then
        tail -60 "$logs/build-$preset.log"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    fi
}

note "installing what is missing"
scripts/install-deps.sh gcc libc6-dev cmake ninja-build pkg-config libwebsockets-dev libjansson-dev libdrm-dev zlib1g-dev libcunit1-dev \
    clang clang-format clang-tidy python3 util-linux procps || exit 1
clang_major=$(clang -dumpversion | cut -d. -f1)
scripts/install-deps.sh "libclang-rt-$clang_major-dev" || exit 1
# Ubuntu has no chromium package: without a browser the browser tests skip by name.
command -v chromium >/dev/null || scripts/install-deps.sh chromium || echo "no chromium here"
[ -e /usr/include/sqlite3.h ] || scripts/install-deps.sh libsqlite3-dev || echo "no SQLite here"
command -v nvtop >/dev/null || scripts/install-deps.sh nvtop || echo "no nvtop here"
command -v spin >/dev/null || scripts/install-deps.sh spin || echo "no spin here"
command -v node >/dev/null && command -v npm >/dev/null || scripts/install-deps.sh nodejs npm || exit 1

note "style"
mapfile -t sources < <(git ls-files '*.c' '*.h' 2>/dev/null | grep -v '^build/' || find shm client broker bridge tests examples -name '*.[ch]')
[ ${#sources[@]} -gt 0 ] || mapfile -t sources < <(find shm client broker bridge tests examples -name '*.[ch]')
if [ "$clang_major" = 14 ]; then
    step "clang-format" clang-format --dry-run -Werror "${sources[@]}"
else
    skip "clang-format" "the format is checked with version 14, here is $clang_major"
fi
step "no assertions on bytes of others" sh -c '! grep -nE "\b(assert|abort)\(" shm/segment_view.c client/*.c bridge/*.c'
step "only shm names memory orders" sh -c '! grep -rnE "memory_order_|__atomic_" client broker bridge --include=*.[ch]'
step "client and broker know nothing of each other" sh -c '! grep -rn "#include \"broker/" client bridge shm && ! grep -rnE "#include .*(client/|bridge/|gputap\.h)" broker shm --include=*.[ch]'
step "no innerHTML" sh -c '! grep -rn "innerHTML\|outerHTML\|insertAdjacentHTML\|document.write" web --include=*.js --include=*.mjs'

note "models"
step "ring model" python3 tests/models/ring_model.py
if command -v spin >/dev/null; then
    step "hand-over and session models" tests/models/spin.sh
else
    skip "hand-over and session models" "no spin here"
fi

note "building under ASan and UBSan"
targets=()
build asan
note "unit and scenario tests under ASan and UBSan"
(cd build/asan && ctest --output-on-failure -j2 --timeout 300 -V) >"$logs/ctest.log" 2>&1
ctest_failed=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of.*/\1/p' "$logs/ctest.log")
add_totals "$logs/ctest.log"
# A program that died prints no line of its own.
if [ "${ctest_failed:-1}" -gt 0 ]; then
    sed -n '/The following tests FAILED/,$p' "$logs/ctest.log"
    grep -nE 'FAIL:|ERROR:|AddressSanitizer|runtime error|AssertionError|Suite .*, Test .* had failures|^[0-9]+: +[0-9]+\. ' "$logs/ctest.log" | head -60
    [ "$total_failed" -gt 0 ] || count 0 "${ctest_failed:-1}" 0
fi

note "building under ThreadSanitizer"
targets=(--target ring_torture test_restart test_annotate)
build tsan -DGPUTAP_BRIDGE=OFF
note "ring and client threads under ThreadSanitizer"
run_tsan() { setarch -R env TSAN_OPTIONS=halt_on_error=1 "$@"; }
step "ring under TSan" run_tsan build/tsan/bin/tests/ring_torture --threads --reads 800000
step "client threads under TSan" run_tsan build/tsan/bin/tests/test_restart
step "annotating threads and the broker under TSan" run_tsan build/tsan/bin/tests/test_annotate

note "release build"
targets=()
build release -DGPUTAP_TESTS=ON
step "ten million reads" build/release/bin/tests/ring_torture --reads 10000000

if [ -z "${QUICK:-}" ]; then
    step "brokers and writers killed under readers and bridge" env GPUTAP_KILLS=80 GPUTAP_BIN=build/release/bin python3 -B \
        tests/scenario/client_torture.py
    step "storm of writers, brokers and annotators" env GPUTAP_WRITER_KILLS=1000 GPUTAP_BROKER_KILLS=30 GPUTAP_ANNOTATOR_KILLS=100 \
        GPUTAP_BIN=build/release/bin python3 -B tests/scenario/client_storm.py
    note "clang-tidy"
    mapfile -t tidy < <(printf '%s\n' "${sources[@]}" | grep -E '^(shm|client|broker|bridge)/.*\.c$' | grep -v _win32)
    tidy_all() { printf '%s\n' "${tidy[@]}" | xargs -P2 -n6 clang-tidy -quiet -p build/release; }
    if [ "$clang_major" = 14 ]; then
        step "clang-tidy" tidy_all
    else
        skip "clang-tidy" "checks are chosen for version 14, here is $clang_major"
    fi
    note "fuzzing in short"
    step "fuzzers" tests/fuzz.sh "${FUZZ_SECONDS:-30}"
    note "benchmarks (ratios; never a failure)"
    tests/bench.sh build/release/bin 2>&1 | tee "$logs/bench.log"
fi

note "Windows half under Wine"
scripts/install-deps.sh gcc-mingw-w64-x86-64-win32 wine64 wine >"$logs/wine-install.log" 2>&1
if command -v wine wineserver x86_64-w64-mingw32-gcc >"$logs/wine-found.log" && [ "$(wc -l <"$logs/wine-found.log")" -eq 3 ]; then
    tests/wine.sh build/release/bin >"$logs/wine.log" 2>&1
    wine_code=$?
    add_totals "$logs/wine.log"
    if [ $wine_code -ne 0 ]; then
        tail -60 "$logs/wine.log"
        [ "$total_failed" -gt 0 ] || count 0 1 0
    fi
else
    skip "Windows half" "no mingw-w64 or no wine64 can be installed here"
fi

note "page in a browser"
if [ -f tests/browser/package.json ]; then
    if (cd tests/browser && [ -d node_modules ] || npm install --no-audit --no-fund --no-package-lock --loglevel=error) >"$logs/npm.log" 2>&1; then
        (cd tests/browser && GPUTAP_BIN="$PWD/../../build/release/bin" node --test --test-reporter=tap . ) >"$logs/browser.log" 2>&1
        value() { sed -nE "s/^# $1 ([0-9]+)$/\1/p" "$logs/browser.log" | tail -1; }
        p=$(value pass) f=$(value fail) c=$(value cancelled) s=$(value skipped)
        [ -n "$p" ] || { f=1; tail -40 "$logs/browser.log"; }
        [ "${f:-0}" -eq 0 ] || grep -nE '^ *not ok|error:|expected|actual' "$logs/browser.log" | head -60
        count "${p:-0}" "$((${f:-0} + ${c:-0}))" "${s:-0}"
        grep -hE '^ *ok .*# SKIP' "$logs/browser.log" | sed 's/^ */  /' || true
    else
        tail -20 "$logs/npm.log"
        count 0 1 0
    fi
fi

note "done"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
