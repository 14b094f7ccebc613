//! Matmuls: what the table of cases does not say.

use crate::harness::{config, gpu, gpu_with};
use tidemill::{Epilogue, Matmul};

#[test]
fn mistakes_are_named_and_leave_the_recording_usable() {
    let gpu = gpu();
    let tensor = |shape: &[usize]| {
        let shape = tidemill::Shape::new(shape).unwrap();
        gpu.upload(&vec![1.0f32; shape.elements()], shape).unwrap()
    };
    let (a, b, c) = (tensor(&[4, 3]), tensor(&[5, 2]), tensor(&[3, 2]));
    let (many, few) = (tensor(&[2, 4, 3]), tensor(&[3, 3, 2]));
    let scalar = tensor(&[]);
    let counts = gpu.upload(&[1u32; 6], [3, 2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let said = |result: tidemill::Result<tidemill::Value>| result.unwrap_err().to_string();
    assert_eq!(said(r.matmul(&a, &b)), "matmul: lhs [4, 3] x rhs [5, 2]: inner 3 != 5");
    let transposed = r.matmul_with(&a, &c, Matmul::new().transpose_lhs());
    assert_eq!(said(transposed), "matmul: lhs [4, 3] x rhs [3, 2]: inner 4 != 3");
    let batches = "matmul: lhs [2, 4, 3] and rhs [3, 3, 2]: 2 != 3 in dimension 0";
    assert_eq!(said(r.matmul(&many, &few)), batches);
    assert_eq!(said(r.matmul(&scalar, &c)), "matmul: the operand [] is no matrix and no vector");
    assert_eq!(said(r.matmul(&a, &counts)), "matmul: the rhs is u32, this needs f32 or f16");
    let bias = tensor(&[3]);
    let long = "bias: lhs [3] and rhs [4, 2]: 3 != 2 in dimension 1";
    assert_eq!(said(r.matmul_with(&a, &c, Epilogue::bias(&bias))), long);
    let column = "column_bias: lhs [3] and rhs [4, 2]: a bias for each of 4 rows must be [4]";
    assert_eq!(said(r.matmul_with(&a, &c, Epilogue::column_bias(&bias))), column);
    let clip = "clip: lo is 2; it must not be above hi, which is 1";
    assert_eq!(said(r.matmul_with(&a, &c, Epilogue::new().clip(2.0, 1.0))), clip);
    let seven = (0..7).fold(Epilogue::new(), |e, _| e.relu());
    let steps = "matmul: the epilogue has 7 steps, 0 tensors and 0 scalars, of 6, 2 and 4 that fit; \
                 do the rest with operations of their own";
    assert_eq!(said(r.matmul_with(&a, &c, seven)), steps);
    let good = r.matmul(&a, &c).unwrap();
    let good = r.keep(good).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(good.read::<f32>().unwrap(), [3.0; 8]);
}

#[test]
fn matmuls_feed_matmuls_and_elementwise_operations() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, -1.0, 2.0, 0.5, 0.0, -3.0], [2, 3]).unwrap();
    let w1 = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2]).unwrap();
    let w2 = gpu.upload(&[2.0f32, 1.0], [2, 1]).unwrap();
    let b1 = gpu.upload(&[0.5f32, -0.5], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    // A program in front that must not move behind its reader, and one that comes after.
    let twice = r.add(&x, &x).unwrap();
    let h = r.matmul_with(twice, &w1, Epilogue::bias(&b1).relu()).unwrap();
    let y = r.matmul(h, &w2).unwrap();
    let z = r.add(y, y).unwrap();
    let (h, y, z) = (r.keep(h).unwrap(), r.keep(y).unwrap(), r.keep(z).unwrap());
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(h.read::<f32>().unwrap(), [6.5, 1.5, 0.0, 0.0]);
    assert_eq!(y.read::<f32>().unwrap(), [14.5, 0.0]);
    assert_eq!(z.read::<f32>().unwrap(), [29.0, 0.0]);
}

#[test]
fn an_epilogue_gives_the_bits_of_the_operations() {
    let gpu = gpu();
    let data = |n: usize, salt: usize| -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + salt) % 1000) as f32 / 250.0 - 2.0).collect()
    };
    let (a, b) =
        (gpu.upload(&data(70 * 20, 1), [70, 20]).unwrap(), gpu.upload(&data(20 * 36, 2), [20, 36]).unwrap());
    let bias = gpu.upload(&data(36, 3), [36]).unwrap();
    let (fused, apart) = gpu
        .run(|r| {
            let fused = r.matmul_with(&a, &b, Epilogue::bias(&bias).gelu().scale(0.5))?;
            let matmul = r.matmul(&a, &b)?;
            let sum = r.add(matmul, &bias)?;
            let active = r.gelu(sum)?;
            Ok((fused, r.scale(active, 0.5f32)?))
        })
        .unwrap();
    assert_eq!(fused.read::<f32>().unwrap(), apart.read::<f32>().unwrap());
}

/// Large results of odd rows are made in longer ones first, on software drivers; nothing of that shows.
#[test]
fn large_results_of_odd_rows_have_every_element_and_epilogue() {
    let gpu = gpu();
    let [m, n, k] = [301, 303, 37];
    let whole = |count: usize, salt: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + i / 11 + salt) % 5) as f32 - 2.0).collect()
    };
    let (a, b, c, bias) = (whole(m * k, 1), whole(k * n, 2), whole(m * n, 3), whole(n, 4));
    let matmul = |i: usize| -> f32 { (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum() };
    let (x, y) = (gpu.upload(&a, [m, k]).unwrap(), gpu.upload(&b, [k, n]).unwrap());
    let (residual, row) = (gpu.upload(&c, [m, n]).unwrap(), gpu.upload(&bias, [n]).unwrap());
    let r = gpu.begin_recording().unwrap();
    let plain = r.matmul(&x, &y).unwrap();
    let with_row = r.matmul_with(&x, &y, Epilogue::bias(&row)).unwrap();
    let with_both = r.matmul_with(&x, &y, Epilogue::bias(&row).plus(&residual)).unwrap();
    let kept = [plain, with_row, with_both].map(|value| r.keep(value).unwrap());
    r.end_recording().unwrap().wait().unwrap();
    let [plain, with_row, with_both] = kept.map(|tensor| tensor.read::<f32>().unwrap());
    for i in 0..m * n {
        let sum = matmul(i);
        let expected = [sum, sum + bias[i % n], sum + bias[i % n] + c[i]];
        assert_eq!([plain[i], with_row[i], with_both[i]], expected, "element {i}");
    }
}

/// What is made in longer rows first is a matrix, whatever shape the result has: a vector, or that of a tail.
#[test]
fn large_results_of_odd_rows_keep_their_elements_in_other_shapes() {
    let whole = |count: usize, salt: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + i / 11 + salt) % 5) as f32 - 2.0).collect()
    };
    for fusion in [true, false] {
        let gpu = gpu_with(config().fusion(fusion));
        // As many elements as are made aside, and one fewer.
        for rows in [65_535, 65_536, 65_537] {
            let k = 7;
            let (a, v) = (whole(rows * k, 1), whole(k, 2));
            let (x, y) = (gpu.upload(&a, [rows, k]).unwrap(), gpu.upload(&v, [k]).unwrap());
            let one_row = y.reshape([1, k]).unwrap();
            let how = Matmul::new().transpose_rhs();
            let (column, row) =
                gpu.run(|r| Ok((r.matmul(&x, &y)?, r.matmul_with(&one_row, &x, how)?))).unwrap();
            let expected: Vec<f32> =
                a.chunks(k).map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum()).collect();
            for result in [column, row] {
                assert!(
                    result.read::<f32>().unwrap() == expected,
                    "{} of {rows}, fusion {fusion}",
                    result.shape()
                );
            }
        }
        let [m, n, k] = [64, 1025, 5];
        let (a, b) = (whole(m * k, 3), whole(k * n, 4));
        let (x, y) = (gpu.upload(&a, [m, k]).unwrap(), gpu.upload(&b, [k, n]).unwrap());
        let element = |i: usize| -> f32 { (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum() };
        let expected: Vec<f32> = (0..m * n).map(|i| 0.0 - element(i)).collect();
        for shape in [vec![m, 5, 205], vec![m * n], vec![32, 2, n], vec![1025, 64]] {
            let shape = tidemill::Shape::new(&shape).unwrap();
            let zero = gpu.upload(&[0.0f32], [1]).unwrap();
            let got = gpu
                .run(|r| {
                    let matmul = r.matmul(&x, &y)?;
                    let seen = r.reshape(matmul, shape)?;
                    r.sub(&zero, seen)
                })
                .unwrap();
            assert!(got.read::<f32>().unwrap() == expected, "{shape}, fusion {fusion}");
        }
    }
}
