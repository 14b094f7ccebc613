//! Convolutions: what the table of cases does not say.

use crate::harness::gpu;
use tidemill::{Conv2d, Epilogue, Error, Shape};

#[test]
fn mistakes_are_named_and_leave_the_recording_usable() {
    let gpu = gpu();
    let tensor = |shape: &[usize]| {
        let shape = Shape::new(shape).unwrap();
        gpu.upload(&vec![1.0f32; shape.elements()], shape).unwrap()
    };
    let (x, w) = (tensor(&[1, 4, 5, 6]), tensor(&[6, 4, 3, 3]));
    let prepared = gpu.prepare_weights(&w, 1).unwrap();
    let said = |result: tidemill::Result<tidemill::Value>| result.unwrap_err().to_string();
    let r = gpu.begin_recording().unwrap();
    let matrix = tensor(&[5, 6]);
    let rank = "conv2d: the input [5, 6] must have 4 dimensions, not 2";
    assert_eq!(said(r.conv2d(&matrix, &prepared)), rank);
    let rank = "conv2d: the weights [5, 6] must have 4 dimensions, not 2";
    assert_eq!(said(r.conv2d(&x, &matrix)), rank);
    let other = tensor(&[1, 3, 5, 6]);
    let channels = "conv2d: lhs [1, 3, 5, 6] and rhs [6, 4, 3, 3]: 3 channels != 4 in each of 1 group";
    assert_eq!(said(r.conv2d(&other, &prepared)), channels);
    let small = tensor(&[1, 4, 5, 1]);
    let reach = "conv2d: lhs [1, 4, 5, 1] and rhs [6, 4, 3, 3]: a kernel of 5 columns on 3 with padding";
    assert_eq!(said(r.conv2d_with(&small, &prepared, Conv2d::new().dilation([1, 2]).padding([0, 1]))), reach);
    let stride = "conv2d: stride is 0; it must be between 1 and 65535";
    assert_eq!(said(r.conv2d_with(&x, &prepared, Conv2d::new().stride([1, 0]))), stride);
    let groups = "conv2d: groups is 2; it must be 1, as the weights were prepared";
    assert_eq!(said(r.conv2d_with(&x, &prepared, Conv2d::new().groups(2))), groups);
    let groups = "conv2d: groups is 4; it must divide the result's 6 channels";
    assert_eq!(said(r.conv2d_with(&x, &w, Conv2d::new().groups(4))), groups);
    let counts = gpu.upload(&[1u32; 120], [1, 4, 5, 6]).unwrap();
    let float = "conv2d: the input is u32, this needs f32, f16 or bf16";
    assert_eq!(said(r.conv2d(&counts, &prepared)), float);
    let bias = tensor(&[4]);
    let long = "bias: lhs [4] and rhs [1, 6, 3, 4]: a bias for each of 6 channels must be [6]";
    assert_eq!(said(r.conv2d_with(&x, &prepared, Epilogue::bias(&bias))), long);
    let row =
        "plus: lhs [4] and rhs [1, 6, 3, 4]: an operand has all pixels of a channel, or one for all of them";
    assert_eq!(said(r.conv2d_with(&x, &prepared, Epilogue::new().plus(&bias))), row);
    let seven = (0..7).fold(Epilogue::new(), |e, _| e.relu());
    let steps = "conv2d: the epilogue has 7 steps, 0 tensors and 0 scalars, at most 6, 2 and 4 fit; \
                 record the rest as separate operations";
    assert_eq!(said(r.conv2d_with(&x, &prepared, seven)), steps);
    let good = r.conv2d(&x, &prepared).unwrap();
    let good = r.keep(good).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(good.read::<f32>().unwrap(), [36.0; 72]);
    let refused = gpu.prepare_weights(&matrix, 1).unwrap_err().to_string();
    assert_eq!(refused, "prepare_weights: the weights [5, 6] must have 4 dimensions, not 2");
}

#[test]
fn weights_are_laid_out_once() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 32], [1, 2, 4, 4]).unwrap();
    let w = gpu.upload(&[0.5f32; 36], [2, 2, 3, 3]).unwrap();
    let prepared = gpu.prepare_weights(&w, 1).unwrap();
    assert_eq!((prepared.shape().dims(), prepared.groups()), (&[2, 2, 3, 3][..], 1));
    // What they were made from may change, or go.
    w.write(&[7.0f32; 36]).unwrap();
    drop(w);
    let before = gpu.stats().dispatches;
    for _ in 0..3 {
        let y = gpu.run(|r| r.conv2d(&x, &prepared)).unwrap();
        assert_eq!(y.read::<f32>().unwrap(), [9.0; 8]);
    }
    let prepared_takes = gpu.stats().dispatches - before;
    // Plain weights are laid out in each call.
    let w = gpu.upload(&[0.5f32; 36], [2, 2, 3, 3]).unwrap();
    let before = gpu.stats().dispatches;
    for _ in 0..3 {
        gpu.run(|r| r.conv2d(&x, &w)).unwrap();
    }
    assert_eq!(gpu.stats().dispatches - before, prepared_takes + 3);
}

#[test]
fn infinities_outside_of_the_kernels_reach_stay_there() {
    let gpu = gpu();
    // One row of infinities; the kernel's places next to it do not see it.
    let mut x = vec![1.0f32; 7 * 9];
    x[5 * 9..6 * 9].fill(f32::INFINITY);
    let x = gpu.upload(&x, [1, 1, 7, 9]).unwrap();
    let w = gpu.upload(&[1.0f32; 9], [1, 1, 3, 3]).unwrap();
    let y = gpu.run(|r| r.conv2d_with(&x, &w, Conv2d::new().padding([1, 1]))).unwrap().read::<f32>().unwrap();
    for (at, y) in y.iter().enumerate() {
        let (row, column) = (at / 9, at % 9);
        let ends = if column == 0 || column == 8 { 2.0 } else { 3.0 };
        let expected = if row >= 4 { f32::INFINITY } else { ends * if row == 0 { 2.0 } else { 3.0 } };
        assert_eq!(*y, expected, "row {row}, column {column}");
    }
}

#[test]
fn convolutions_feed_each_other_and_elementwise_operations() {
    let gpu = gpu();
    let x = gpu.upload(&(0..50).map(|i| i as f32).collect::<Vec<_>>(), [2, 1, 5, 5]).unwrap();
    let blur = gpu.upload(&[1.0f32; 18], [2, 1, 3, 3]).unwrap();
    let mix = gpu.upload(&[1.0f32, -1.0], [1, 2, 1, 1]).unwrap();
    let zero = gpu
        .run(|r| {
            let twice = r.add(&x, &x)?;
            let both = r.conv2d_with(twice, &blur, Conv2d::new().padding([1, 1]))?;
            let difference = r.conv2d_with(both, &mix, Conv2d::new())?;
            r.add(difference, &x)
        })
        .unwrap();
    assert_eq!(zero.read::<f32>().unwrap(), x.read::<f32>().unwrap());
}

#[test]
fn a_refused_convolution_leaves_nothing_behind() {
    let gpu = gpu();
    let x = gpu.upload(&vec![1.0f32; 100_000], [100_000, 1, 1, 1]).unwrap();
    let w = gpu.upload(&vec![1.0f32; 30_000], [30_000, 1, 1, 1]).unwrap();
    let r = gpu.begin_recording().unwrap();
    // Plain weights are laid out by a dispatch of their own.
    let refused = r.conv2d(&x, &w).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { op: "conv2d", .. }), "{refused}");
    assert!(r.explain().unwrap().recorded.is_empty());
}

#[test]
fn an_empty_batch_may_have_images_of_any_size() {
    let gpu = gpu();
    let w = gpu.upload(&[1.0f32; 2], [2, 1, 1, 1]).unwrap();
    let bias = gpu.upload(&[1.0f32; 2], [2]).unwrap();
    let prepared = gpu.prepare_weights(&w, 1).unwrap();
    let most = usize::MAX;
    for [height, width] in [[1 << 40, 1 << 40], [1 << 16, 1 << 16], [1 << 32, 3], [most, most]] {
        let x = gpu.upload(&[0.0f32; 0], [0, 1, height, width]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let plain = r.conv2d(&x, &w).unwrap();
        let with = Conv2d::new().padding([1, 1]).stride([2, 2]).epilogue(Epilogue::bias(&bias).relu());
        let other = r.conv2d_with(&x, &prepared, with).unwrap();
        let [plain, other] = [plain, other].map(|value| r.keep(value).unwrap());
        assert!(r.explain().unwrap().recorded.is_empty());
        r.end_recording().unwrap().wait().unwrap();
        assert_eq!(plain.shape().dims(), [0, 2, height, width]);
        assert_eq!(other.read::<f32>().unwrap(), [0.0; 0]);
    }
}
