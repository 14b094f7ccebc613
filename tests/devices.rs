//! Several accelerators in one process, on one device and on two.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "gpu/fixtures.rs"]
mod fixtures;
#[path = "gpu/harness.rs"]
mod harness;

use fixtures::kernel;
use harness::{Gpu, config, gpu, gpu_with};
use tidemill::device::DeviceChoice;
use tidemill::{Accelerator, Conv2d, DType, Dispatch, Error, Tensor};

/// Both work at the same time, from two threads, with what one process has only once: the loader, the layer, the exit
/// hook.
fn both_compute(one: &Gpu, other: &Gpu) {
    let scale = kernel("scale");
    let compute = |gpu: &Accelerator, factor: f32| {
        let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let t = gpu.upload(&x, [1000]).unwrap();
        for _ in 0..10 {
            let run = Dispatch::new(&scale).input(&t).output([1000], DType::F32).push(&[factor]);
            let run = run.specialize(0, 64u32).groups([16, 1, 1]);
            let y = gpu.run(|r| r.dispatch(run)).unwrap();
            let expected: Vec<f32> = x.iter().map(|x| factor * x).collect();
            assert_eq!(y[0].read::<f32>().unwrap(), expected, "on {}", gpu.device().name);
        }
    };
    std::thread::scope(|s| {
        s.spawn(|| compute(one, 2.0));
        s.spawn(|| compute(other, 3.0));
    });
}

/// A tensor of one is a typed error with the other, before anything is recorded; read and upload is the way.
fn tensors_stay_at_home(one: &Gpu, other: &Gpu) {
    let theirs = other.upload(&[1.0f32, 2.0], [2]).unwrap();
    let ours: Tensor = one.upload(&[10.0f32, 20.0], [2]).unwrap();
    let r = one.begin_recording().unwrap();
    let error = r.add(&ours, &theirs).unwrap_err();
    assert!(matches!(&error, Error::ForeignTensor { op: "add", .. }), "{error:?}");
    let (home, here) = (&other.device().name, &one.device().name);
    let text = format!(
        "add: the tensor belongs to {home}, this accelerator is {here}; read it there and upload it here"
    );
    // Two on one device have numbers.
    assert!(home == here || error.to_string() == text, "{error}");
    drop(r);
    let moved = one.upload(&theirs.read::<f32>().unwrap(), [2]).unwrap();
    assert_eq!(moved.read::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn two_accelerators_on_one_device() {
    let (one, other) = (gpu(), gpu());
    both_compute(&one, &other);
    tensors_stay_at_home(&one, &other);
    // The one goes, the other stays.
    drop(one);
    let x = other.upload(&[4.0f32], [1]).unwrap();
    assert_eq!(x.read::<f32>().unwrap(), [4.0]);
}

#[test]
#[ignore = "needs SwiftShader beside lavapipe: VK_DRIVER_FILES with both, as .ci/run has it"]
fn two_accelerators_on_two_devices() {
    let devices = Accelerator::devices().unwrap();
    for (name, kind) in devices.iter().map(|d| (&d.name, d.kind)) {
        println!("{name} ({kind})");
    }
    let on = |part: &str| {
        let there =
            devices.iter().find(|d| d.name.contains(part)).unwrap_or_else(|| panic!("there is no {part}"));
        assert!(there.is_usable(), "{part}: {}", there.refused.join(", "));
        let gpu = gpu_with(config().device(DeviceChoice::Name(part.to_owned())));
        assert_eq!(gpu.device().index, there.index);
        gpu
    };
    let (lavapipe, swiftshader) = (on("llvmpipe"), on("SwiftShader"));
    both_compute(&lavapipe, &swiftshader);
    tensors_stay_at_home(&lavapipe, &swiftshader);
    tensors_stay_at_home(&swiftshader, &lavapipe);
}

/// The one compiles when pipelines are made, on several threads at once, the other at the first dispatch.
#[test]
#[ignore = "needs SwiftShader beside lavapipe: VK_DRIVER_FILES with both, as .ci/run has it"]
fn pipelines_are_made_at_once_and_ahead() {
    for part in ["SwiftShader", "llvmpipe"] {
        let gpu = gpu_with(config().device(DeviceChoice::Name(part.to_owned())).fusion(false));
        let x = gpu.upload(&[2.25f32; 64], [64]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let values = [r.neg(&x), r.sqrt(&x), r.floor(&x), r.exp(&x), r.sum(&x, 0), r.softmax(&x, 0)];
        let kept: Vec<Tensor> = values.into_iter().map(|y| r.keep(y.unwrap()).unwrap()).collect();
        let mut told = Vec::new();
        let watch = |p: tidemill::stats::PrepareProgress| {
            told.push((p.ready, p.total));
            std::ops::ControlFlow::Continue(())
        };
        r.prepare(watch).unwrap();
        let total = told[0].1;
        assert!(total >= 6, "on {part}");
        assert_eq!(told, (0..=total).map(|ready| (ready, total)).collect::<Vec<_>>(), "on {part}");
        let made = gpu.stats().pipelines.made;
        assert_eq!(made, total as u64);
        let _ = r.end_recording().unwrap();
        assert_eq!(kept[1].read::<f32>().unwrap(), [1.5; 64], "on {part}");
        assert_eq!(kept[4].read::<f32>().unwrap(), [144.0], "on {part}");
        assert_eq!(gpu.stats().pipelines.made, made, "nothing was left to be made");
    }
}

/// Matmuls and a convolution of small whole numbers, whose sums are exact in any order.
fn matmuls(gpu: &Gpu) -> Vec<Vec<f32>> {
    let whole = |n: usize| (0..n).map(|i| ((i * 7 + i / 11) % 5) as f32 - 2.0).collect::<Vec<_>>();
    let mut results = Vec::new();
    for [m, n, k] in [[37, 70, 33], [40, 3, 50], [1, 70, 50]] {
        let (a, b) = (gpu.upload(&whole(m * k), [m, k]), gpu.upload(&whole(k * n), [k, n]));
        results.push(gpu.run(|r| r.matmul(&a.unwrap(), &b.unwrap())).unwrap().read().unwrap());
    }
    let (x, w) = (gpu.upload(&whole(3 * 81), [1, 3, 9, 9]), gpu.upload(&whole(12 * 27), [12, 3, 3, 3]));
    let weights = gpu.prepare_weights(&w.unwrap(), 1).unwrap();
    let y = gpu.run(|r| r.conv2d_with(&x.unwrap(), &weights, Conv2d::new().padding([1, 1]))).unwrap();
    results.push(y.read().unwrap());
    results
}

#[test]
#[ignore = "needs SwiftShader beside lavapipe: VK_DRIVER_FILES with both, as .ci/run has it"]
fn subgroups_of_four_and_of_eight_multiply_alike() {
    let on = |part: &str, [matmul, convolution]: [&str; 2]| {
        let config = config().device(DeviceChoice::Name(part.to_owned()));
        gpu_with(config.variant("matmul", matmul).variant("conv2d", convolution))
    };
    let software = ["texel-rows", "texel-direct"];
    let eight = on("llvmpipe", software);
    let expected = matmuls(&eight);
    assert_eq!(eight.device().limits.subgroup_size, 8);
    for variants in [software, ["buffer-shared", "buffer-tile"]] {
        let four = on("SwiftShader", variants);
        assert_eq!(four.device().limits.subgroup_size, 4);
        assert_eq!(matmuls(&four), expected, "{variants:?}");
    }
}
