#!/bin/sh
# Makes a wheel of the Python package and the library, from what a build installs: build-wheel.sh [BUILD [OUT [PLATFORM]]]
#
#   BUILD     folder of a finished build (default build/release)
#   OUT       where the wheel goes (default build/wheel)
#   PLATFORM  tag of the wheel (default: this machine's, such as linux_x86_64)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build/release}
out=${2:-$here/build/wheel}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install "$build/client" --prefix "$stage" >/dev/null
python3 -B "$here/scripts/wheel.py" "$stage" "$here" "$out" ${3:+"$3"}
