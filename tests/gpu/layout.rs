//! Layout ops: what is refused, and that the recording stays usable.

use tidemill::{Error, Recording, Result, Value};

use crate::harness::gpu;

#[test]
fn mistakes_are_named_and_leave_the_recording_usable() {
    let gpu = gpu();
    let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    let y = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let said = |result: Result<Value>| result.unwrap_err().to_string();
    assert_eq!(
        said(r.permute(&x, [0, 0])),
        "permute: the order [0, 0] does not name each of the 2 dimensions of [2, 3] once"
    );
    assert_eq!(
        said(r.transpose(&y)),
        "transpose: the order [1, 0] does not name each of the 1 dimensions of [2] once"
    );
    assert_eq!(
        said(r.slice(&x, [0..2, 2..4])),
        "slice: the range 2..4 of dimension 1 does not lie in shape [2, 3]"
    );
    assert_eq!(
        said(r.broadcast_to(&x, [4, 3])),
        "broadcast_to: lhs [2, 3] and rhs [4, 3]: 2 can't be stretched to 4 in dimension 0"
    );
    assert_eq!(said(r.broadcast_to(&x, [3])), "broadcast_to: lhs [2, 3] and rhs [3]: rank 2 can't become 1");
    assert_eq!(said(r.concat([&x, &y], 0)), "concat: the operand 1 is f32, this needs u32");
    assert_eq!(said(r.concat([&x], 2)), "concat: axis 2 is out of range for rank 2");
    assert_eq!(
        said(r.concat([] as [&tidemill::Tensor; 0], 0)),
        "concat: there are no operands; give one or more"
    );
    let z = gpu.upload(&[1u32, 2], [2]).unwrap();
    assert_eq!(
        said(r.concat([&x, &z], 0)),
        "concat: lhs [2, 3] and rhs [2]: they must agree in all dimensions but 0"
    );
    assert_eq!(said(r.stack([&x, &z], 0)), "stack: lhs [2, 3] and rhs [2]: they must have one shape");
    let foreign = gpu.begin_recording().unwrap().iota::<u32>([2]).unwrap();
    let elsewhere = "the value belongs to another recording; keep() it there and use the tensor here";
    assert_eq!(said(r.stack([&foreign], 0)), format!("stack: {elsewhere}"));
    assert_eq!(said(r.transpose(foreign)), format!("transpose: {elsewhere}"));
    let deep = gpu.upload(&[1u32], [1; 8]).unwrap();
    assert_eq!(said(r.stack([&deep], 0)), "stack: rank 9 is above the maximum of 8; merge dimensions");
    assert_eq!(
        said(r.pad(&x, [(1, 1)], 0u32)),
        "pad: 1 pairs were given, shape [2, 3] has 2 dimensions; give one pair per dimension"
    );
    assert_eq!(said(r.pad(&x, [(0, 0), (0, 0)], 0.0f32)), "pad: the element is f32, this needs u32");
    assert_eq!(said(r.gather_rows(&x, &y)), "gather_rows: the row list is f32, this needs u32");
    assert!(matches!(r.reshape(&x, [7]), Err(Error::Length { got: 6, .. })));

    let kept = r.permute(&x, [1, 0]).and_then(|v| r.keep(v)).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(kept.read::<u32>().unwrap(), [1, 4, 2, 5, 3, 6]);
}

#[test]
fn a_reshape_shares_and_a_chain_of_views_composes() {
    let gpu = gpu();
    let x = gpu.run(|r| r.iota::<u32>([4, 6])).unwrap();
    let y = gpu
        .run(|r| {
            let flat = r.reshape(&x, [24])?;
            let cut = r.slice(flat, 4..20)?;
            let square = r.reshape(cut, [4, 4])?;
            r.transpose(square)
        })
        .unwrap();
    let expected: Vec<u32> = (0..16).map(|i| 4 + (i % 4) * 4 + i / 4).collect();
    assert_eq!(y.read::<u32>().unwrap(), expected);
}

#[test]
fn what_has_no_elements_may_have_huge_extents() {
    let gpu = gpu();
    let x = gpu.zeros::<f32>([0, 70_000, 70_000]).unwrap();
    let deep = gpu.zeros::<f32>([1 << 40, 0, 1 << 40]).unwrap();
    let none = gpu.zeros::<u32>([0]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let shape = |r: &Recording, value: Result<Value>| r.shape(value.unwrap()).unwrap();
    let sliced = r.slice(&x, [0..0, 5..60_000, 7..70_000]);
    assert_eq!(shape(&r, sliced), [0, 59_995, 69_993].into());
    let turned = r.permute(&x, [2, 1, 0]);
    assert_eq!(shape(&r, turned), [70_000, 70_000, 0].into());
    let joined = r.concat([&deep, &deep], 2);
    assert_eq!(shape(&r, joined), [1 << 40, 0, 1 << 41].into());
    let stacked = r.stack([&x, &x], 3);
    assert_eq!(shape(&r, stacked), [0, 70_000, 70_000, 2].into());
    let padded = r.pad(&x, [(0, 0), (9, 0), (0, 9)], 1.0f32);
    assert_eq!(shape(&r, padded), [0, 70_009, 70_009].into());
    let gathered = r.gather_rows(&deep, &none);
    assert_eq!(shape(&r, gathered), [0, 0, 1 << 40].into());
    let summed = r.sum(&x, 1);
    assert_eq!(shape(&r, summed), [0, 70_000].into());
    let shares = r.softmax(&deep, 2);
    assert_eq!(shape(&r, shares), [1 << 40, 0, 1 << 40].into());
    assert!(matches!(r.sum(&x, 0), Err(Error::TooLarge { op: "sum", .. })));
    assert!(matches!(r.amax(&deep, 1), Err(Error::EmptyReduction { op: "amax", .. })));
    r.end_recording().unwrap().wait().unwrap();
}
