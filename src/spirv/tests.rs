#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use rspirv::spirv::{Decoration, ExecutionModel, Op};

use super::*;

/// `tests/fixtures/make.sh` makes them from the sources beside them.
const BINDINGS: &[u8] = include_bytes!("../../tests/fixtures/bindings.spv");
const SPECIALIZED: &[u8] = include_bytes!("../../tests/fixtures/specialized.spv");
const SPECIALIZED_1_3: &[u8] = include_bytes!("../../tests/fixtures/specialized_1_3.spv");
const UNSIZED: &[u8] = include_bytes!("../../tests/fixtures/unsized.spv");

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn reflect(bytes: &[u8]) -> Reflection {
    Reflection::parse(&words(bytes)).expect("the fixture should be a kernel")
}

/// A copy of a fixture in which each instruction becomes those that `change` returns for it.
fn changed(bytes: &[u8], mut change: impl FnMut(Op, &[u32]) -> Vec<Vec<u32>>) -> Vec<u32> {
    let words = words(bytes);
    let mut result = words[..5].to_vec();
    let mut rest = &words[5..];
    while let Some(first) = rest.first() {
        let (instruction, following) = rest.split_at((first >> 16) as usize);
        let op = Op::from_u32(first & 0xffff).expect("fixtures should have known instructions");
        result.extend(change(op, instruction).concat());
        rest = following;
    }
    result
}

fn summary(binding: &Binding) -> (u32, u32, &str, BindingKind, Access, u32) {
    let Binding { set, binding, kind, access, count, name, .. } = binding;
    (*set, *binding, name, *kind, *access, *count)
}

#[test]
fn bindings_have_kind_access_and_count() {
    use Access::{ReadOnly, ReadWrite, WriteOnly};
    let storage = |fixed_bytes, stride| BindingKind::StorageBuffer { fixed_bytes, stride };
    let texel = |format| BindingKind::StorageTexel { format };
    let found = reflect(BINDINGS);
    assert_eq!(
        found.bindings.iter().map(summary).collect::<Vec<_>>(),
        [
            (0, 0, "source", storage(0, Some(4)), ReadOnly, 1),
            (0, 1, "target", storage(16, Some(16)), WriteOnly, 1),
            (0, 2, "both", storage(48, None), ReadWrite, 1),
            (0, 3, "mixed_access", storage(8, None), ReadWrite, 1),
            (0, 4, "texels", texel(TexelFormat::Rgba32f), ReadOnly, 1),
            (0, 5, "written", texel(TexelFormat::R32ui), WriteOnly, 1),
            (0, 6, "fetched", BindingKind::UniformTexel, ReadOnly, 1),
            (1, 0, "settings", BindingKind::UniformBuffer { bytes: 68 }, ReadOnly, 1),
            (1, 1, "many", storage(0, Some(4)), ReadOnly, 3),
            (1, 2, "picture", BindingKind::Other("image with a sampler"), ReadWrite, 1),
            (2, 0, "Vectors", storage(0, None), ReadOnly, 1),
        ]
    );
    assert_eq!(found.binding(1, 1).map(|binding| binding.count), Some(3));
    let elements: Vec<_> = found.bindings.iter().map(|binding| binding.element).collect();
    let (float, word) = (Some(DType::F32), Some(DType::U32));
    assert_eq!((elements[0], elements[4], elements[5]), (float, float, word), "{elements:?}");
    assert_eq!(found.binding(1, 9), None);
}

#[test]
fn push_constants_reach_to_the_end_of_the_last_member() {
    // The mat3 takes 48 bytes at 64, the vec3 is at 144.
    assert_eq!(reflect(BINDINGS).push_constant_bytes, 156);
    assert_eq!(reflect(SPECIALIZED).push_constant_bytes, 0);
    // Without its last two members it ends with the mat2 at 112.
    let shorter = changed(BINDINGS, |op, instruction| {
        let mut instruction = instruction.to_vec();
        if op == Op::TypeStruct && instruction.len() == 9 {
            instruction.truncate(7);
            instruction[0] = (7 << 16) | op as u32;
        }
        vec![instruction]
    });
    assert_eq!(Reflection::parse(&shorter).map(|found| found.push_constant_bytes), Ok(128));
}

#[test]
fn a_module_says_what_it_needs() {
    let found = reflect(BINDINGS);
    let names = found.capabilities.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names, ["Shader", "Float64", "SampledBuffer", "ImageBuffer"]);
    assert_eq!(found.capabilities[0].code(), 1);
    assert_eq!(found.version, (1, 6));
    assert_eq!(found.entry_point, "main");
}

#[test]
fn a_fixed_local_size_is_literal() {
    let found = reflect(BINDINGS);
    assert_eq!(found.local_size, [8, 4, 2].map(LocalSize::Literal));
    assert_eq!(found.local_size_with(&[(0, 99)]), [8, 4, 2]);
}

#[test]
fn a_specialized_local_size_is_found_in_both_spellings() {
    for (module, version) in [(SPECIALIZED, (1, 6)), (SPECIALIZED_1_3, (1, 3))] {
        let found = reflect(module);
        assert_eq!(found.version, version);
        let expected = [
            LocalSize::Specialized { id: 0, default: 32 },
            LocalSize::Literal(4),
            LocalSize::Specialized { id: 2, default: 1 },
        ];
        assert_eq!(found.local_size, expected);
        assert_eq!(found.local_size_with(&[]), [32, 4, 1]);
        assert_eq!(found.local_size_with(&[(2, 3), (7, 7), (0, 64)]), [64, 4, 3]);
    }
}

#[test]
fn specialization_constants_have_kind_default_and_name() {
    use SpecializationKind::{Bool, F32, I32, Other, U32};
    for module in [SPECIALIZED, SPECIALIZED_1_3] {
        let found = reflect(module);
        let all = found.specializations.iter();
        assert_eq!(
            all.map(|known| (known.id, known.kind, known.default_bits, known.name.as_str()))
                .collect::<Vec<_>>(),
            [
                (0, U32, 32, ""),
                (2, U32, 1, ""),
                (3, U32, 16, "TILE"),
                (10, Bool, 1, "WIDE"),
                (11, I32, 0xffff_fffd, "OFFSET"),
                (12, F32, u64::from(0.5_f32.to_bits()), "SCALE"),
                (13, Other { bits: 64 }, 0.25_f64.to_bits(), "EXACT"),
            ]
        );
        assert_eq!(found.specialization(13).map(|known| known.kind.size_bytes()), Some(8));
        assert_eq!(found.specialization(10).map(|known| known.kind.size_bytes()), Some(4));
        assert_eq!(found.specialization(1), None);
    }
}

#[test]
fn what_is_no_module_is_told_from_a_damaged_one() {
    assert_eq!(Reflection::parse(&[]), Err(ReflectError::TooShort { words: 0 }));
    let text = words(b"#version 460\nvoid main() { }\n...");
    assert_eq!(Reflection::parse(&text), Err(ReflectError::BadMagic { found: u32::from_le_bytes(*b"#ver") }));
    let swapped = words(BINDINGS).iter().map(|word| word.swap_bytes()).collect::<Vec<_>>();
    assert_eq!(Reflection::parse(&swapped), Err(ReflectError::ByteSwapped));
    let mut endless = words(BINDINGS);
    endless[5] &= 0xffff;
    let left = endless.len() - 5;
    assert_eq!(Reflection::parse(&endless), Err(ReflectError::BadInstruction { word: 5, claimed: 0, left }));
}

#[test]
fn a_kernel_has_exactly_one_entry_point_for_compute() {
    let with_model = |model: ExecutionModel, times: usize| {
        let words = changed(BINDINGS, |op, instruction| {
            let mut instruction = instruction.to_vec();
            if op == Op::EntryPoint {
                instruction[1] = model as u32;
                return vec![instruction; times];
            }
            vec![instruction]
        });
        Reflection::parse(&words).expect_err("this is no kernel").to_string()
    };
    let message = with_model(ExecutionModel::Fragment, 1);
    assert_eq!(message, "no compute entry point (GLCompute): `main` is for Fragment");
    let message = with_model(ExecutionModel::GLCompute, 0);
    assert_eq!(message, "no compute entry point (GLCompute): there is none of any kind");
    let message = with_model(ExecutionModel::GLCompute, 2);
    assert_eq!(message, "2 entry points (main, main): a kernel has exactly one, compile one module for each");
}

#[test]
fn a_local_size_must_be_there_and_be_known() {
    let none = changed(BINDINGS, |op, instruction| match op {
        Op::ExecutionModeId => vec![],
        _ => vec![instruction.to_vec()],
    });
    let entry_point = "main".to_owned();
    assert_eq!(Reflection::parse(&none), Err(ReflectError::NoLocalSize { entry_point: entry_point.clone() }));
    // An id that stands for no constant; what `OpSpecConstantOp` computes is unknown in the same way.
    let computed = changed(BINDINGS, |op, instruction| {
        let mut instruction = instruction.to_vec();
        if op == Op::ExecutionModeId {
            instruction[4] = u32::MAX;
        }
        vec![instruction]
    });
    assert_eq!(Reflection::parse(&computed), Err(ReflectError::BadLocalSize { entry_point, axis: 'y' }));
}

#[test]
fn an_array_of_descriptors_needs_a_length() {
    let found = Reflection::parse(&words(UNSIZED)).expect_err("it has no length");
    assert_eq!(found, ReflectError::UnsizedDescriptorArray { set: 1, binding: 7, name: "heap".to_owned() });
}

#[test]
fn resources_need_numbers_of_their_own() {
    let is = |instruction: &[u32], decoration: Decoration, value: u32| {
        instruction.get(2) == Some(&(decoration as u32)) && instruction.get(3) == Some(&value)
    };
    let unnumbered = changed(BINDINGS, |op, instruction| match op {
        Op::Decorate if is(instruction, Decoration::Binding, 4) => vec![],
        _ => vec![instruction.to_vec()],
    });
    assert_eq!(Reflection::parse(&unnumbered), Err(ReflectError::Unnumbered { name: "texels".to_owned() }));
    let clash = changed(BINDINGS, |op, instruction| {
        let mut instruction = instruction.to_vec();
        if op == Op::Decorate && is(&instruction, Decoration::Binding, 4) {
            instruction[3] = 3;
        }
        vec![instruction]
    });
    let message = Reflection::parse(&clash).expect_err("two kinds clash").to_string();
    assert!(message.starts_with("set 0 binding 3 is declared as 1 x "), "{message}");
    assert!(message.contains("storage texel buffer (Rgba32f)"), "{message}");
}

#[test]
fn no_truncation_passes() {
    for module in [BINDINGS, SPECIALIZED, SPECIALIZED_1_3, UNSIZED] {
        let words = words(module);
        for length in 0..words.len() {
            assert!(Reflection::parse(&words[..length]).is_err(), "{length} of {}", words.len());
        }
    }
}

/// Damaged modules may be refused or read as something else; they must not panic, hang or eat memory.
#[test]
fn damaged_words_do_no_harm() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or(0)
    };
    let (mut refused, mut accepted) = (0, 0);
    for module in [BINDINGS, SPECIALIZED, SPECIALIZED_1_3, UNSIZED] {
        let whole = words(module);
        for _ in 0..5_000 {
            let mut words = whole.clone();
            for _ in 0..=random(3) {
                let at = random(words.len());
                words[at] = match random(5) {
                    0 => words[at] ^ (1 << random(32)),
                    1 => 0,
                    2 => u32::MAX,
                    // Another id or opcode in use: the likeliest way to build a circle.
                    3 => words[random(words.len())],
                    _ => u32::try_from(random(256)).unwrap_or(0),
                };
            }
            match Reflection::parse(&words) {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        refused > 1_000 && accepted > 1_000,
        "{refused} refused, {accepted} accepted: a poor mix of damage"
    );
}
