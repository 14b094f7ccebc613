#!/usr/bin/env bash
# Evidence for docs/decisions.md, "Reflection on rspirv": what spirv-reflect 0.2.3 makes of a compute shader with two
# storage buffers, a push constant and a specialization constant, by SPIR-V version and build profile, and what rspirv's
# parser makes of the same modules. Works in a temporary folder; needs cargo and the shaderc that `./dev setup` leaves.
set -euo pipefail
cache=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemill}
export SHADERC_LIB_DIR=${SHADERC_LIB_DIR:-$cache/shaderc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir -p src/bin
cat >Cargo.toml <<'TOML'
[package]
name = "reflect"
version = "0.0.0"
edition = "2024"

[dependencies]
rspirv = "0.13"
shaderc = "=0.10.1"
spirv-reflect = "=0.2.3"
TOML
# plain.comp has only what the crate of 2019 could know; spec.comp is what a kernel here looks like.
cat >plain.comp <<'GLSL'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { float data_in[]; };
layout(set = 0, binding = 1) buffer Out { float data_out[]; };
layout(push_constant) uniform Push { uint count; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) data_out[i] = data_in[i] * 2.0;
}
GLSL
sed -e 's/local_size_x = 64/local_size_x_id = 0/' \
    -e '2a layout(constant_id = 1) const uint FACTOR = 2;' \
    -e 's/2\.0/float(FACTOR)/' plain.comp >spec.comp
cat >src/bin/compile.rs <<'RUST'
use shaderc::{CompileOptions, Compiler, EnvVersion, ShaderKind, SpirvVersion, TargetEnv};
fn main() {
    for shader in ["plain", "spec"] {
        let source = std::fs::read_to_string(format!("{shader}.comp")).unwrap();
        for (env, version, suffix) in [
            (EnvVersion::Vulkan1_1, SpirvVersion::V1_3, "1.3"),
            (EnvVersion::Vulkan1_2, SpirvVersion::V1_5, "1.5"),
            (EnvVersion::Vulkan1_3, SpirvVersion::V1_6, "1.6"),
        ] {
            let mut options = CompileOptions::new().unwrap();
            options.set_target_env(TargetEnv::Vulkan, env as u32);
            options.set_target_spirv(version);
            let module = Compiler::new().unwrap()
                .compile_into_spirv(&source, ShaderKind::Compute, shader, "main", Some(&options)).unwrap();
            std::fs::write(format!("{shader}-{suffix}.spv"), module.as_binary_u8()).unwrap();
        }
    }
}
RUST
cat >src/bin/with_spirv_reflect.rs <<'RUST'
fn main() {
    let bytes = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let module = spirv_reflect::ShaderModule::load_u8_data(&bytes).unwrap();
    let bindings = module.enumerate_descriptor_bindings(None).unwrap();
    let kinds: Vec<_> = bindings.iter().map(|b| (b.binding, b.descriptor_type)).collect();
    let push = module.enumerate_push_constant_blocks(None).unwrap();
    println!("{} bindings {kinds:?}, {} push-constant blocks", kinds.len(), push.len());
}
RUST
cat >src/bin/with_rspirv.rs <<'RUST'
// Its parser, not its loader `dr::load_bytes`: that one refuses OpExecutionModeId.
use rspirv::binary::{Consumer, ParseAction};
use rspirv::dr::{Instruction, ModuleHeader, Operand};
use rspirv::spirv::{Decoration, ExecutionMode, Op, StorageClass};
#[derive(Default, Debug)]
struct Found {
    storage_buffers: u32,
    push_constant_blocks: u32,
    read_only: u32,
    spec_ids: u32,
    local_size: Option<ExecutionMode>,
}
impl Consumer for Found {
    fn initialize(&mut self) -> ParseAction { ParseAction::Continue }
    fn finalize(&mut self) -> ParseAction { ParseAction::Continue }
    fn consume_header(&mut self, _: ModuleHeader) -> ParseAction { ParseAction::Continue }
    fn consume_instruction(&mut self, instruction: Instruction) -> ParseAction {
        let has = |operand: Operand| instruction.operands.contains(&operand) as u32;
        match instruction.class.opcode {
            Op::Variable => {
                self.storage_buffers += has(Operand::StorageClass(StorageClass::StorageBuffer));
                self.push_constant_blocks += has(Operand::StorageClass(StorageClass::PushConstant));
            }
            Op::Decorate | Op::MemberDecorate => {
                self.read_only += has(Operand::Decoration(Decoration::NonWritable));
                self.spec_ids += has(Operand::Decoration(Decoration::SpecId));
            }
            Op::ExecutionMode | Op::ExecutionModeId => {
                self.local_size = Some(instruction.operands[1].unwrap_execution_mode());
            }
            _ => {}
        }
        ParseAction::Continue
    }
}
fn main() {
    let bytes = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let mut found = Found::default();
    rspirv::binary::parse_bytes(&bytes, &mut found).unwrap();
    println!("{found:?}");
}
RUST

# run PROFILE BINARY MODULE: its last line of output, or how it died.
run() {
    local status=0
    "target/$1/$2" "$3" >out.log 2>&1 || status=$?
    if ((status)); then
        echo "exit $status: $(grep -v -e '^$' -e panicked -e RUST_BACKTRACE out.log | head -n 1)"
    else
        tail -n 1 out.log
    fi
}

export CARGO_TARGET_DIR=target
cargo build --quiet
cargo build --quiet --release
target/release/compile
echo "both shaders: 2 storage buffers (1 read-only), 1 push-constant block; spec: 2 specialization ids, too"
for shader in plain spec; do
    for version in 1.3 1.5 1.6; do
        echo "$shader, SPIR-V $version"
        for profile in debug release; do
            echo "    spirv-reflect 0.2.3, $profile: $(run "$profile" with_spirv_reflect "$shader-$version.spv")"
        done
        echo "    rspirv 0.13: $(run release with_rspirv "$shader-$version.spv")"
    done
done
