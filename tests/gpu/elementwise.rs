//! Elementwise operations.

use crate::harness::gpu;

#[test]
fn add_of_many_sizes() {
    let gpu = gpu();
    for n in [0, 1, 2, 3, 4, 5, 255, 256, 257, 1023, 2047, 2048, 2049, 100_003] {
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
        let (ta, tb) = (gpu.upload(&a, [n]).unwrap(), gpu.upload(&b, [n]).unwrap());
        let sum = gpu.run(|r| r.add(&ta, &tb)).unwrap();
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(sum.read::<f32>().unwrap(), expected, "{n}");
    }
}
