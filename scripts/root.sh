# shellcheck shell=bash
# Another release of Debian, as a root file system in the cache: what was built here runs there on that release's Vulkan
# loader, validation layer and drivers. Sourced after scripts/setup.sh and scripts/lane.sh, never run.
#
#   root RELEASE                  make it, if it is not there yet
#   root RELEASE -- COMMAND...    and run a command in it, in this folder
#   root RELEASE quick|all        and run tests in it: those that are quick and depend on the driver, or all that can run

ROOTS_CACHE=$CACHE/roots
# What tests that were built elsewhere need: the three parts of Vulkan, and what shaderc's static library leaves to the system.
ROOT_PACKAGES=(libvulkan1 mesa-vulkan-drivers vulkan-validationlayers libstdc++6)

# Roots are made and entered by root alone, in a mount namespace, so that nothing stays mounted whatever happens.
can_have_roots() {
    can_install && command -v chroot >/dev/null && as_root unshare --mount true 2>/dev/null
}

# make_root RELEASE: by debootstrap, from where the system's own packages come from.
make_root() {
    local release=$1 dir mirror
    mirror=$(system_mirror) || return 1
    mkdir -p "$ROOTS_CACHE"
    command -v debootstrap >/dev/null || [[ -x /usr/sbin/debootstrap ]] || install_packages debootstrap || return 1
    note "making $ROOTS_CACHE/$release: Debian's $release with its Vulkan, about 600 MB"
    dir=$(mktemp -d "$ROOTS_CACHE/new.XXXXXX")
    # A folder of mode 0700 would be the root folder of the new system.
    if as_root chmod 755 "$dir" &&
        as_root env PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase "$release" "$dir" "$mirror" &&
        as_root chroot "$dir" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            apt-get install -y --no-install-recommends "${ROOT_PACKAGES[@]}" &&
        as_root chroot "$dir" apt-get clean; then
        as_root mv -T "$dir" "$ROOTS_CACHE/$release"
    else
        as_root rm -rf --one-file-system "$dir"
        return 1
    fi >>"$SETUP_LOG" 2>&1
}

# in_root RELEASE DIR COMMAND...: runs a command in the root, in a folder of this repository. The repository and the target
# folder are where they are outside, since tests know files of both by their paths. HOME is the root's own, and the
# environment says nothing of this system's Vulkan and caches.
in_root() {
    local release=$1 dir=$2 target=${CARGO_TARGET_DIR:-target}
    shift 2
    # shellcheck disable=SC2016 # The inner shell's own variables.
    as_root unshare --mount bash -euc '
        root=$1 dir=$2
        for shared in "$3" "$4" /proc /dev /sys; do
            mkdir -p "$root$shared"
            mount --rbind "$shared" "$root$shared"
        done
        shift 4
        for name in $(compgen -e | grep -E "^(VK_|XDG_|LD_|TIDEMILL_)"); do unset "$name"; done
        exec chroot "$root" /usr/bin/env -C "$dir" HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1 "$@"
    ' in_root "$ROOTS_CACHE/$release" "$dir" "$PWD" "$(mkdir -p "$target" && cd "$target" && pwd -P)" "$@"
}

# test_binaries ARGS...: builds tests as `cargo test ARGS` does; of each the folder that it runs in, and the binary. Programs
# that tests start are built too, and are no tests: their profile says so.
test_binaries() {
    cargo test --no-run --message-format=json "$@" |
        sed -n '/"reason":"compiler-artifact"/ { /"profile":{[^}]*"test":true/ s/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"executable":"\([^"]*\)".*/\1 \2/p }'
}

# root_tests RELEASE quick|all: the built tests, a binary of each lane at a time.
root_tests() {
    local release=$1 which=$2 binaries beside log status=0
    local -a tests=(--test gpu --test faults --test embed --test discrete --test isa)
    if [[ $which == all ]]; then tests=(--lib --tests); fi
    # All packages, as `./dev test` has built them: with fewer, dependencies have other features, and are built again.
    binaries=$(test_binaries "${WORKSPACE[@]}" --features "$FEATURES" "${tests[@]}")
    [[ -n $binaries ]] || die "no tests were built"
    log=$(mktemp)
    root_lane "$release" "$which" beside <<<"$binaries" >"$log" 2>&1 &
    beside=$!
    root_lane "$release" "$which" others <<<"$binaries" || status=$?
    wait "$beside" || status=$?
    cat "$log"
    rm "$log"
    return $status
}

# root_lane RELEASE quick|all LANE: those of a lane, of what test_binaries prints.
root_lane() {
    local release=$1 which=$2 lane=$3 dir binary name
    local -a arguments
    while read -r dir binary; do
        # Those of the C library compile programs, and the root has no compiler.
        if [[ $dir == */capi || $(lane_of "$binary") != "$lane" ]]; then continue; fi
        name=$(basename "$binary")
        name=${name%-*}
        arguments=()
        # The table of cases, random graphs and the table of accuracy take minutes.
        if [[ $name-$which == gpu-quick ]]; then
            arguments=(--skip cases:: --skip properties:: --skip accuracy::)
        fi
        printf '%s on %s\n' "$name" "$release"
        in_root "$release" "$dir" "$binary" "${arguments[@]}" </dev/null || return
    done
}

# long_in_root RELEASE: all tests there, where this machine can.
long_in_root() {
    if can_have_roots; then
        root "$1" all
    else
        note "NOT RUN on $1: a root file system needs apt, root and mounts"
    fi
}

root() {
    local release=${1:-} usage="usage: ./dev root RELEASE [quick | all | -- COMMAND...]"
    [[ $release =~ ^[a-z]+$ ]] || die "$usage"
    shift
    can_have_roots || die "a root file system needs apt, root and mounts, which this machine does not give"
    [[ -d $ROOTS_CACHE/$release ]] || make_root "$release" || die "no root of $release (log: $SETUP_LOG)"
    case ${1:-} in
        "") note "$ROOTS_CACHE/$release is there" ;;
        quick | all)
            need_cargo
            setup
            root_tests "$release" "$1"
            ;;
        --)
            shift
            in_root "$release" "$PWD" "$@"
            ;;
        *) die "$usage" ;;
    esac
}
