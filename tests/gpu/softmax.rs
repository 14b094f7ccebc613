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
