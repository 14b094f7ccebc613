#!/usr/bin/env bash
# drm-shim.sh FOLDER RESULT: builds Mesa's drm-shim for Intel from FOLDER, an unpacked source package of Mesa, into the
# library RESULT. Preloaded, it answers a driver's questions to the kernel as one of Intel's GPUs would, and does nothing else.
# Needs gcc, python3-mako and libdrm-dev. Only what the library consists of is compiled: some seconds.
set -euo pipefail
source=$(cd "$1" && pwd)
result=$2
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
mkdir -p "$made/intel/dev"

# Debian's own python, which has Debian's own mako.
cd "$source/src/intel/dev"
/usr/bin/python3 gen_wa_helpers.py mesa_defs.json "$made/intel/dev/intel_wa.h" "$made/intel/dev/intel_wa.c"
/usr/bin/python3 intel_device_info_gen_h.py "$made/intel/dev/intel_device_info_gen.h"
/usr/bin/python3 intel_device_info_serialize_gen_c.py "$made/intel/dev/intel_device_info_serialize_gen.c"
touch "$made/git_sha1.h"

cd "$source"
includes=(-Iinclude -Iinclude/drm-uapi -Isrc -Isrc/util -Isrc/intel -Isrc/intel/dev -Isrc/intel/common
    -I"$made" -I"$made/intel" -I"$made/intel/dev" -I/usr/include/libdrm)
defines=(-D_GNU_SOURCE -DNDEBUG -DHAVE_PTHREAD -DHAVE_STRUCT_TIMESPEC -DHAVE_TIMESPEC_GET -DHAVE_SECURE_GETENV
    -DHAVE_PROGRAM_INVOCATION_NAME -DHAVE_MEMFD_CREATE -DHAVE_REALLOCARRAY -DHAVE_DLFCN_H -DHAVE_ENDIAN_H -DHAVE_FLOCK
    -DHAVE_MKOSTEMP -DHAVE_STRTOF -DHAVE_LINUX_FUTEX_H -DHAVE_DL_ITERATE_PHDR -DHAVE___BUILTIN_EXPECT
    -DHAVE___BUILTIN_UNREACHABLE -DHAVE_FUNC_ATTRIBUTE_PACKED -DHAVE_FUNC_ATTRIBUTE_UNUSED -DHAVE_FUNC_ATTRIBUTE_WEAK
    -DMAJOR_IN_SYSMACROS -DUSE_GCC_ATOMIC_BUILTINS -DUTIL_ARCH_LITTLE_ENDIAN=1)
sources=(
    src/drm-shim/{device,drm_shim}.c
    src/intel/tools/intel_noop_drm_shim.c
    src/intel/dev/{intel_device_info,intel_hwconfig,i915/intel_device_info,xe/intel_device_info}.c
    src/intel/common/{intel_gem,i915/intel_gem,xe/intel_gem}.c
    "$made"/intel/dev/{intel_wa,intel_device_info_serialize_gen}.c
    src/util/{anon_file,futex,hash_table,log,os_file,os_misc,parson,ralloc,set,simple_mtx,u_debug,u_process,vma}.c
)
gcc -std=gnu11 -O1 -w -fPIC -shared -fvisibility=hidden -ffunction-sections -Wl,-z,defs -Wl,--gc-sections \
    "${includes[@]}" "${defines[@]}" "${sources[@]}" -o "$result" -ldrm -ldl -lm -lpthread
