#!/usr/bin/env bash
# Makes a libshaderc_combined.a that links, from the static libraries that Debian and Ubuntu have in three packages. Their own
# libshaderc lacks glslang and SPIRV-Tools, so that programs with the shaderc crate do not link (docs/shaderc.md).
#
#   scripts/shaderc-archive.sh FOLDER      # then build with SHADERC_LIB_DIR=FOLDER
#
# Needs the packages libshaderc-dev, glslang-dev and spirv-tools, and binutils. Takes a second.
set -euo pipefail
folder=${1:?usage: shaderc-archive.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
lib_dir=$(dpkg -L libshaderc-dev | grep '/libshaderc_combined\.a$') || {
    echo "shaderc-archive.sh: no libshaderc_combined.a; install libshaderc-dev, glslang-dev and spirv-tools" >&2
    exit 1
}
lib_dir=${lib_dir%/*}
for name in glslang SPIRV-Tools SPIRV-Tools-opt; do
    [[ -e $lib_dir/lib$name.a ]] || {
        echo "shaderc-archive.sh: no $lib_dir/lib$name.a; install glslang-dev and spirv-tools" >&2
        exit 1
    }
done
# What a newer release no longer has (OGLCompiler, HLSL) is left out. Written beside and moved, so that no reader sees a part.
new=$folder/new.a
{
    echo "create $new"
    for name in shaderc_combined glslang MachineIndependent GenericCodeGen OSDependent OGLCompiler HLSL SPIRV \
        SPIRV-Tools-opt SPIRV-Tools; do
        if [[ -e $lib_dir/lib$name.a ]]; then echo "addlib $lib_dir/lib$name.a"; fi
    done
    echo save
    echo end
} | ar -M
mv "$new" "$folder/libshaderc_combined.a"
