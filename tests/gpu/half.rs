//! 16-bit floats: what the table of cases does not say.

use crate::harness::{config, gpu, gpu_with};
use tidemill::{Axes, Conv2d, DType, F16};

fn halves(n: usize) -> Vec<F16> {
    (0..n).map(|i| F16::from_f32((i * 37 % 101) as f32 / 16.0 - 3.0)).collect()
}

#[test]
fn tensors_of_any_length_go_there_and_back() {
    let gpu = gpu();
    for n in [0, 1, 2, 3, 7, 8, 9, 1001] {
        let data = halves(n);
        let x = gpu.upload(&data, [n]).unwrap();
        assert_eq!((x.dtype(), x.size_bytes()), (DType::F16, 2 * n as u64));
        assert_eq!(x.read::<F16>().unwrap(), data);
        let copy = gpu.run(|r| r.copy(&x)).unwrap();
        assert_eq!(copy.read::<F16>().unwrap(), data);
        let filled = gpu.run(|r| r.fill([n], F16::from_f32(1.5))).unwrap();
        assert_eq!(filled.read::<F16>().unwrap(), vec![F16::from_f32(1.5); n]);
        let counted = gpu.run(|r| r.iota::<F16>([n])).unwrap();
        let expected: Vec<F16> = (0..n).map(|i| F16::from_f32(i as f32)).collect();
        assert_eq!(counted.read::<F16>().unwrap(), expected);
    }
}

#[test]
fn fused_and_unfused_give_the_same_bits() {
    let (fused, apart) = (gpu(), gpu_with(config().fusion(false)));
    let results = [&fused, &apart].map(|gpu| {
        let (a, b) = (gpu.upload(&halves(1003), [1003]).unwrap(), gpu.upload(&halves(1003), [1003]).unwrap());
        let (middle, last) = gpu
            .run(|r| {
                let product = r.mul(&a, &b)?;
                let middle = r.add(product, &a)?;
                let active = r.gelu(middle)?;
                let wide = r.cast(active, DType::F32)?;
                let third = r.scale(wide, 1.0f32 / 3.0)?;
                Ok((middle, r.cast(third, DType::F16)?))
            })
            .unwrap();
        (middle.read::<F16>().unwrap(), last.read::<F16>().unwrap())
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn operands_of_other_types_are_refused_and_leave_the_recording_usable() {
    let gpu = gpu();
    let (half, float) = (gpu.upload(&halves(6), [2, 3]).unwrap(), gpu.upload(&[1.0f32; 6], [2, 3]).unwrap());
    let r = gpu.begin_recording().unwrap();
    let said = |result: tidemill::Result<tidemill::Value>| result.unwrap_err().to_string();
    assert_eq!(said(r.add(&half, &float)), "add: the rhs is f32, this needs f16");
    assert_eq!(said(r.concat([&half, &float], 0)), "concat: the operand 1 is f32, this needs f16");
    assert_eq!(said(r.add_scalar(&half, 1u32)), "add_scalar: the scalar is u32, this needs f16 or f32");
    let sum = r.sum(&half, Axes::ALL).unwrap();
    let kept = r.keep(sum).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    let expected: f32 = halves(6).iter().map(|x| x.to_f32()).sum();
    assert_eq!(kept.read::<f32>().unwrap(), [expected]);
}

#[test]
fn results_are_halves_where_operands_are() {
    let gpu = gpu();
    let x = gpu.upload(&halves(32), [1, 2, 4, 4]).unwrap();
    let float = gpu.upload(&[1.0f32; 4], [2, 2, 1, 1]).unwrap();
    let y = gpu.run(|r| r.conv2d_with(&x, &float, Conv2d::new())).unwrap();
    assert_eq!(y.dtype(), DType::F16);
    let matrix = x.reshape([4, 8]).unwrap();
    let less = gpu.run(|r| r.lt(&matrix, &matrix)).unwrap();
    assert_eq!(less.read::<u32>().unwrap(), [0; 32]);
}
