//! What guarding changes of a module, and what it makes of damaged ones.

use rspirv::spirv::GlslStd450Op;

use super::*;
use crate::spirv::Reflection;

/// The fixtures of the other tests, by name.
fn fixtures() -> Vec<(String, Vec<u32>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let files = std::fs::read_dir(folder).expect("the fixtures").map(|entry| entry.expect("an entry").path());
    let modules = files.filter(|path| path.extension().is_some_and(|e| e == "spv"));
    let read = |path: std::path::PathBuf| {
        let bytes = std::fs::read(&path).expect("a fixture");
        let words = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        (path.display().to_string(), words)
    };
    modules.map(read).collect()
}

#[test]
fn a_guarded_module_says_the_same_of_itself() {
    let mut changed = 0;
    for (name, words) in fixtures() {
        let Ok((guarded, _)) = guard(&words) else { continue };
        changed += usize::from(guarded != words);
        let (Ok(before), Ok(after)) = (Reflection::parse(&words), Reflection::parse(&guarded)) else {
            continue;
        };
        assert_eq!(before.bindings, after.bindings, "{name}");
        assert_eq!(before.specializations, after.specializations, "{name}");
        assert_eq!(
            guard(&guarded).map(|(_, shared)| shared),
            guard(&words).map(|(_, shared)| shared),
            "{name}"
        );
    }
    assert!(changed > 5, "{changed} fixtures were changed");
}

#[test]
fn damaged_modules_are_refused_or_guarded_and_never_a_panic() {
    for (_, words) in fixtures() {
        for cut in 0..words.len() {
            let _ = guard(&words[..cut]);
            let mut flipped = words.clone();
            flipped[cut] ^= 0x0001_0007;
            let _ = guard(&flipped);
        }
    }
}

/// What an index goes into: the instruction, the word of it that is the index, and the length.
#[derive(Clone, Copy, Debug)]
struct Indexed {
    op: Op,
    operands: &'static [u32],
    length: u32,
}

/// Stands for the index among the operands.
const INDEX: u32 = 99;
/// What the specialization constant is set to, and what is bound to buffers and texel buffers.
const SPECIALIZED: u32 = 7;
const BOUND: u32 = 6;

const INDEXED: [Indexed; 9] = [
    Indexed { op: Op::AccessChain, operands: &[26, 60, 31, INDEX], length: 4 },
    Indexed { op: Op::InBoundsAccessChain, operands: &[26, 60, 32, INDEX], length: 5 },
    Indexed { op: Op::AccessChain, operands: &[26, 60, 33, INDEX], length: SPECIALIZED },
    Indexed { op: Op::AccessChain, operands: &[26, 60, 34, 41, INDEX], length: BOUND },
    Indexed { op: Op::VectorExtractDynamic, operands: &[4, 60, 40, INDEX], length: 4 },
    Indexed { op: Op::VectorInsertDynamic, operands: &[5, 60, 40, 43, INDEX], length: 4 },
    Indexed { op: Op::ImageRead, operands: &[5, 60, 53, INDEX], length: BOUND },
    Indexed { op: Op::ImageWrite, operands: &[53, INDEX, 40], length: BOUND },
    Indexed { op: Op::ImageTexelPointer, operands: &[26, 60, 35, INDEX, 41], length: BOUND },
];

/// A module with one instruction in its function, which takes an index: a constant, or 52, which is loaded. 31 is a
/// vector, 32 an array of five, 33 one of specialized length, 34 a buffer that ends with an array, 35 a texel buffer,
/// 40 a vector's value.
fn module(op: Op, operands: &[u32], index_type: [u32; 2], constant: Option<u32>) -> Vec<u32> {
    let mut words = vec![0x0723_0203, 0x0001_0300, 0, 100, 0];
    let mut put = |op: Op, operands: &[u32]| emit(&mut words, op, operands);
    put(Op::MemoryModel, &[0, 1]);
    put(Op::Decorate, &[8, Decoration::SpecId as u32, 9]);
    put(Op::TypeVoid, &[1]);
    put(Op::TypeFunction, &[2, 1]);
    put(Op::TypeInt, &[3, index_type[0], index_type[1]]);
    put(Op::TypeInt, &[13, 32, 1 - index_type[1]]);
    put(Op::TypeFloat, &[4, 32]);
    put(Op::TypeVector, &[5, 4, 4]);
    put(Op::Constant, &[13, 6, 5]);
    put(Op::TypeArray, &[7, 4, 6]);
    put(Op::SpecConstant, &[13, 8, 3]);
    put(Op::TypeArray, &[9, 4, 8]);
    put(Op::TypeRuntimeArray, &[10, 4]);
    put(Op::TypeStruct, &[11, 4, 10]);
    put(Op::TypeImage, &[12, 4, Dim::DimBuffer as u32, 0, 0, 0, 2, 0]);
    let (private, shared) = (StorageClass::Private as u32, StorageClass::Workgroup as u32);
    let (storage, opaque) = (StorageClass::StorageBuffer as u32, StorageClass::UniformConstant as u32);
    for (pointer, class, to) in [
        (21, private, 5),
        (22, shared, 7),
        (23, shared, 9),
        (24, storage, 11),
        (25, opaque, 12),
        (27, private, 3),
    ] {
        put(Op::TypePointer, &[pointer, class, to]);
        put(Op::Variable, &[pointer, pointer + 10, class]);
    }
    put(Op::TypePointer, &[26, private, 4]);
    put(Op::ConstantNull, &[5, 40]);
    put(Op::Constant, &[13, 41, 1]);
    put(Op::Constant, &[4, 43, 0]);
    put(Op::Constant, &[3, 42, constant.unwrap_or(0)]);
    put(Op::Function, &[1, 50, 0, 2]);
    put(Op::Label, &[51]);
    put(Op::Load, &[3, 52, 37]);
    put(Op::Load, &[12, 53, 35]);
    let index = if constant.is_some() { 42 } else { 52 };
    put(op, &operands.iter().map(|&id| if id == INDEX { index } else { id }).collect::<Vec<_>>());
    put(Op::Return, &[]);
    put(Op::FunctionEnd, &[]);
    words
}

/// The index that an instruction of a guarded module takes in the end, where 52 is this one.
fn taken(words: &[u32], Indexed { op, operands, .. }: Indexed, index: u32) -> u32 {
    let place = operands.iter().position(|id| *id == INDEX).expect("it takes an index");
    let mut values: FxHashMap<u32, u32> = FxHashMap::default();
    values.insert(52, index);
    let mut rest = &words[HEADER_WORDS..];
    while let [first, ..] = rest {
        let (instruction, following) = rest.split_at((first >> 16) as usize);
        rest = following;
        let (now, at) = (Op::from_u32(first & 0xffff).expect("an instruction"), &instruction[1..]);
        let value = |k: usize| values.get(&at[k]).copied();
        if now == op && at[0] == operands[0] {
            return value(place).expect("an index whose value is known");
        }
        let made = match now {
            Op::Constant => Some(at[2]),
            Op::SpecConstant => Some(SPECIALIZED),
            Op::ArrayLength | Op::ImageQuerySize => Some(BOUND),
            Op::CopyObject => value(2),
            Op::ISub => value(2).zip(value(3)).map(|(a, b)| a.wrapping_sub(b)),
            Op::ExtInst => value(4).zip(value(5)).map(|(a, b)| match GlslStd450Op::from_u32(at[3]) {
                Some(GlslStd450Op::UMin) => a.min(b),
                Some(GlslStd450Op::UMax) => a.max(b),
                Some(GlslStd450Op::SMin) => (a as i32).min(b as i32) as u32,
                other => panic!("{other:?} is not known here"),
            }),
            _ => None,
        };
        values.extend(made.map(|made| (at[1], made)));
    }
    panic!("there is no Op{op:?} any more");
}

#[test]
fn every_index_is_the_one_that_was_meant_or_the_last() {
    for indexed in INDEXED {
        let Indexed { op, operands, length } = indexed;
        for index in [0, 1, length - 1, length, length + 1, i32::MAX as u32, 1 << 31, u32::MAX] {
            for (signed, constant) in [(0, None), (1, None), (0, Some(index)), (1, Some(index))] {
                let (guarded, _) = guard(&module(op, operands, [32, signed], constant)).unwrap();
                let taken = taken(&guarded, indexed, index);
                assert_eq!(
                    taken,
                    index.min(length - 1),
                    "{indexed:?}, {index}, signed {signed}, {constant:?}"
                );
            }
        }
    }
}

#[test]
fn what_can_not_be_clamped_is_refused() {
    for Indexed { op, operands, .. } in INDEXED {
        let refused = guard(&module(op, operands, [64, 0], None)).unwrap_err();
        assert_eq!(refused, "has an index that is no 32-bit integer", "Op{op:?}");
    }
    let refused = guard(&module(Op::CopyObject, &[21, 60, 31], [32, 0], None)).unwrap_err();
    assert_eq!(refused, "makes a pointer by OpCopyObject");
}

#[test]
fn shared_variables_take_what_std430_gives_them() {
    // A struct of such members: floats, and vectors of two, three and four.
    let taken = |members: &[u32]| {
        let mut words = vec![0x0723_0203, 0x0001_0300, 0, 100, 0];
        emit(&mut words, Op::TypeFloat, &[1, 32]);
        (2..=4).for_each(|count| emit(&mut words, Op::TypeVector, &[count, 1, count]));
        emit(&mut words, Op::TypeStruct, &[&[10], members].concat());
        emit(&mut words, Op::TypePointer, &[11, StorageClass::Workgroup as u32, 10]);
        emit(&mut words, Op::Variable, &[11, 12, StorageClass::Workgroup as u32]);
        guard(&words).unwrap().1.bytes(&[])
    };
    for (members, bytes) in [
        (&[1][..], 4),
        (&[1, 1, 1], 12),
        (&[1, 2], 16),
        (&[2, 1], 16),
        (&[1, 4], 32),
        (&[4, 1], 32),
        (&[3, 1], 16),
        (&[1, 3, 1, 1], 48),
    ] {
        assert_eq!(taken(members), bytes, "{members:?}");
    }
}
