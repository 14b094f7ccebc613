//! Softmax: what the table of cases can't say.

use crate::harness::gpu;

#[test]
fn rows_add_up_to_one_whatever_their_length() {
    let gpu = gpu();
    for n in [1, 2, 29, 30, 1000, 1023, 1024, 1281, 9000, 300_001] {
        let x: Vec<f32> = (0..2 * n).map(|i| ((i * 7919) % 1000) as f32 / 50.0).collect();
        let x = gpu.upload(&x, [2, n]).unwrap();
        let sums = gpu.run(|r| {
            let p = r.softmax(&x, -1)?;
            r.sum(p, 1)
        });
        for sum in sums.unwrap().read::<f32>().unwrap() {
            assert!((sum - 1.0).abs() < 1e-6, "{n}: {sum}");
        }
    }
}

#[test]
fn a_row_takes_one_dispatch_and_a_long_one_two() {
    let gpu = gpu();
    let dispatches = |shape: [usize; 3], axis: isize| {
        let x = gpu.run(|r| r.fill(shape, 1.0f32)).unwrap();
        let before = gpu.stats().dispatches;
        gpu.run(|r| r.softmax(&x, axis)).unwrap();
        gpu.stats().dispatches - before
    };
    assert_eq!(dispatches([1, 4096, 1024], 2), 1);
    assert_eq!(dispatches([2, 64, 1000], 1), 1);
    assert_eq!(dispatches([1, 1, 1 << 20], 2), 2);
    assert_eq!(dispatches([1, 0, 10], 2), 0);
}

#[test]
fn the_same_operand_gives_the_same_bits_every_time() {
    let gpu = gpu();
    let x: Vec<f32> = (0..200_003).map(|i| ((i * 7919) % 10_007) as f32 / 500.0).collect();
    let x = gpu.upload(&x, [200_003]).unwrap();
    let run = || gpu.run(|r| r.softmax(&x, 0)).unwrap().read::<f32>().unwrap();
    let first = run();
    for _ in 0..3 {
        assert!(run().iter().zip(&first).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

/// What stands among elements, what those are, and whether there is a distribution.
type Special = (f32, fn(usize) -> f32, bool);

/// Kernels look for the largest element and for what makes a row no distribution by the bits alone.
#[test]
fn special_elements_are_found_wherever_they_are() {
    let gpu = gpu();
    let negative_nan = f32::from_bits(0xffc0_0001);
    let specials: [Special; 8] = [
        (f32::NAN, |i| i as f32, false),
        (negative_nan, |i| i as f32, false),
        (negative_nan, |_| f32::NEG_INFINITY, false),
        (f32::INFINITY, |i| -(i as f32), false),
        (f32::NEG_INFINITY, |_| f32::NEG_INFINITY, false),
        (f32::NEG_INFINITY, |i| -2.0 - (i % 7) as f32, true),
        (-f32::MAX, |_| f32::NEG_INFINITY, true),
        (-0.0, |i| -1.0 - (i % 7) as f32, true),
    ];
    for n in [5, 32, 1000, 1024, 9000, 65_537, 131_072] {
        for at in [0, n / 2, n - 1] {
            let rows = specials.iter().flat_map(|(special, others, _)| {
                (0..n).map(move |i| if i == at { *special } else { others(i) })
            });
            let rows: Vec<f32> = rows.collect();
            let columns: Vec<f32> = (0..8 * n).map(|i| rows[i % 8 * n + i / 8]).collect();
            // Long rows are cut into parts where there is but one.
            let of_rows =
                |x: &[f32]| gpu.upload(x, [x.len() / n, n]).and_then(|x| gpu.run(|r| r.softmax(&x, 1)));
            let at_once = if n > 65_536 { n } else { 8 * n };
            let by_row = rows.chunks(at_once).flat_map(|x| of_rows(x).unwrap().read::<f32>().unwrap());
            let by_row: Vec<f32> = by_row.collect();
            let by_column = gpu.upload(&columns, [n, 8]).and_then(|x| gpu.run(|r| r.softmax(&x, 0))).unwrap();
            let by_column: Vec<f32> = by_column.read().unwrap();
            for (k, (special, _, distribution)) in specials.iter().enumerate() {
                let row = &by_row[k * n..][..n];
                let column: Vec<f32> = (0..n).map(|i| by_column[8 * i + k]).collect();
                for shares in [row, &column] {
                    let what = format!("{special} at {at} of {n}");
                    if !distribution {
                        assert!(shares.iter().all(|share| share.is_nan()), "{what}");
                        continue;
                    }
                    let sum: f64 = shares.iter().map(|&share| f64::from(share)).sum();
                    assert!((sum - 1.0).abs() < 1e-6, "{what}: {sum}");
                    assert_eq!(shares[at] == 0.0, *special == f32::NEG_INFINITY, "{what}");
                }
            }
        }
    }
}
