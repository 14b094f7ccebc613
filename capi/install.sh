#!/usr/bin/env bash
# usage: capi/install.sh [--dev] PREFIX
# Builds the C library (--dev: without optimisation) and puts it, its headers, tidemill.pc and the CMake package below PREFIX.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=release
if [[ ${1:-} == --dev ]]; then
    profile=dev
    shift
fi
if (($# != 1)); then
    sed -n "2s/^# //p" capi/install.sh >&2
    exit 2
fi
if [[ $(uname) != Linux ]]; then
    echo "error: this recipe is for Linux; elsewhere: cargo build --release -p tidemill-capi, and capi/include/tidemill.h" >&2
    exit 1
fi
prefix=$(cd "$called_from" && realpath -m "$1")

# TIDEMILL_C_BUILD: what cargo builds instead, in tests: the workspace as they have built it, so that nothing is compiled twice.
read -ra what <<<"${TIDEMILL_C_BUILD:--p tidemill-capi}"
cargo build --quiet --profile "$profile" "${what[@]}"
built=${CARGO_TARGET_DIR:-target}/${profile/dev/debug}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' capi/Cargo.toml | head -n 1)
abi=$(sed -n 's/^#define TM_ABI_VERSION \([0-9]*\)$/\1/p' capi/include/tidemill.h)

# fill FILE TO: a file with its @NAMES@ replaced.
fill() {
    sed -e "s/@VERSION@/$version/g" -e "s/@ABI@/$abi/g" "$1" >"$2"
}

mkdir -p "$prefix/include/tidemill" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/tidemill"
install -m 644 capi/include/tidemill.h capi/include/tidemill.hpp "$prefix/include/"
install -m 644 capi/include/tidemill/*.hpp "$prefix/include/tidemill/"
install -m 755 "$built/libtidemill_c.so" "$prefix/lib/libtidemill_c.so.$abi"
ln -sf "libtidemill_c.so.$abi" "$prefix/lib/libtidemill_c.so"
install -m 644 "$built/libtidemill_c.a" "$prefix/lib/"
fill capi/pkg/tidemill.pc.in "$prefix/lib/pkgconfig/tidemill.pc"
fill capi/pkg/tidemillConfig.cmake.in "$prefix/lib/cmake/tidemill/tidemillConfig.cmake"
fill capi/pkg/tidemillConfigVersion.cmake.in "$prefix/lib/cmake/tidemill/tidemillConfigVersion.cmake"
