//! Tensors that are updated: what may be written in place, and what is copied.

use tidemill::{Accelerator, DType, Dispatch, Recording, Result, Tensor, Value};

use crate::fixtures::kernel;

const SIDE: usize = 20;

/// What becomes of a tensor of threes and ones of a square: a way to record it, and the tensor's elements then.
type Problem = (&'static str, fn(&Recording, &Tensor, &Tensor) -> Result<Option<Value>>, f32);

const PROBLEMS: &[Problem] = &[
    ("in place", |r, t, x| r.assign(t, r.sub(t, x)?).map(|()| None), 2.0),
    (
        "kept, too",
        |r, t, x| {
            let sum = r.add(t, x)?;
            r.assign(t, sum).map(|()| Some(sum))
        },
        4.0,
    ),
    ("of another tensor", |r, t, x| r.assign(t, x).map(|()| None), 1.0),
    (
        "read before",
        |r, t, x| {
            let matmul = r.matmul(x, x)?;
            let shares = r.softmax(matmul, -1)?;
            r.assign(t, matmul).map(|()| Some(shares))
        },
        SIDE as f32,
    ),
    (
        "of a user's kernel",
        |r, t, x| {
            let scale = kernel("scale");
            let groups = [(SIDE * SIDE).div_ceil(64) as u32, 1, 1];
            let run = Dispatch::new(&scale).input(x).output([SIDE * SIDE], DType::F32).push(&[1.0f32]);
            let run = run.specialize(0, 64u32).specialize(1, 5.0f32).groups(groups);
            r.assign(t, r.reshape(r.dispatch(run)?[0], [SIDE, SIDE])?).map(|()| None)
        },
        6.0,
    ),
    (
        "with another result that is read before",
        |r, t, x| {
            let one = r.neg(x)?;
            let two = r.abs(one)?;
            let read = r.softmax(one, -1)?;
            r.assign(t, two).map(|()| Some(read))
        },
        1.0,
    ),
    (
        "two results for one tensor",
        |r, t, x| {
            let one = r.neg(x)?;
            let two = r.abs(one)?;
            r.assign(t, two)?;
            r.assign(t, one).map(|()| None)
        },
        -1.0,
    ),
    ("of itself, turned", |r, t, x| r.assign(t, r.add(r.transpose(t)?, x)?).map(|()| None), 4.0),
    ("of itself as a factor", |r, t, x| r.assign(t, r.matmul(t, x)?).map(|()| None), 3.0 * SIDE as f32),
    ("a product", |r, t, x| r.assign(t, r.matmul(x, x)?).map(|()| None), SIDE as f32),
    (
        "a run from where the device says",
        |r, t, x| {
            let start = r.fill([1], 0u32)?;
            r.update_at(t, 0, start, r.slice_at(x, 0, start, SIDE)?).map(|()| None)
        },
        1.0,
    ),
    (
        "rows masked from a length on, and whole rows",
        |r, t, x| {
            let length = r.fill([1], 7i32)?;
            let along = r.softmax(r.mask_from(x, 1, length, f32::NEG_INFINITY)?, 1)?;
            let across = r.softmax(r.mask_from(x, 0, length, 0.0f32)?, 1)?;
            r.assign(t, x)?;
            r.add(along, across).map(Some)
        },
        1.0,
    ),
    (
        "read across an update",
        |r, t, x| {
            let negative = r.neg(t)?;
            r.update(t, 0..SIDE, x)?;
            let sum = r.add(negative, t)?;
            r.assign(t, sum).map(|()| None)
        },
        -2.0,
    ),
];

/// Each problem alone, fused and not.
pub fn come_out_right(gpu: &Accelerator) {
    for (name, record, expected) in PROBLEMS {
        let t = gpu.upload(&[3.0f32; SIDE * SIDE], [SIDE, SIDE]).unwrap();
        let x = gpu.upload(&[1.0f32; SIDE * SIDE], [SIDE, SIDE]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let kept = record(&r, &t, &x).unwrap();
        let kept = kept.map(|value| r.keep(value).unwrap());
        let _ = r.end_recording().unwrap();
        assert_eq!(t.read::<f32>().unwrap(), [*expected; SIDE * SIDE], "{name}");
        assert!(kept.is_none_or(|kept| kept.read::<f32>().unwrap().iter().all(|e| e.is_finite())), "{name}");
    }
}

/// Boxes in more dimensions than kernels walk over.
pub fn deep_boxes_come_out_right(gpu: &Accelerator) {
    let t = gpu.upload(&[3u32; 243], [3; 5]).unwrap();
    let x = gpu.upload(&[1u32; 32], [2; 5]).unwrap();
    let r = gpu.begin_recording().unwrap();
    r.update(&t, std::array::from_fn::<_, 5, _>(|_| 1..3), &x).unwrap();
    let _ = r.end_recording().unwrap();
    let inside = |i: usize| (0..5).all(|d| !(i / 3usize.pow(d)).is_multiple_of(3));
    let expected: Vec<u32> = (0..243).map(|i| if inside(i) { 1 } else { 3 }).collect();
    assert_eq!(t.read::<u32>().unwrap(), expected);
}
