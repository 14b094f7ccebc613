//! Fused and unfused give the same bits, and fusion does what it is for.

use tidemill::{Accelerator, Operand, Recording, Result, Tensor, Value};

use crate::harness::{config, gpu, gpu_with};

/// A sequence of numbers that is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// One random operation on known values.
fn random_op(r: &mut Recording, random: &mut Random, known: &[Value], row: &Tensor) -> Result<Value> {
    let (a, b) = (known[random.below(known.len())], known[random.below(known.len())]);
    match random.below(9) {
        0 => r.add(a, b),
        1 => r.sub(a, b),
        2 => r.mul(a, b),
        3 => r.max(a, b),
        4 => r.add(a, row),
        5 => r.relu(a),
        6 => r.scale(a, 0.5),
        7 => r.neg(a),
        // Something that is no program stands in the way.
        _ => r.copy(a),
    }
}

/// A random graph. `structure` alone decides its shape, so that the number of distinct programs stays bounded.
fn random_graph(gpu: &Accelerator, structure: u64, nodes: usize, data: &[f32]) -> Vec<Vec<f32>> {
    let x = gpu.upload(data, [data.len() / 8, 8]).unwrap();
    let row = gpu.upload(&data[..8], [8]).unwrap();
    let mut random = Random(structure);
    let mut r = gpu.begin_recording().unwrap();
    let mut known = vec![r.reshape(Operand::from(&x), [data.len() / 8, 8]).unwrap()];
    let mut kept = Vec::new();
    for _ in 0..nodes {
        let recent = known.len().saturating_sub(4);
        let value = random_op(&mut r, &mut random, &known[recent..], &row).unwrap();
        known.push(value);
        if random.below(6) == 0 {
            kept.push(r.keep(value).unwrap());
        }
    }
    kept.push(r.keep(known[nodes]).unwrap());
    r.end_recording().unwrap().wait().unwrap();
    kept.iter().map(|tensor| tensor.read().unwrap()).collect()
}

#[test]
fn random_graphs_give_the_same_bits_fused_and_unfused() {
    let (fused, unfused) = (gpu(), gpu_with(config().fusion(false)));
    for round in 0..60 {
        let rows = [1, 3, 17, 64][round % 4];
        let mut random = Random(1000 + round as u64);
        let data: Vec<f32> = (0..8 * rows).map(|_| random.below(2001) as f32 / 500.0 - 2.0).collect();
        let structure = (round % 12) as u64;
        let nodes = [5, 20, 60][round % 3];
        let bits = |gpu: &Accelerator| -> Vec<Vec<u32>> {
            let results = random_graph(gpu, structure, nodes, &data);
            results.iter().map(|r| r.iter().map(|x| x.to_bits()).collect()).collect()
        };
        assert_eq!(bits(&fused), bits(&unfused), "structure {structure}, {nodes} nodes, {rows} rows");
    }
    let (a, b) = (fused.stats(), unfused.stats());
    assert!(a.dispatches * 3 < b.dispatches * 2, "{} dispatches instead of {}", a.dispatches, b.dispatches);
}

#[test]
fn a_chain_of_100_is_a_handful_of_dispatches_and_right() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 1000], [1000]).unwrap();
    let before = gpu.stats().dispatches;
    let y = gpu
        .run(|r| {
            let mut v = r.add(&x, &x)?;
            for _ in 1..100 {
                v = r.add(v, &x)?;
            }
            Ok(v)
        })
        .unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [101.0; 1000]);
    assert_eq!(gpu.stats().dispatches - before, 7);
}
