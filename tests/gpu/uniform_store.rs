//! Modules whose subgroups store together: lavapipe 22.3 gets them for whole workgroups and tiles, and the bits are those of the
//! ordinary modules.

use std::collections::BTreeSet;

use tidemill::{Accelerator, Conv2d, Recording, Result, Tensor, Value};

use crate::harness::{Gpu, config, gpu_with};

/// Where matmuls and convolutions store together: on the one release of lavapipe where that was measured.
pub(crate) fn stores_uniformly(gpu: &Accelerator) -> bool {
    let driver = &gpu.device().driver;
    driver.contains("llvmpipe") && driver.contains("Mesa 22.3.")
}

/// Mesa's software driver, with these variants. Others may have other defaults.
fn lavapipe(variants: &[(&str, &str)]) -> Gpu {
    let config = config().device_name("llvmpipe");
    gpu_with(variants.iter().fold(config, |config, (family, name)| config.variant(family, name)))
}

fn noise(gpu: &Accelerator, seed: u64, shape: impl Into<tidemill::Shape>) -> Tensor {
    gpu.run(|r| r.random_normal(shape, seed)).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.read::<f32>().unwrap().iter().map(|x| x.to_bits()).collect()
}

/// The result's bits, and the kernel of the last dispatch.
fn run(gpu: &Accelerator, record: impl Fn(&Recording) -> Result<Value>) -> (Vec<u32>, String) {
    let r = gpu.begin_recording().unwrap();
    let value = record(&r).unwrap();
    let kept = r.keep(value).unwrap();
    let kernel = r.explain().unwrap().run.last().and_then(|step| step.kernel.clone()).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    (bits(&kept), kernel)
}

type Op = fn(&Recording, &Tensor, &Tensor) -> Result<Value>;

/// Compares elementwise programs and softmax with those of ordinary modules; the modules that stored together.
pub(crate) fn run_elementwise_and_softmax() -> BTreeSet<String> {
    let ops: [(&str, Op, [usize; 2]); 9] = [
        ("relu", |r, x, _| r.relu(x), [1, 2048]),
        ("add", |r, x, y| r.add(x, y), [64, 2048]),
        ("gelu", |r, x, _| r.gelu(x), [128, 2048]),
        ("pow", |r, x, y| r.pow(x, y), [128, 2048]),
        ("min", |r, x, y| r.min(x, y), [1, 2048]),
        (
            "relu(x * y + x) * y",
            |r, x, y| {
                let h = r.mul(x, y)?;
                let h = r.add(h, x)?;
                let h = r.relu(h)?;
                r.mul(h, y)
            },
            [64, 2048],
        ),
        ("softmax of rows", |r, x, _| r.softmax(x, -1), [24, 1024]),
        ("log_softmax of an odd number of rows", |r, x, _| r.log_softmax(x, -1), [5, 256]),
        ("softmax of a long row", |r, x, _| r.softmax(x, -1), [2, 65_536]),
    ];
    let uniform = lavapipe(&[("elementwise", "texel-uniform"), ("softmax", "texel-uniform")]);
    let apart = lavapipe(&[("elementwise", "texel-64x8"), ("softmax", "texel-shuffle")]);
    let mut kernels = BTreeSet::new();
    for (name, op, shape) in ops {
        let result = |gpu: &Accelerator| {
            let (x, y) = (noise(gpu, 1, shape), noise(gpu, 2, shape));
            run(gpu, |r| op(r, &x, &y))
        };
        let ((ours, kernel), (ordinary, other)) = (result(&uniform), result(&apart));
        assert!(kernel.contains(".uniform.") && !other.contains(".uniform."), "{name}: {kernel}, {other}");
        assert_eq!(ours, ordinary, "{name}");
        kernels.insert(kernel);
    }
    kernels
}

#[test]
fn elementwise_programs_and_softmax_are_the_same_bits() {
    assert!(run_elementwise_and_softmax().len() >= 8, "one module for each kind of operation");
}

#[test]
fn matmuls_are_the_same_bits_as_those_of_larger_ones() {
    let gpu = lavapipe(&[]);
    for (m, n, k) in [(32, 32, 8), (64, 96, 260), (128, 64, 512)] {
        let (a, b) = (noise(&gpu, 1, [m, k]), noise(&gpu, 2, [k, n]));
        // One more row: its tile is not whole.
        let (more, bias) = (noise(&gpu, 3, [1, k]), noise(&gpu, 4, [n]));
        let epilogue = |r: &Recording, matmul: Value| {
            let h = r.add(matmul, &bias)?;
            r.relu(h)
        };
        let (ours, kernel) = run(&gpu, |r| {
            let matmul = r.matmul(&a, &b)?;
            epilogue(r, matmul)
        });
        let (larger, other) = run(&gpu, |r| {
            let a = r.concat([&a, &more], 0)?;
            let matmul = r.matmul(a, &b)?;
            epilogue(r, matmul)
        });
        assert_eq!(kernel.contains(".uniform."), stores_uniformly(&gpu), "{kernel}");
        assert!(!other.contains(".uniform."), "{other}");
        assert!(ours == larger[..m * n], "{m} x {n} x {k}");
    }
}

#[test]
fn convolutions_of_one_image_are_the_same_bits_as_those_of_two() {
    let gpu = lavapipe(&[]);
    for (channels, rows, taps) in [(3, 64, 7), (8, 32, 3)] {
        let (x, w) = (noise(&gpu, 1, [1, channels, 16, 16]), noise(&gpu, 2, [rows, channels, taps, taps]));
        let options = Conv2d::new().padding([taps / 2; 2]);
        let (ours, kernel) = run(&gpu, |r| r.conv2d_with(&x, &w, options.clone()));
        let (both, other) = run(&gpu, |r| {
            let x = r.concat([&x, &x], 0)?;
            r.conv2d_with(x, &w, options.clone())
        });
        assert_eq!(kernel.contains(".uniform."), stores_uniformly(&gpu), "{kernel}");
        assert!(!other.contains(".uniform."), "{other}");
        assert_eq!(ours.len() * 2, both.len());
        assert!(both.chunks(ours.len()).all(|image| image == ours), "{channels} to {rows}, {taps} taps");
    }
}
