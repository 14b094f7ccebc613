//! For those who optimise: `cargo bench` compares with the last run on the same machine.
//! Comparisons with other systems are `./dev bench`.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::expect_used, reason = "a bench without a device has nothing to measure")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tidemill::{Accelerator, Config, Tensor};

/// The accelerator, with nothing going on in the background.
fn gpu() -> Accelerator {
    let gpu = Accelerator::global().expect("a Vulkan device: `tidemill info` says what is missing");
    gpu.wait_prewarmed();
    gpu
}

fn tensor(gpu: &Accelerator, n: usize) -> Tensor {
    gpu.upload_with([n], |f| f.extend((0..n).map(|i| i as f32))).expect("room for a tensor")
}

/// Begin, a chain of adds, end, each a dispatch of its own; the wait for the device is not counted.
fn record(c: &mut Criterion) {
    let gpu = Accelerator::new(&Config::new().fusion(false)).expect("a Vulkan device");
    gpu.wait_prewarmed();
    let a = tensor(&gpu, 1024);
    let mut group = c.benchmark_group("record");
    for ops in [1u64, 10, 100, 1000] {
        group.throughput(Throughput::Elements(ops));
        group.bench_with_input(BenchmarkId::from_parameter(ops), &ops, |bench, &ops| {
            bench.iter_custom(|rounds| {
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    let begun = Instant::now();
                    let r = gpu.begin_recording().expect("an open accelerator");
                    let mut value = r.add(&a, &a).expect("an add");
                    for _ in 1..ops {
                        value = r.add(value, &a).expect("an add");
                    }
                    let kept = r.keep(value).expect("our own value");
                    let submission = r.end_recording().expect("a submission");
                    total += begun.elapsed();
                    submission.wait().expect("an end");
                    drop(kept);
                }
                total
            });
        });
    }
    group.finish();
}

/// A block from the pool and back, with the tensor around it.
fn pool(c: &mut Criterion) {
    let gpu = gpu();
    let mut group = c.benchmark_group("pool");
    for bytes in [4usize, 4096, 1 << 20] {
        let data = vec![0u32; bytes / 4];
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::new("upload", bytes), &data, |bench, data| {
            bench.iter(|| black_box(gpu.upload(data, [data.len()]).expect("room for a tensor")));
        });
    }
    group.finish();
}

/// One add, from begin to completed.
fn add(c: &mut Criterion) {
    let gpu = gpu();
    let mut group = c.benchmark_group("add");
    for n in [1usize << 10, 1 << 16, 1 << 20, 1 << 24] {
        let (a, b) = (tensor(&gpu, n), tensor(&gpu, n));
        group.throughput(Throughput::Bytes(12 * n as u64));
        group.bench_function(BenchmarkId::from_parameter(n), |bench| {
            bench.iter(|| {
                let r = gpu.begin_recording().expect("an open accelerator");
                let sum = r.add(&a, &b).expect("an add");
                let kept = r.keep(sum).expect("our own value");
                r.end_recording().expect("a submission").wait().expect("an end");
                kept
            });
        });
    }
    group.finish();
}

criterion_group!(benches, record, pool, add);
criterion_main!(benches);
