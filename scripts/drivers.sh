# shellcheck shell=bash
# The table of cases on every software driver that can be had: Mesa's of three releases, and SwiftShader. Sourced after
# scripts/root.sh, never run.
#
#   drivers [--lavapipe] [ARGS...]   runs `tidemill cases ARGS` on each, or on lavapipe alone, which takes less time; a line
#                                    for each tells the driver and its version

LAVAPIPE_CACHE=$CACHE/lavapipe
LAVAPIPE_ROOT=trixie

# unpack_lavapipe FOLDER RELEASE: the driver of RELEASE-backports, and a manifest for it.
unpack_lavapipe() {
    local folder=$1 release=$2 dir mirror
    local -a apt
    if [[ -e $folder/lvp_icd.json ]]; then return 0; fi
    command -v dpkg >/dev/null || return 1
    mirror=$(system_mirror) || return 1
    note "unpacking mesa-vulkan-drivers of $release-backports to $folder: its lavapipe"
    mkdir -p "$CACHE"
    dir=$(mktemp -d "$CACHE/lavapipe.XXXXXX")
    (
        cd "$dir" || exit 1
        apart "$dir" "deb $mirror $release-backports main" || exit 1
        "${apt[@]}" download "mesa-vulkan-drivers/$release-backports" || exit 1
        dpkg -x mesa-vulkan-drivers_*.deb unpacked || exit 1
        mkdir -p "$folder"
        mv unpacked/usr/lib/*/libvulkan_lvp.so "$folder/" || exit 1
    ) >>"$SETUP_LOG" 2>&1 || {
        rm -r "$dir"
        return 1
    }
    rm -r "$dir"
    cat >"$folder/lvp_icd.json" <<'JSON'
{
    "file_format_version": "1.0.1",
    "ICD": { "library_path": "./libvulkan_lvp.so", "api_version": "1.3.0" }
}
JSON
}

# newest_lavapipe: that of Debian 13's backports wants a newer C library and LLVM than this system may have, so it lies and runs
# in the root of Debian 13.
newest_lavapipe() {
    local root=$ROOTS_CACHE/$LAVAPIPE_ROOT
    can_have_roots || return 1
    [[ -d $root ]] || make_root "$LAVAPIPE_ROOT" || return 1
    if [[ -e $root/opt/lavapipe/lvp_icd.json ]]; then return 0; fi
    as_root chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        apt-get install -y --no-install-recommends libdisplay-info2 libpng16-16t64 >>"$SETUP_LOG" 2>&1 || return 1
    unpack_lavapipe "$LAVAPIPE_CACHE/$LAVAPIPE_ROOT" "$LAVAPIPE_ROOT" || return 1
    as_root mkdir -p "$root/opt/lavapipe" && as_root cp "$LAVAPIPE_CACHE/$LAVAPIPE_ROOT"/* "$root/opt/lavapipe/"
}

# driver NAME COMMAND...: runs it, and prints its name, its last line and the time it took. Failures are told in full.
driver() {
    local name=$1 log start=$SECONDS status=0
    shift
    log=$(mktemp)
    "$@" </dev/null >"$log" 2>&1 || status=$?
    if ((status)); then cat "$log"; fi
    printf '%-28s %s, %d s\n' "$name" "$(grep ' cases, ' "$log" | tail -n 1)" $((SECONDS - start))
    rm "$log"
    return $status
}

drivers() {
    local program codename failed=0 missing=() manifest swiftshader=yes
    if [[ ${1:-} == --lavapipe ]]; then
        swiftshader=
        shift
    fi
    need_cargo
    setup
    cargo build --quiet "${WORKSPACE[@]}" --features "$FEATURES" --bin tidemill "${LIKE_TESTS[@]}"
    program=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/tidemill
    # Not the device that a variable names, but the only one that there is then.
    unset TIDEMILL_DEVICE
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    local -a here=(env NODEVICE_SELECT=1) each=()
    for manifest in /usr/share/vulkan/icd.d/lvp_icd*.json; do
        if [[ -e $manifest && $manifest != *i686* ]]; then each+=("$manifest"); fi
    done
    if unpack_lavapipe "$LAVAPIPE_CACHE/$codename" "$codename"; then
        each+=("$LAVAPIPE_CACHE/$codename/lvp_icd.json")
    else
        missing+=("lavapipe of $codename-backports (log: $SETUP_LOG)")
    fi
    if [[ -z $swiftshader ]]; then
        :
    elif setup_chromium_vulkan; then
        each+=("$CHROMIUM_CACHE/swiftshader/vk_swiftshader_icd.json")
    else
        missing+=("SwiftShader of Debian's package chromium-common")
    fi
    for manifest in "${each[@]}"; do
        here=(env NODEVICE_SELECT=1 "VK_DRIVER_FILES=$manifest" "VK_ICD_FILENAMES=$manifest" "$program")
        driver "$("${here[@]}" info --json | driver_name)" "${here[@]}" cases "$@" || failed=1
    done
    if newest_lavapipe; then
        here=(in_root "$LAVAPIPE_ROOT" "$PWD" env NODEVICE_SELECT=1 VK_DRIVER_FILES=/opt/lavapipe/lvp_icd.json "$program")
        driver "$("${here[@]}" info --json | driver_name)" "${here[@]}" cases "$@" || failed=1
    else
        missing+=("lavapipe of $LAVAPIPE_ROOT-backports: that needs apt, root and mounts (log: $SETUP_LOG)")
    fi
    for manifest in "${missing[@]}"; do note "NOT RUN: $manifest"; done
    return $failed
}

# driver_name: of what `tidemill info --json` prints, the driver with its version, without what stands in brackets.
driver_name() {
    sed -n 's/.*"driver": *"\([^"(]*[^"( ]\).*/\1/p' | head -n 1
}
