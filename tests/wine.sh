#!/bin/bash
# Cross-builds what there is for Windows and runs its tests under Wine, then lets writers and readers of both systems share a folder:
# wine.sh [FOLDER OF NATIVE PROGRAMS]. Prints a line of totals for every program; fails if one failed, crashed or hung.
set -u
cd "$(dirname "$0")/.." || exit 1
native=$(realpath "${1:-build/release/bin}")
build=build/mingw
if ! { cmake --preset mingw -DGPUTAP_TESTS=ON -DGPUTAP_WERROR=ON && cmake --build --preset mingw; } >$build-build.log 2>&1; then
    tail -60 $build-build.log
    echo "1: mingw build: 0 passed, 1 failed, 0 skipped"
    exit 1
fi

export WINEPREFIX=$PWD/$build/wine WINEARCH=win64 WINEDEBUG=-all LC_ALL=C.UTF-8
# Without a debugger a crash ends the program with an error; with it, Wine now and then ends it with 0.
export WINEDLLOVERRIDES="winedbg.exe=d;winemenubuilder.exe=d;mscoree=;mshtml="
unset DISPLAY
ending() {
    wineserver -k
    rm -rf "$WINEPREFIX"
}
trap ending EXIT
# The first programs of a prefix stay in the background: started from here, they cannot hold a test's pipe open.
(wineserver -p && timeout 120 wine wineboot -i) </dev/null >/dev/null 2>&1

number=0 failures=0
# A program passes by its code and its own line of totals. Sets code and totals.
passes() { # LOG COMMAND...
    local log=$1
    shift
    timeout -k 5 180 "$@" </dev/null >"$log" 2>&1
    code=$?
    totals=$(sed -nE 's/.*: ([0-9]+ passed, [0-9]+ failed, [0-9]+ skipped)\r?$/\1/p' "$log" | tail -1)
    [ $code -eq 0 ] && [[ "$totals" == *" 0 failed"* ]]
}
run() { # NAME COMMAND...
    local name=$1 log=$build/wine-$1.log
    shift
    if ! passes "$log" "$@"; then
        failures=$((failures + 1))
        echo "FAILED: $name (code $code)"
        tail -40 "$log"
        [[ "$totals" == *" failed"* && "$totals" != *" 0 failed"* ]] || totals="0 passed, 1 failed, 0 skipped"
    fi
    number=$((number + 1))
    echo "$number: $name: $totals"
    sed -nE 's/^( *Test: .*\.\.\.)?(skipped [a-z0-9_]+: .*)/  \2/p' "$log"
}

# Would a crash be noticed? By the tests' own handler, and without it, often, since there a debugger would be in a race.
unnoticed=0
for way in handled unhandled unhandled unhandled unhandled unhandled; do
    ! passes $build/wine-crash.log wine $build/bin/tests/crash_on_purpose.exe $way || unnoticed=$((unnoticed + 1))
done
echo "0: crashing tests are noticed: $((unnoticed == 0)) passed, $((unnoticed > 0)) failed, 0 skipped"
failures=$((failures + unnoticed))

for program in $build/bin/tests/{test,fuzz}_*.exe; do
    run "$(basename "$program" .exe)" wine "$program"
done
for program in open read series restart client_sessions answers; do
    run "test_${program}_in_sections" env GPUTAP_TEST_NAMED_PLACES=1 wine $build/bin/tests/test_$program.exe
done
run interop env GPUTAP_BIN="$native" GPUTAP_WINDOWS_BIN="$PWD/$build/bin" python3 -B tests/scenario/wine_interop.py
[ $failures -eq 0 ]
