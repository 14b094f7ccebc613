#!/usr/bin/env bash
# Test binaries run in two lanes at once. Those whose tests take turns, and so leave a core idle, run `beside` all `others`.
#
#   lane.sh BINARY [ARGS]   as cargo's runner: runs a binary of the lane TIDEMILL_LANE, and skips one of the other
#   source lane.sh          lane_of BINARY prints its lane

lane_of() {
    local name=${1##*/}
    case ${name%-*} in
        cache | cpu | drawn | faults | isa) printf 'beside\n' ;;
        *) printf 'others\n' ;;
    esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    if [[ $(lane_of "$1") != "${TIDEMILL_LANE:?beside or others}" ]]; then exit 0; fi
    unset TIDEMILL_LANE
    exec "$@"
fi
