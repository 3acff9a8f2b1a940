#!/bin/sh
# Installs what is missing, builds, starts broker and bridge on this machine, prints the address. Ctrl-C stops everything.
set -eu
cd "$(dirname "$0")"

usage() {
    cat <<'TEXT'
usage: ./run.sh [--simulate MODEL[:COUNT]]... [--sim-load static|wave|workflow] [--root DIR] [--port PORT] [--instance NAME]

  --simulate M[:N]  add N simulated GPUs of model M (strix-halo, mi300x, rtx4090, ...) to the real ones; may be given again
  --sim-load KIND   what simulated GPUs do: static, wave, workflow
  --root DIR        read /sys and /proc below DIR: a dump of another machine
  --port PORT       port of the page on 127.0.0.1 and ::1 (default 8288)
  --instance NAME   name of this broker for its readers (default: default)
TEXT
}

complain() {
    echo "run.sh: $1" >&2
    usage >&2
    exit 2
}

port=8288
instance=${GPUTAP_INSTANCE:-default}
simulated=${GPUTAP_SIM:-}
broker_arguments=
# Arguments are kept with their spaces: one a line, turned into "$@" below.
append() { broker_arguments="$broker_arguments$1
"; }
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) usage; exit 0 ;;
    --simulate | --sim-load | --root | --port | --instance)
        [ $# -ge 2 ] || complain "$1 wants a value"
        case $1 in
        --port) port=$2 ;;
        --instance) instance=$2 ;;
        --root) append --root; append "$(cd "$2" 2>/dev/null && pwd || echo "$2")" ;;
        *) [ "$1" = --simulate ] && simulated=1; append "$1"; append "$2" ;;
        esac
        shift 2
        ;;
    *) complain "unknown option $1" ;;
    esac
done
case $port in
'' | *[!0-9]*) complain "bad port '$port'" ;;
esac
[ "$port" -ge 1 ] && [ "$port" -le 65535 ] || complain "bad port '$port'"

build=build/release
if [ ! -x $build/bin/gputapd ] || [ ! -x $build/bin/gputap-bridge ] || [ ! -f $build/.built ] ||
    [ -n "$(find CMakeLists.txt shm client broker bridge web -newer $build/.built -type f -print -quit)" ]; then
    scripts/install-deps.sh gcc libc6-dev cmake ninja-build pkg-config libwebsockets-dev libjansson-dev libdrm-dev zlib1g-dev
    echo "Building (once; a later run starts at once)"
    mkdir -p build
    cmake --preset release -DGPUTAP_TESTS=OFF >build/release.log 2>&1 || { cat build/release.log >&2; exit 1; }
    cmake --build --preset release >build/release.log 2>&1 || { tail -40 build/release.log >&2; exit 1; }
    touch $build/.built
fi

broker_pid=
bridge_pid=
stop() {
    trap - INT TERM EXIT
    [ -z "$bridge_pid" ] || kill "$bridge_pid" 2>/dev/null || true
    [ -z "$broker_pid" ] || kill "$broker_pid" 2>/dev/null || true
    wait 2>/dev/null || true
}
trap 'stop; exit 0' INT TERM
trap stop EXIT

log=$(mktemp -d "${TMPDIR:-/tmp}/gputap-run.XXXXXX")
trap 'stop; rm -rf "$log"' EXIT
trap 'stop; rm -rf "$log"; exit 0' INT TERM

old_ifs=$IFS
IFS='
'
# shellcheck disable=SC2086
set -- $broker_arguments
IFS=$old_ifs
# Waits until a program that was just started says that it is ready; ends with its exit code if it ends first.
await() { # PID LOG
    waited=0
    until grep -qs '^gputap.* ready' "$2"; do
        kill -0 "$1" 2>/dev/null || { code=0; wait "$1" || code=$?; exit $((code ? code : 1)); }
        waited=$((waited + 1))
        [ $waited -lt 300 ] || { echo "run.sh: a program does not get ready" >&2; exit 1; }
        sleep 0.05
    done
}

$build/bin/gputapd --instance "$instance" --period 200 "$@" >"$log/broker" &
broker_pid=$!
await $broker_pid "$log/broker"
found=$(sed -n 's/.*, \([0-9]*\) devices\{0,1\}$/\1/p' "$log/broker")
$build/bin/gputap-bridge --instance "$instance" --listen "127.0.0.1:$port" --listen "[::1]:$port" >"$log/bridge" &
bridge_pid=$!
await $bridge_pid "$log/bridge"

if [ "${found:-0}" -eq 0 ]; then
    echo "No GPU was found here: the page shows CPU and memory. To see what a GPU looks like: ./run.sh --simulate strix-halo --sim-load wave"
elif [ -n "$simulated" ]; then
    echo "Simulated GPUs are among the $found shown; they say so."
fi
echo "gputap ready: http://127.0.0.1:$port/"
# Whichever ends first ends the other.
while kill -0 $broker_pid 2>/dev/null && kill -0 $bridge_pid 2>/dev/null; do
    sleep 0.5 &
    wait $! || true
done
echo "run.sh: a program ended" >&2
exit 1
