#!/usr/bin/env bash
# Evidence for docs/decisions.md, "shaderc is a feature": can the shaderc crate be linked with the system's library, and
# with the archive that `./dev setup` makes? Works in a temporary folder; needs cargo and what `./dev setup` installs.
set -euo pipefail
cache=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemill}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir src
echo 'fn main() {}' >src/main.rs
cat >Cargo.toml <<'TOML'
[package]
name = "shaderc-debian"
version = "0.0.0"
edition = "2024"

[build-dependencies]
shaderc = "=0.10.1"
TOML
cat >build.rs <<'RUST'
fn main() {
    let compiler = shaderc::Compiler::new().unwrap();
    let source = "#version 450\nlayout(local_size_x = 64) in;\nvoid main() {}";
    let kind = shaderc::ShaderKind::Compute;
    let module = compiler.compile_into_spirv(source, kind, "empty.comp", "main", None).unwrap();
    println!("cargo:warning=compiled to {} words of SPIR-V", module.as_binary().len());
}
RUST

# report NAME [SETTING...]: build under these settings; on failure, the first undefined symbol is enough.
report() {
    local name=$1
    shift
    if env -u SHADERC_LIB_DIR -u VULKAN_SDK CARGO_TARGET_DIR="$work/$name" "$@" cargo build >"$name.log" 2>&1; then
        echo "$name: $(grep -o 'compiled to .*' "$name.log")"
    else
        echo "$name: FAILS: $(grep -m 1 -oE 'undefined (reference|symbol).*' "$name.log" || tail -n 1 "$name.log")"
    fi
}

# shellcheck source=/dev/null
(. /etc/os-release && echo "$PRETTY_NAME, libshaderc-dev $(dpkg-query -W -f='${Version}' libshaderc-dev)")
report system
report archive SHADERC_LIB_DIR="$cache/shaderc"
