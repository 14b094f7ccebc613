//! Elements of which several share a word: what the table of cases does not say.

use crate::harness::{config, gpu, gpu_with};
use tidemill::{Accelerator, Axes, Bf16, Bool, DType, Element, Matmul, Recording, Result, Value};

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 37 % 251) as u8).collect()
}

/// Upload, copy, fill, count, write: of every length around a word.
fn go_there_and_back<T: Element + PartialEq + std::fmt::Debug>(
    gpu: &Accelerator,
    from: fn(u8) -> T,
    size: usize,
) {
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1001] {
        let data: Vec<T> = bytes(n).into_iter().map(from).collect();
        let x = gpu.upload(&data, [n]).unwrap();
        assert_eq!((x.dtype(), x.size_bytes()), (T::DTYPE, (size * n) as u64));
        assert_eq!(x.read::<T>().unwrap(), data);
        assert_eq!(gpu.run(|r| r.copy(&x)).unwrap().read::<T>().unwrap(), data);
        assert_eq!(gpu.run(|r| r.fill([n], from(9))).unwrap().read::<T>().unwrap(), vec![from(9); n]);
        assert_eq!(gpu.zeros::<T>([n]).unwrap().read::<T>().unwrap(), vec![T::zeroed(); n]);
        let counted = gpu.run(|r| r.iota::<T>([n])).unwrap().read::<T>().unwrap();
        assert_eq!(counted[..n.min(100)], (0..n.min(100)).map(|i| from(i as u8)).collect::<Vec<_>>());
        let backwards: Vec<T> = data.iter().rev().copied().collect();
        x.write(&backwards).unwrap();
        assert_eq!(x.read::<T>().unwrap(), backwards);
    }
}

#[test]
fn tensors_of_every_type_go_there_and_back() {
    let gpu = gpu();
    go_there_and_back::<u8>(&gpu, |x| x, 1);
    go_there_and_back::<i8>(&gpu, |x| x as i8, 1);
    go_there_and_back::<u16>(&gpu, u16::from, 2);
    go_there_and_back::<i16>(&gpu, i16::from, 2);
    go_there_and_back::<Bf16>(&gpu, |x| Bf16::from_f32(x.into()), 2);
    go_there_and_back::<Bool>(&gpu, |x| Bool::from(x != 0), 1);
}

/// Each step rounds or wraps as if it had been stored.
#[test]
fn fused_and_unfused_give_the_same_bits() {
    let (fused, apart) = (gpu(), gpu_with(config().fusion(false)));
    for dtype in [DType::U8, DType::I8, DType::U16, DType::I16, DType::Bf16, DType::F16] {
        let results = [&fused, &apart].map(|gpu| {
            let numbers: Vec<f32> = (0..1003).map(|i| (i * 37 % 1009) as f32 - 300.3).collect();
            let x = gpu.upload(&numbers, [1003]).unwrap();
            let made = gpu.run(|r| {
                let a = r.cast(&x, dtype)?;
                let square = r.mul(a, a)?;
                let sum = r.add(square, a)?;
                let larger = r.gt(sum, a)?;
                let chosen = r.select(larger, sum, a)?;
                let other = r.cast(chosen, DType::I16)?;
                r.cast(r.add(other, other)?, DType::F32)
            });
            made.unwrap().read::<f32>().unwrap()
        });
        assert_eq!(results[0], results[1], "{dtype}");
    }
}

/// An update of a few elements leaves their neighbours in the same word as they are, also twice in a recording and in a
/// plan.
#[test]
fn odd_ranges_are_updated_alone() {
    let gpu = gpu();
    for (begin, n) in [(0, 1), (1, 1), (3, 2), (5, 6), (2, 9), (16, 1), (0, 17)] {
        let x = gpu.upload(&bytes(17), [17]).unwrap();
        let part: Vec<u8> = (0..n).map(|i| 200 + i as u8).collect();
        let value = gpu.upload(&part, [n]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let before = r.sum(&x, Axes::ALL).unwrap();
        r.update(&x, begin..begin + n, &value).unwrap();
        r.update(&x, 8..9, r.fill([1], 7u8).unwrap()).unwrap();
        let after = r.add(&x, 1u8).unwrap();
        let (before, after) = (r.keep(before).unwrap(), r.keep(after).unwrap());
        r.end_recording().unwrap().wait().unwrap();
        let mut expected = bytes(17);
        assert_eq!(before.read::<u32>().unwrap(), [expected.iter().map(|x| u32::from(*x)).sum::<u32>()]);
        expected[begin..begin + n].copy_from_slice(&part);
        expected[8] = 7;
        assert_eq!(x.read::<u8>().unwrap(), expected, "{begin} {n}");
        let one_more: Vec<u8> = expected.iter().map(|x| x.wrapping_add(1)).collect();
        assert_eq!(after.read::<u8>().unwrap(), one_more);
    }
    let (x, rows) = (gpu.upload(&bytes(15), [3, 5]).unwrap(), gpu.upload(&[Bool::TRUE; 4], [2, 2]).unwrap());
    let r = gpu.begin_recording().unwrap();
    r.update(&x, (1.., 2..4), r.cast(&rows, DType::U8).unwrap()).unwrap();
    let mut plan = r.into_plan().unwrap();
    for _ in 0..3 {
        plan.submit().unwrap().wait().unwrap();
    }
    let mut expected = bytes(15);
    for at in [7, 8, 12, 13] {
        expected[at] = 1;
    }
    assert_eq!(x.read::<u8>().unwrap(), expected);
}

#[test]
fn packed_tensors_go_through_plans() {
    let gpu = gpu();
    let image = gpu.upload(&bytes(1003), [1003]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let wide = r.cast(&image, DType::F32).unwrap();
    let bright = r.cast(r.scale(wide, 1.5f32).unwrap(), DType::U8).unwrap();
    let bright = r.keep(bright).unwrap();
    let mut plan = r.into_plan().unwrap();
    for shift in 0..4 {
        let data: Vec<u8> = bytes(1003).into_iter().map(|x| x.wrapping_add(shift)).collect();
        image.write(&data).unwrap();
        let _submission = plan.submit().unwrap();
        let expected: Vec<u8> = data.iter().map(|x| (f32::from(*x) * 1.5) as u8).collect();
        assert_eq!(bright.read::<u8>().unwrap(), expected);
    }
}

#[test]
fn what_no_operation_takes_is_refused_with_the_way_out() {
    let gpu = gpu();
    let x = gpu.upload(&bytes(6), [2, 3]).unwrap();
    let truths = gpu.upload(&[Bool::TRUE; 6], [2, 3]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let said = |result: Result<Value>| result.unwrap_err().to_string();
    let floats = "this needs f32, f16 or bf16";
    assert_eq!(said(r.exp(&x)), format!("exp: the operand is u8, {floats}"));
    assert_eq!(said(r.softmax(&x, 1)), format!("softmax: the operand is u8, {floats}"));
    assert_eq!(
        said(r.matmul_with(&x, &x, Matmul::new().transpose_rhs())),
        format!("matmul: the lhs is u8, {floats}")
    );
    assert_eq!(
        said(r.bitcast(&x, DType::U32)),
        "bitcast: the operand is u8, this needs f32, i32 or u32; cast it first"
    );
    assert_eq!(said(r.add(&x, 1)), "add: the rhs is i32, this needs u8");
    let integers = "i32, i16, i8, u32, u16 or u8";
    assert_eq!(
        said(r.add(&truths, &truths)),
        format!("add: the lhs is bool, this needs f32, f16, bf16, {integers}")
    );
    assert_eq!(
        said(r.count_ones(&truths)),
        format!("count_ones: the operand is bool, this needs {integers}")
    );
    assert_eq!(said(r.select(&x, &x, &x)), "select: the mask is u8, this needs u32 or bool");
    let wide = r.cast(&x, DType::F32).unwrap();
    let kept = r.keep(r.exp(wide).unwrap()).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(kept.read::<f32>().unwrap()[0], 1.0);
}

#[test]
fn operations_beside_scalars_of_their_own_type() {
    let gpu = gpu();
    let x = gpu.upload(&[250u8, 3, 128], [3]).unwrap();
    let run = |record: fn(&Recording, &tidemill::Tensor) -> Result<Value>| {
        gpu.run(|r| record(r, &x)).unwrap().read::<u8>().unwrap()
    };
    assert_eq!(run(|r, x| r.add(x, 10u8)), [4, 13, 138]);
    assert_eq!(run(|r, x| r.sub(10u8, x)), [16, 7, 138]);
    assert_eq!(run(|r, x| r.min_scalar(x, 100u8)), [100, 3, 100]);
    assert_eq!(run(|r, x| r.cast(r.gt_scalar(x, 100u8)?, DType::U8)), [1, 0, 1]);
    let y = gpu.upload(&[1.0, 2.5].map(Bf16::from_f32), [2]).unwrap();
    let scaled = gpu.run(|r| r.scale(&y, 2.0f32)).unwrap();
    assert_eq!(scaled.read::<Bf16>().unwrap(), [2.0, 5.0].map(Bf16::from_f32));
}
