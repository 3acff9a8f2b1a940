#!/bin/sh
# Installs what is missing, builds, starts broker and bridge on this machine, prints the address. Ctrl-C stops everything.
set -eu
from=$PWD
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
simulated=
case ${GPUTAP_SIM:-} in
1 | true | yes) simulated=1 ;;
esac
broker_arguments=
# Arguments are kept with their spaces: one a line, turned into "$@" below.
append() { broker_arguments="$broker_arguments$1
"; }
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) usage; exit 0 ;;
    --simulate | --sim-load | --root | --port | --instance)
        [ -n "${2:-}" ] || complain "$1 wants a value"
        case $1 in
        --port) port=$2 ;;
        --instance) instance=$2 ;;
        --root)
            root=$(cd "$from" && cd "$2" 2>/dev/null && pwd) || complain "--root: there is no folder '$2'"
            append --root
            append "$root"
            ;;
        *) [ "$1" = --simulate ] && simulated=1; append "$1"; append "$2" ;;
        esac
        shift 2
        ;;
    *) complain "unknown option $1" ;;
    esac
done
case $port in
*[!0-9]* | ??????*) complain "bad port '$port': 1 to 65535" ;;
esac
[ "$port" -ge 1 ] && [ "$port" -le 65535 ] || complain "bad port '$port': 1 to 65535"

build=build/release
is_built() {
    [ -x $build/bin/gputapd ] && [ -x $build/bin/gputap-bridge ] && [ -f $build/.built ] &&
        [ -z "$(find CMakeLists.txt cmake data shm client broker bridge web -newer $build/.built -type f -print -quit)" ]
}
build() {
    scripts/install-deps.sh gcc libc6-dev cmake ninja-build pkg-config libwebsockets-dev libjansson-dev libdrm-dev zlib1g-dev
    echo "Building (once; a later run starts at once)"
    cmake --preset release -DGPUTAP_TESTS=OFF >build/release.log 2>&1 || { cat build/release.log >&2; exit 1; }
    cmake --build --preset release >build/release.log 2>&1 || { tail -40 build/release.log >&2; exit 1; }
    touch $build/.built
}
if ! is_built; then
    mkdir -p build
    # One run builds at a time. The lock is a subshell's, so that no program started below inherits it.
    (
        flock -n 9 || { echo "Another run builds here: waiting for it"; flock 9; }
        is_built || build
    ) 9>build/.lock
fi

# "$@" from here on: the broker's arguments.
old_ifs=$IFS
IFS='
'
# shellcheck disable=SC2086
set -- --instance "$instance" --period 200 $broker_arguments
IFS=$old_ifs
# Its complaint alone: the usage that follows is of options that are not ours.
if ! problem=$($build/bin/gputapd --check "$@" 2>&1 >/dev/null); then
    line=$(printf '%s\n' "$problem" | sed -n 's/^gputapd: //p' | tail -n 1)
    complain "${line:-$problem}"
fi

broker_pid=
bridge_pid=
log=
stop() {
    trap - INT TERM HUP EXIT
    [ -z "$bridge_pid" ] || kill "$bridge_pid" 2>/dev/null || true
    [ -z "$broker_pid" ] || kill "$broker_pid" 2>/dev/null || true
    wait 2>/dev/null || true
    [ -z "$log" ] || rm -rf "$log"
}
trap 'stop; exit 0' INT TERM HUP
trap stop EXIT
log=$(mktemp -d "${TMPDIR:-/tmp}/gputap-run.XXXXXX")

# Says how a program ended that should not have, and ends as it did.
report() { # NAME PID
    code=0
    wait "$2" || code=$?
    if [ $code -gt 128 ]; then
        echo "run.sh: $1 was ended by signal $(kill -l $((code - 128)))" >&2
    else
        echo "run.sh: $1 ended with exit code $code" >&2
    fi
    exit $((code ? code : 1))
}
# Waits until a program that was just started says that it is ready.
await() { # NAME PID LOG
    waited=0
    until grep -qs '^gputap.* ready' "$3"; do
        if ! kill -0 "$2" 2>/dev/null; then
            [ "$1" != gputap-bridge ] || echo "run.sh: the page cannot be served on port $port: choose another one with --port" >&2
            report "$1" "$2"
        fi
        waited=$((waited + 1))
        [ $waited -lt 300 ] || { echo "run.sh: $1 does not get ready" >&2; exit 1; }
        sleep 0.05
    done
}

# Not every machine has ::1.
six=
if grep -qs '^0\{31\}1 ' /proc/net/if_inet6; then
    six=1
fi
# The bridge first: it waits for a broker, and if its port is taken, no broker has made files yet.
$build/bin/gputap-bridge --instance "$instance" --listen "127.0.0.1:$port" ${six:+--listen "[::1]:$port"} >"$log/bridge" &
bridge_pid=$!
await gputap-bridge $bridge_pid "$log/bridge"
$build/bin/gputapd "$@" >"$log/broker" &
broker_pid=$!
await gputapd $broker_pid "$log/broker"
found=$(sed -n 's/.*, \([0-9]*\) devices\{0,1\}$/\1/p' "$log/broker")

if [ "${found:-0}" -eq 0 ]; then
    echo "No GPU was found here: the page shows CPU and memory. To see what a GPU looks like: ./run.sh --simulate strix-halo --sim-load wave"
elif [ -n "$simulated" ] && [ "$found" -eq 1 ]; then
    echo "The GPU shown is simulated; it says so."
elif [ -n "$simulated" ]; then
    echo "Simulated GPUs are among the $found shown; they say so."
fi
echo "gputap ready: http://127.0.0.1:$port/"
# Whichever ends first ends the other.
while kill -0 $broker_pid 2>/dev/null && kill -0 $bridge_pid 2>/dev/null; do
    sleep 0.5 &
    wait $! || true
done
kill -0 $broker_pid 2>/dev/null || report gputapd $broker_pid
report gputap-bridge $bridge_pid
