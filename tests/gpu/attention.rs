//! Attention: what the table of cases can't say.

use tidemill::{Attention, RotaryPairs};

use crate::harness::gpu;

/// 2,048 tokens in 4 heads have 64 MiB of scores.
#[test]
fn scores_are_never_in_memory() {
    let gpu = gpu();
    let (heads, tokens, depth) = (4, 2048, 16);
    let bytes = (4 * heads * tokens * depth) as u64;
    let q = gpu.run(|r| r.random_uniform([heads, tokens, depth], 1)).unwrap();
    let k = gpu.run(|r| r.random_uniform([heads, tokens, depth], 2)).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.keep(r.attention(&q, &k, &k, Attention::new().causal()).unwrap()).unwrap();
    assert_eq!(r.explain().unwrap().temporary_bytes, 0);
    r.end_recording().unwrap().wait().unwrap();
    let peak_bytes = gpu.stats().pool.peak_bytes;
    // q, k and the result.
    assert!(peak_bytes <= 4 * bytes, "{peak_bytes}");
    drop(y);
}

/// What parts of the keys leave behind is as much as a few results.
#[test]
fn parts_of_the_keys_take_memory_by_rows() {
    let gpu = gpu();
    let keys = 1 << 16;
    let q = gpu.run(|r| r.random_uniform([1, 1, 16], 1)).unwrap();
    let k = gpu.run(|r| r.random_uniform([1, keys, 16], 2)).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.keep(r.attention(&q, &k, &k, Attention::new()).unwrap()).unwrap();
    let explained = r.explain().unwrap();
    assert!((1..64 << 10).contains(&explained.temporary_bytes), "{}", explained.temporary_bytes);
    let before = gpu.stats().dispatches;
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(gpu.stats().dispatches - before, 2);
    let got = y.read::<f32>().unwrap();
    // Weights are nearly alike.
    assert!(got.iter().all(|x| (x - 0.5).abs() < 0.05), "{got:?}");
}

/// One plan serves a cache that grows: the number of keys is read when the plan runs.
#[test]
fn a_plan_reads_the_length_anew() {
    let gpu = gpu();
    let q = gpu.upload(&[0.0f32; 8], [1, 1, 8]).unwrap();
    let v: Vec<f32> = (0..64 * 8).map(|i| (i / 8) as f32).collect();
    let v = gpu.upload(&v, [1, 64, 8]).unwrap();
    let length = gpu.upload(&[1u32], [1]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let turned = r.rotary(&q, &length, 10_000.0, RotaryPairs::Neighbours).unwrap();
    let how = Attention::new().causal().length(&length);
    let y = r.keep(r.attention(turned, &v, &v, how).unwrap()).unwrap();
    let mut plan = r.into_plan().unwrap();
    for keys in [1u32, 2, 33, 64, 0] {
        length.write(&[keys]).unwrap();
        plan.submit().unwrap().wait().unwrap();
        let mean = keys.saturating_sub(1) as f32 / 2.0;
        assert!(y.read::<f32>().unwrap().iter().all(|x| (x - mean).abs() < 1e-4), "{keys}");
    }
}

#[test]
fn the_same_operands_give_the_same_bits() {
    let gpu = gpu();
    let q = gpu.run(|r| r.random_uniform([3, 50, 20], 1)).unwrap();
    let k = gpu.run(|r| r.random_uniform([3, 1000, 20], 2)).unwrap();
    let run = || gpu.run(|r| r.attention(&q, &k, &k, Attention::new())).unwrap().read::<f32>().unwrap();
    let first = run();
    assert!(run().iter().zip(&first).all(|(a, b)| a.to_bits() == b.to_bits()));
}

/// Two tensors with the same positions share cosines and sines.
#[test]
fn angles_are_made_once() {
    let gpu = gpu();
    let (q, k) = (gpu.upload(&[1.0f32; 64], [4, 16]).unwrap(), gpu.upload(&[2.0f32; 64], [4, 16]).unwrap());
    let before = gpu.stats().dispatches;
    let start = gpu.upload(&[3u32], [1]).unwrap();
    gpu.run(|r| {
        let turn = |x| r.rotary(x, &start, 10_000.0, RotaryPairs::Halves);
        Ok([turn(&q)?, turn(&k)?])
    })
    .unwrap();
    assert_eq!(gpu.stats().dispatches - before, 3);
}
