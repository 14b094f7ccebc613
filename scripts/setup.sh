# shellcheck shell=bash
# What ./dev and .ci/run share: finding and installing what a build, a run and the tests need.
# Sourced, never run. Everything said here goes to stderr, so that `./dev bench --json` stays clean.
#
#   setup [--ci]   install what is missing; leaves FEATURES and SHADERC_LIB_DIR for cargo, and SETUP_MISSING

CACHE=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIDEMILL_CACHE}/.cache}/tidemill}
SHADERC_CACHE=$CACHE/shaderc
CHROMIUM_CACHE=$CACHE/chromium-vulkan
MESA_CACHE=$CACHE/mesa
SHIM_CACHE=$CACHE/drm-shim
MDBOOK_VERSION=0.5.4
MDBOOK=$CACHE/mdbook-$MDBOOK_VERSION/bin/mdbook
# Where the wheel is built and tested. The versions are part of the name: another one is another folder.
MATURIN_VERSION=1.16.0
NUMPY_VERSION=2.4.6
PYTHON_ENV=$CACHE/python-maturin-$MATURIN_VERSION-numpy-$NUMPY_VERSION
SETUP_LOG=$CACHE/setup.log

# One set for all of the workspace, so that nothing is compiled twice.
FEATURES=tidemill/async,tidemill/tracing
# All but the example with a window, as one build. All of it even for one test: cargo gives dependencies the features that the
# packages it is told of ask for, and another set of features is another build of nearly everything.
WORKSPACE=(--workspace --exclude embed_window)
# What makes `cargo build` give dependencies the features that they have in tests: without a test it leaves out what
# dev-dependencies ask for. This one depends on nothing, so that it adds nothing to the build.
LIKE_TESTS=(--test scripts)
SETUP_MISSING=()

note() { printf 'setup: %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# --- What is there: file checks only, so that a second run takes no time ---------------------------------------------

# exists PATTERN...: does any of these globs name a file?
exists() {
    local pattern
    for pattern in "$@"; do
        if compgen -G "$pattern" >/dev/null; then return 0; fi
    done
    return 1
}

# manifest KIND GLOB: does a folder where the Vulkan loader looks hold such a file? KIND is icd.d or explicit_layer.d.
manifest() {
    local kind=$1 glob=$2 dir
    local -a dirs
    IFS=: read -r -a dirs <<<"${XDG_CONFIG_HOME:-$HOME/.config}:${XDG_CONFIG_DIRS:-/etc/xdg}:/etc:/usr/local/etc:\
${XDG_DATA_HOME:-$HOME/.local/share}:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}:/usr/local/share:/usr/share:\
/opt/homebrew/share:/opt/homebrew/etc"
    for dir in "${dirs[@]}"; do
        if exists "$dir/vulkan/$kind/$glob"; then return 0; fi
    done
    return 1
}

have_compiler() { command -v cc >/dev/null && command -v c++ >/dev/null; }

have_loader() {
    exists /usr/lib/*/libvulkan.so.1 /usr/lib/libvulkan.so.1 /usr/lib64/libvulkan.so.1 /usr/local/lib/libvulkan.so.1 \
        "${VULKAN_SDK:-/nowhere}"/lib/libvulkan.* /opt/homebrew/lib/libvulkan.1.dylib /usr/local/lib/libvulkan.1.dylib
}

# For the C program that makes a device of its own, and links with the loader.
have_headers() {
    exists /usr/include/vulkan/vulkan.h /usr/local/include/vulkan/vulkan.h /opt/homebrew/include/vulkan/vulkan.h &&
        exists /usr/lib/*/libvulkan.so /usr/lib/libvulkan.so /usr/lib64/libvulkan.so /usr/local/lib/libvulkan.so \
            /opt/homebrew/lib/libvulkan.dylib
}

# A driver's file alone says little: Mesa's package brings those of all its GPUs to every machine. So either lavapipe,
# which needs no hardware, or any other driver together with a device node; or the user says which driver to take.
have_driver() {
    if [[ -n ${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}${VK_ADD_DRIVER_FILES:-} ]]; then return 0; fi
    if manifest icd.d 'lvp_icd*.json'; then return 0; fi
    if [[ $(uname) == Darwin ]]; then
        manifest icd.d '*.json'
    elif exists '/dev/nvidia[0-9]*'; then
        manifest icd.d 'nvidia*.json' || { exists '/dev/dri/render*' && manifest icd.d '*.json'; }
    else
        exists '/dev/dri/render*' /dev/dxg && manifest icd.d '*.json'
    fi
}

have_layer() {
    exists "${VK_LAYER_PATH:-/nowhere}/VkLayer_khronos_validation.json" ||
        manifest explicit_layer.d 'VkLayer_khronos_validation.json'
}

# A display without a screen, what takes pictures of it, and the libraries that winit opens.
have_display() {
    command -v Xvfb >/dev/null && command -v import >/dev/null && command -v convert >/dev/null &&
        exists '/usr/lib/*/libX11-xcb.so.1' && exists '/usr/lib/*/libXcursor.so.1' &&
        exists '/usr/lib/*/libXi.so.6' && exists '/usr/lib/*/libxkbcommon-x11.so.0'
}

have_renderdoc() { command -v renderdoccmd >/dev/null && /usr/bin/python3 -c 'import renderdoc' 2>/dev/null; }

# --- The package manager ---------------------------------------------------------------------------------------------

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

can_install() { command -v apt-get >/dev/null && { [[ $(id -u) == 0 ]] || command -v sudo >/dev/null; }; }

# Runs an apt command; when that fails, refreshes the package index (a fresh machine has none) and tries once more.
with_index() {
    if "$@" >>"$SETUP_LOG" 2>&1; then return 0; fi
    note "refreshing the package index"
    as_root apt-get update >>"$SETUP_LOG" 2>&1 || true
    if "$@" >>"$SETUP_LOG" 2>&1; then return 0; fi
    tail -n 5 "$SETUP_LOG" >&2
    note "failed: $* (whole log: $SETUP_LOG)"
    return 1
}

install_packages() {
    with_index as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# system_mirror: where the packages of this system's own release come from, if that is a Debian.
system_mirror() {
    local codename mirror
    command -v apt-get >/dev/null || return 1
    codename=$(. /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME") || return 1
    # shellcheck disable=SC2016 # apt's own variables.
    mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
        sed -n "s/ $codename\$//p" | head -n 1)
    [[ -n $mirror ]] && echo "$mirror"
}

# --- shaderc ---------------------------------------------------------------------------------------------------------

# links_shaderc LINKER-ARGS...: is this a shaderc that a program can be linked with, and that starts?
links_shaderc() {
    local dir status=0
    dir=$(mktemp -d "$CACHE/link.XXXXXX")
    # No header: the crate brings its own declarations, too.
    echo 'extern "C" void *shaderc_compiler_initialize(); int main() { return !shaderc_compiler_initialize(); }' \
        >"$dir/main.cpp"
    { c++ "$dir/main.cpp" -o "$dir/main" "$@" -pthread && "$dir/main"; } >>"$SETUP_LOG" 2>&1 || status=1
    rm -r "$dir"
    return "$status"
}

# Debian's libshaderc lacks glslang and SPIRV-Tools (docs/evidence/shaderc-debian.sh), so one archive is made of the
# static libraries of all three.
make_shaderc_archive() {
    local new=$SHADERC_CACHE/new
    rm -rf "$new"
    scripts/shaderc-archive.sh "$new" >>"$SETUP_LOG" 2>&1 || return 1
    links_shaderc "$new/libshaderc_combined.a" || return 1
    mv "$new/libshaderc_combined.a" "$SHADERC_CACHE/libshaderc_combined.a"
    rm -r "$new"
}

# Leaves SHADERC_LIB_DIR exported where needed and `shaderc` in FEATURES, or says that checked-in SPIR-V is used.
setup_shaderc() {
    local -a packages=()
    local package
    if [[ -n ${SHADERC_LIB_DIR:-} ]]; then
        FEATURES=$FEATURES,tidemill/shaderc,tidemill/compile-kernels
        return
    fi
    if [[ ! -e $SHADERC_CACHE/libshaderc_combined.a ]] && have_compiler; then
        mkdir -p "$CACHE"
        # The names and the order in which the shaderc crate takes a system's library.
        if links_shaderc -lshaderc || links_shaderc -lshaderc_shared; then
            FEATURES=$FEATURES,tidemill/shaderc,tidemill/compile-kernels
            return
        fi
        if can_install; then
            for package in libshaderc-dev glslang-dev spirv-tools; do
                if ! dpkg -s "$package" >/dev/null 2>&1; then packages+=("$package"); fi
            done
            if ((${#packages[@]})); then
                note "installing ${packages[*]}: the parts of shaderc, which compiles glsl/"
                install_packages "${packages[@]}" || true
            fi
            note "making $SHADERC_CACHE/libshaderc_combined.a: the system's shaderc does not link by itself"
            make_shaderc_archive || note "that archive does not link, either (log: $SETUP_LOG)"
        fi
    fi
    if [[ -e $SHADERC_CACHE/libshaderc_combined.a ]]; then
        export SHADERC_LIB_DIR=$SHADERC_CACHE
        FEATURES=$FEATURES,tidemill/shaderc,tidemill/compile-kernels
    else
        note "no shaderc that links, so kernels come from the checked-in spirv/ (your own: set SHADERC_LIB_DIR)"
    fi
}

# --- What only CI needs ----------------------------------------------------------------------------------------------

# Debian's chromium-common carries a current validation layer, SwiftShader and the Khronos mock driver. It is unpacked
# into the cache, not installed: no other program's Vulkan changes.
setup_chromium_vulkan() {
    local dir
    if [[ -e $CHROMIUM_CACHE/layer/VkLayer_khronos_validation.json ]]; then return 0; fi
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    note "unpacking chromium-common to $CHROMIUM_CACHE: current validation layer, SwiftShader, mock driver"
    mkdir -p "$CACHE"
    dir=$(mktemp -d "$CACHE/chromium.XXXXXX")
    (
        cd "$dir" || exit 1
        with_index apt-get download chromium-common || exit 1
        dpkg -x chromium-common_*.deb unpacked || exit 1
        mkdir -p new/layer new/swiftshader new/mock
        cd unpacked/usr/lib/chromium || exit 1
        mv libVkLayer_khronos_validation.so ../../../../new/layer/ || exit 1
        mv libvk_swiftshader.so vk_swiftshader_icd.json ../../../../new/swiftshader/ || exit 1
        mv libVkICD_mock_icd.so ../../../../new/mock/ || exit 1
    ) || {
        rm -r "$dir"
        return 1
    }
    cat >"$dir/new/mock/mock_icd.json" <<'JSON'
{
    "file_format_version": "1.0.1",
    "ICD": { "library_path": "./libVkICD_mock_icd.so", "api_version": "1.4.0" }
}
JSON
    cat >"$dir/new/layer/VkLayer_khronos_validation.json" <<'JSON'
{
    "file_format_version": "1.2.0",
    "layer": {
        "name": "VK_LAYER_KHRONOS_validation",
        "type": "GLOBAL",
        "library_path": "./libVkLayer_khronos_validation.so",
        "api_version": "1.4.0",
        "implementation_version": "1",
        "description": "Khronos Validation Layer, from chromium-common",
        "instance_extensions": [
            { "name": "VK_EXT_debug_report", "spec_version": "10" },
            { "name": "VK_EXT_debug_utils", "spec_version": "2" },
            { "name": "VK_EXT_layer_settings", "spec_version": "2" },
            { "name": "VK_EXT_validation_features", "spec_version": "6" }
        ]
    }
}
JSON
    rm -rf "$CHROMIUM_CACHE"
    mv "$dir/new" "$CHROMIUM_CACHE"
    rm -r "$dir"
}

have_callgrind() { command -v valgrind >/dev/null; }

# What `./dev counters` counts instructions with; says what is missing.
setup_callgrind() {
    if ! have_callgrind && can_install; then
        note "installing valgrind: its callgrind counts instructions"
        mkdir -p "$CACHE"
        install_packages valgrind || true
    fi
    have_callgrind || note "still missing, please install: valgrind"
    setup_chromium_vulkan || note "still missing: the mock driver of Debian's package chromium-common"
    have_callgrind && [[ -e $CHROMIUM_CACHE/mock/mock_icd.json ]]
}

# with_current_layer COMMAND...: under that validation layer, which also sees hazards across submissions.
with_current_layer() {
    VK_LAYER_PATH=$CHROMIUM_CACHE/layer \
        VK_LAYER_VALIDATE_SYNC=1 \
        VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1 \
        VK_LAYER_ENABLE_MESSAGE_LIMIT=0 \
        TIDEMILL_CURRENT_LAYER=1 \
        "$@"
}

# What makes the book of docs/, built once from its sources: three minutes of one core. Without its server, which nothing
# here needs.
setup_mdbook() {
    if [[ -x $MDBOOK ]]; then return 0; fi
    note "building mdbook $MDBOOK_VERSION into ${MDBOOK%/bin/*}: it makes the book of docs/"
    mkdir -p "$CACHE"
    env -u CARGO_TARGET_DIR cargo install mdbook --version "$MDBOOK_VERSION" --locked \
        --no-default-features --features search --root "${MDBOOK%/bin/*}" >>"$SETUP_LOG" 2>&1 || return 1
    [[ -x $MDBOOK ]]
}

# An environment of Python with what builds the wheel and what its tests need, from PyPI.
setup_python() {
    if [[ -e $PYTHON_ENV/ready ]]; then return 0; fi
    mkdir -p "$CACHE"
    if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>>"$SETUP_LOG" && can_install; then
        note "installing python3-venv: the wheel is built and tested in an environment of its own"
        install_packages python3 python3-venv || true
    fi
    note "installing maturin $MATURIN_VERSION and numpy $NUMPY_VERSION into $PYTHON_ENV"
    rm -rf "$PYTHON_ENV"
    python3 -m venv "$PYTHON_ENV" >>"$SETUP_LOG" 2>&1 &&
        "$PYTHON_ENV/bin/pip" install --quiet "maturin==$MATURIN_VERSION" "numpy==$NUMPY_VERSION" >>"$SETUP_LOG" 2>&1 &&
        touch "$PYTHON_ENV/ready"
}

# --- A real GPU's compiler ---------------------------------------------------------------------------------------------

have_radv() { manifest icd.d 'radeon_icd*.json'; }

# An apt with an index of its own in a folder, so that nothing that apt knows of the system changes: for the one line of
# sources that is given. Leaves the command in the caller's array `apt`.
apart() {
    local dir=$1
    mkdir -p "$dir/lists/partial"
    echo "$2" >"$dir/apart.list"
    apt=(apt-get -o Dir::Etc::sourcelist="$dir/apart.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$dir/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    "${apt[@]}" update
}

# Debian 12's RADV compiles for RDNA2; that of its backports for RDNA3, too, and the ANV beside it for all of Intel's GPUs
# since Tiger Lake. They are unpacked into the cache.
setup_newer_mesa() {
    local dir codename mirror vendor
    local -a apt
    if [[ -e $MESA_CACHE/radeon_icd.json && -e $MESA_CACHE/intel_icd.json ]]; then return 0; fi
    command -v dpkg >/dev/null || return 1
    mirror=$(system_mirror) || return 1
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    note "unpacking mesa-vulkan-drivers of $codename-backports to $MESA_CACHE: compilers for RDNA3 and for Intel's GPUs"
    mkdir -p "$CACHE"
    dir=$(mktemp -d "$CACHE/mesa.XXXXXX")
    (
        cd "$dir" || exit 1
        apart "$dir" "deb $mirror $codename-backports main" || exit 1
        "${apt[@]}" download "mesa-vulkan-drivers/$codename-backports" || exit 1
        dpkg -x mesa-vulkan-drivers_*.deb unpacked || exit 1
        mkdir new
        mv unpacked/usr/lib/*/libvulkan_{radeon,intel}.so new/ || exit 1
    ) >>"$SETUP_LOG" 2>&1 || {
        rm -r "$dir"
        return 1
    }
    for vendor in radeon intel; do
        cat >"$dir/new/${vendor}_icd.json" <<JSON
{
    "file_format_version": "1.0.1",
    "ICD": { "library_path": "./libvulkan_$vendor.so", "api_version": "1.4.305" }
}
JSON
    done
    rm -rf "$MESA_CACHE"
    mv "$dir/new" "$MESA_CACHE"
    rm -r "$dir"
}

# Mesa's drivers for Intel want a kernel that tells of a GPU. Mesa's own drm-shim tells of one; no package has it, but the
# source package of Debian 13 does. It is built into the cache.
setup_intel_shim() {
    local dir mirror
    local -a apt
    if [[ -e $SHIM_CACHE/intel.so ]]; then return 0; fi
    have_compiler && can_install || return 1
    mirror=$(system_mirror) || return 1
    note "building Mesa's drm-shim to $SHIM_CACHE: with it the compiler for Intel's GPUs starts without one"
    mkdir -p "$SHIM_CACHE"
    exists /usr/include/libdrm/drm.h && /usr/bin/python3 -c 'import mako' 2>/dev/null ||
        install_packages python3-mako libdrm-dev || return 1
    dir=$(mktemp -d "$CACHE/shim.XXXXXX")
    (
        here=$PWD
        cd "$dir" || exit 1
        apart "$dir" "deb-src $mirror trixie main" || exit 1
        "${apt[@]}" source --download-only mesa || exit 1
        tar --wildcards --strip-components=1 -xf mesa_*.orig.tar.xz '*/include' '*/src/drm-shim' '*/src/util' '*/src/c11' \
            '*/src/compiler/*.h' '*/src/intel/common' '*/src/intel/dev' '*/src/intel/tools' || exit 1
        "$here/scripts/drm-shim.sh" . new.so || exit 1
        mv new.so "$SHIM_CACHE/intel.so"
    ) >>"$SETUP_LOG" 2>&1 || {
        rm -r "$dir"
        return 1
    }
    rm -r "$dir"
}

# The least that the test of kernels needs: the compiler for AMD's GPUs that the system's release has.
setup_radv() {
    if ! have_radv && can_install; then
        note "installing mesa-vulkan-drivers: its RADV compiles kernels for AMD's GPUs, without one"
        mkdir -p "$CACHE"
        install_packages mesa-vulkan-drivers || true
    fi
}

# What `./dev isa` compiles with; none of it needs a GPU. Says what is missing.
setup_vendors() {
    setup_radv
    have_radv || SETUP_MISSING+=("RADV (Debian and Fedora mesa-vulkan-drivers, Arch vulkan-radeon)")
    setup_newer_mesa || SETUP_MISSING+=("compilers for RDNA3 and Intel's GPUs (mesa-vulkan-drivers of Debian's backports)")
    setup_intel_shim || SETUP_MISSING+=("Mesa's drm-shim (from the source package of Debian 13; log: $SETUP_LOG)")
}

# --- All of it -------------------------------------------------------------------------------------------------------

# want PACKAGE WHY: adds to the caller's list `packages`.
want() {
    note "installing $1: $2"
    packages+=("$1")
}

setup() {
    local -a packages=()
    local what
    if can_install; then
        have_compiler || want g++ "rustc links with it, and shaderc is C++"
        have_loader || want libvulkan1 "the Vulkan loader"
        have_headers || want libvulkan-dev "a program of C makes a device of its own"
        have_driver || want mesa-vulkan-drivers "there is no Vulkan device here; this brings one that runs on the CPU"
        have_layer || want vulkan-validationlayers "the tests run with validation on"
        if [[ ${1:-} == --ci ]]; then
            command -v chromium >/dev/null || want chromium "the report is opened in a browser"
            have_callgrind || want valgrind "instructions are counted"
            command -v spirv-cross >/dev/null || want spirv-cross "every module is translated for Metal"
            command -v cmake >/dev/null || want cmake "the C library is found by find_package"
            exists /usr/include/GLFW/glfw3.h /usr/local/include/GLFW/glfw3.h || want libglfw3-dev "a program in C++ opens a window"
            command -v pkg-config >/dev/null || want pkg-config "the C library is found by pkg-config"
            if ! have_display; then
                want xvfb "a window is opened without a screen"
                want imagemagick "pictures of it are taken and compared"
                for what in libx11-xcb1 libxcursor1 libxi6 libxkbcommon-x11-0; do
                    want "$what" "winit opens it"
                done
            fi
            if ! have_renderdoc; then
                want renderdoc "captures are converted and replayed"
                want librenderdoc "captures are made"
                want python3-renderdoc "captures are replayed by a script"
            fi
        fi
        if ((${#packages[@]})); then
            mkdir -p "$CACHE"
            install_packages "${packages[@]}" || true
        fi
    fi
    setup_shaderc

    have_compiler || SETUP_MISSING+=("a C and C++ compiler (cc, c++)")
    have_loader || SETUP_MISSING+=("the Vulkan loader (Debian libvulkan1, Fedora vulkan-loader, Arch vulkan-icd-loader, Homebrew vulkan-loader)")
    have_headers || SETUP_MISSING+=("Vulkan's headers (Debian libvulkan-dev, Fedora vulkan-loader-devel and vulkan-headers, Arch vulkan-headers, Homebrew vulkan-headers)")
    have_driver || SETUP_MISSING+=("a Vulkan driver (Debian and Fedora mesa-vulkan-drivers, Arch vulkan-swrast, Homebrew molten-vk)")
    have_layer || SETUP_MISSING+=("the Khronos validation layer (Debian vulkan-validationlayers, Fedora vulkan-validation-layers, Arch vulkan-validation-layers, Homebrew vulkan-validationlayers)")
    if [[ ${1:-} == --ci ]]; then
        [[ $FEATURES == *shaderc* ]] || SETUP_MISSING+=("a shaderc that links")
        command -v chromium >/dev/null || SETUP_MISSING+=("Chromium (Debian chromium)")
        have_callgrind || SETUP_MISSING+=("valgrind (Debian valgrind)")
        command -v spirv-cross >/dev/null || SETUP_MISSING+=("SPIRV-Cross (Debian spirv-cross, Homebrew spirv-cross)")
        command -v cmake >/dev/null || SETUP_MISSING+=("CMake (Debian cmake)")
        command -v pkg-config >/dev/null || SETUP_MISSING+=("pkg-config (Debian pkg-config)")
        have_display || SETUP_MISSING+=("Xvfb and ImageMagick (Debian xvfb, imagemagick)")
        have_renderdoc || SETUP_MISSING+=("RenderDoc (Debian renderdoc, librenderdoc, python3-renderdoc)")
        setup_vendors
        setup_chromium_vulkan || SETUP_MISSING+=("the Vulkan parts of Debian's package chromium-common")
        setup_mdbook || SETUP_MISSING+=("mdbook (cargo install mdbook)")
        setup_python || SETUP_MISSING+=("Python 3.11 with venv, maturin and numpy (log: $SETUP_LOG)")
    fi
    if ((${#SETUP_MISSING[@]})); then
        for what in "${SETUP_MISSING[@]}"; do note "still missing, please install: $what"; done
    fi
}
