//! Devices with lower limits and fewer abilities: the same results, by other kernels.

use tidemill::{Accelerator, Config, Conv2d, Epilogue, Error, Matmul, Recording, Result, Tensor, Value};

use crate::harness::{Gpu, gpu_with};
use crate::seam::Seam;

/// Small whole numbers, whose sums are exact in any order.
fn whole(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + i / 11 + seed) % 5) as f32 - 2.0).collect()
}

fn matmul([m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<f32> {
    let element = |i: usize| (0..k).map(|x| a[i / n * k + x] * b[x * n + i % n]).sum();
    (0..m * n).map(element).collect()
}

/// A matmul of whole numbers with a bias, checked; the kernels that it took.
fn multiply(gpu: &Accelerator, [m, n, k]: [usize; 3]) -> Vec<String> {
    let (a, b, bias) = (whole(m * k, 1), whole(k * n, 2), whole(n, 3));
    let (ta, tb) = (gpu.upload(&a, [m, k]).unwrap(), gpu.upload(&b, [k, n]).unwrap());
    let t_bias = gpu.upload(&bias, [n]).unwrap();
    let (got, kernels) = run(gpu, |r| r.matmul_with(&ta, &tb, Epilogue::bias(&t_bias)));
    let mut expected = matmul([m, n, k], &a, &b);
    expected.iter_mut().enumerate().for_each(|(i, e)| *e += bias[i % n]);
    assert_eq!(got, expected, "{m}x{n}x{k} by {kernels:?}");
    kernels
}

/// A convolution of whole numbers, 3 x 3 with one row of padding, checked; the kernels that it took.
fn convolve(
    gpu: &Accelerator,
    [images, channels, rows]: [usize; 3],
    [h, w]: [usize; 2],
    groups: usize,
) -> Vec<String> {
    let depth = channels / groups;
    let (x, k) = (whole(images * channels * h * w, 4), whole(rows * depth * 9, 5));
    let tx = gpu.upload(&x, [images, channels, h, w]).unwrap();
    let weights = gpu.prepare_weights(&gpu.upload(&k, [rows, depth, 3, 3]).unwrap(), groups).unwrap();
    let (got, kernels) = run(gpu, |r| r.conv2d_with(&tx, &weights, Conv2d::new().padding([1, 1])));
    let expected = (0..images * rows * h * w).map(|at| {
        let (px, py, row, image) = (at % w, at / w % h, at / (w * h) % rows, at / (w * h * rows));
        let mut sum = 0.0;
        for (c, ty, tx) in (0..depth).flat_map(|c| (0..9).map(move |t| (c, t / 3, t % 3))) {
            let (y, x_at) = ((py + ty).wrapping_sub(1), (px + tx).wrapping_sub(1));
            if y < h && x_at < w {
                let channel = row / (rows / groups) * depth + c;
                sum += k[(row * depth + c) * 9 + ty * 3 + tx]
                    * x[((image * channels + channel) * h + y) * w + x_at];
            }
        }
        sum
    });
    assert_eq!(got, expected.collect::<Vec<f32>>(), "by {kernels:?}");
    kernels
}

fn run(gpu: &Accelerator, record: impl Fn(&Recording) -> Result<Value>) -> (Vec<f32>, Vec<String>) {
    let r = gpu.begin_recording().unwrap();
    let value = record(&r).unwrap();
    let kept: Tensor = r.keep(value).unwrap();
    let kernels = r.explain().unwrap().run.into_iter().filter_map(|step| step.kernel).collect();
    r.end_recording().unwrap().wait().unwrap();
    (kept.read().unwrap(), kernels)
}

/// For matmuls and for convolutions.
fn with_variants(config: Config, matmul: &str, convolution: &str) -> Gpu {
    gpu_with(config.variant("matmul", matmul).variant("conv2d", convolution))
}

#[test]
fn results_larger_than_a_binding_are_written_in_windows() {
    let seam = Seam::take();
    seam.edit_properties(|p| p.limits.max_storage_buffer_range = 600_064);
    for (matmul, convolution) in [
        ("texel-rows", "texel-direct"),
        ("buffer-rows", "buffer-direct"),
        ("buffer-tile-32", "buffer-tile-64"),
    ] {
        let gpu = with_variants(seam.config(), matmul, convolution);
        // In windows of rows; with operands packed first; and split along k in each window.
        assert!(multiply(&gpu, [700, 300, 16]).len() > 1);
        assert!(multiply(&gpu, [417, 371, 19]).len() > 2);
        let kernels = multiply(&gpu, [288, 288, 512]);
        if matmul == "buffer-tile-32" {
            assert_eq!(
                kernels.iter().filter(|kernel| kernel.starts_with("matmul_sum")).count(),
                2,
                "{kernels:?}"
            );
        }
        // Several images at a time.
        let kernels = convolve(&gpu, [7, 3, 33], [40, 41], 1);
        assert!(kernels.iter().filter(|kernel| kernel.starts_with("conv_")).count() > 1, "{kernels:?}");
        // An operand that no binding spans is refused by the operation, and the recording goes on.
        if matmul != "texel-rows" {
            let a = gpu.upload(&vec![1.0f32; 200_000], [2, 100_000]).unwrap();
            let x = a.reshape([1, 2, 250, 400]).unwrap();
            let thin = gpu.prepare_weights(&gpu.upload(&[1.0f32; 2], [1, 2, 1, 1]).unwrap(), 1).unwrap();
            let r = gpu.begin_recording().unwrap();
            let two = r.fill([3], 2.0f32).unwrap();
            let before = r.keep(two).unwrap();
            let refused = r.matmul_with(&a, &a, Matmul::new().transpose_rhs()).unwrap_err();
            assert!(
                matches!(refused, Error::BindingTooLarge { op: "matmul", bytes: 800_000, .. }),
                "{refused}"
            );
            let refused = r.conv2d_with(&x, &thin, Conv2d::new().stride([5, 5])).unwrap_err();
            assert!(
                matches!(refused, Error::BindingTooLarge { op: "conv2d", bytes: 800_000, .. }),
                "{refused}"
            );
            // One that would fit is refused, too, if the kernel needs it in wider rows.
            let column = gpu.upload(&vec![1.0f32; 60_000], [60_000, 1]).unwrap();
            let row = gpu.upload(&[1.0f32; 4], [1, 4]).unwrap();
            let refused = r.matmul(&column, &row).unwrap_err();
            assert!(
                matches!(refused, Error::BindingTooLarge { op: "matmul", bytes: 960_000.., .. }),
                "{refused}"
            );
            assert_eq!(r.explain().unwrap().recorded.len(), 1);
            let four = r.add(two, two).unwrap();
            let after = r.keep(four).unwrap();
            r.end_recording().unwrap().wait().unwrap();
            assert_eq!(before.read::<f32>().unwrap(), [2.0; 3]);
            assert_eq!(after.read::<f32>().unwrap(), [4.0; 3]);
        }
        // One image that no binding spans is refused before anything is recorded.
        let x = gpu.upload(&vec![1.0f32; 1 << 14], [1, 1, 128, 128]).unwrap();
        let w = gpu.upload(&[1.0f32; 10], [10, 1, 1, 1]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let refused = r.conv2d_with(&x, &w, Conv2d::new()).unwrap_err();
        assert!(matches!(refused, Error::BindingTooLarge { op: "conv2d", bytes: 655_360, .. }), "{refused}");
        assert!(r.explain().unwrap().recorded.is_empty());
    }
}

#[test]
fn tiles_that_a_workgroup_can_not_hold_are_not_taken() {
    let seam = Seam::take();
    seam.edit_properties(|p| {
        p.limits.max_compute_work_group_invocations = 128;
        p.limits.max_compute_work_group_size = [128, 128, 64];
        p.limits.max_compute_shared_memory_size = 1 << 14;
    });
    let gpu = seam.gpu();
    let names: Vec<_> = gpu.variants().iter().map(|variant| variant.name).collect();
    assert!(names.contains(&"buffer-tile-32") && names.contains(&"buffer-shared"), "{names:?}");
    assert!(
        !names.iter().any(|name| ["buffer-tile-64", "buffer-tile-128", "buffer-256x1"].contains(name)),
        "{names:?}"
    );
    // Asked for by name, they are carried out with what fits.
    let gpu = with_variants(seam.config(), "buffer-tile-128", "buffer-tile-64");
    assert!(multiply(&gpu, [130, 140, 40])[0].starts_with("matmul_tile.buffer"));
    assert!(convolve(&gpu, [1, 3, 70], [9, 10], 1)[0].starts_with("conv_tile.buffer"));
}

#[test]
fn few_texel_bindings_leave_storage_buffers() {
    let seam = Seam::take();
    seam.edit_properties(|p| p.limits.max_per_stage_descriptor_storage_images = 3);
    let gpu = seam.gpu();
    let mut kernels = multiply(&gpu, [37, 70, 33]);
    kernels.extend(multiply(&gpu, [37, 3, 33]));
    kernels.extend(multiply(&gpu, [5, 9, 2000]));
    kernels.extend(convolve(&gpu, [2, 3, 9], [9, 11], 1));
    assert!(kernels.iter().all(|kernel| !kernel.contains(".texel")), "{kernels:?}");
    assert!(kernels.iter().any(|kernel| kernel.starts_with("matmul_rows.buffer")), "{kernels:?}");
}

/// Everything that has kernels which shuffle; the kernels that were taken.
fn everything_that_shuffles(gpu: &Accelerator) -> Vec<String> {
    let mut kernels = multiply(gpu, [37, 70, 33]);
    kernels.extend(multiply(gpu, [40, 3, 200]));
    kernels.extend(multiply(gpu, [1, 70, 200]));
    kernels.extend(convolve(gpu, [1, 3, 12], [9, 12], 1));
    kernels.extend(convolve(gpu, [1, 4, 4], [8, 8], 4));
    let x = gpu.upload(&[0.5f32; 3000], [3, 1000]).unwrap();
    let (sums, of_sums) = run(gpu, |r| r.sum(&x, -1));
    assert_eq!(sums, [500.0; 3]);
    let (shares, of_shares) = run(gpu, |r| r.softmax(&x, -1));
    assert!(shares.iter().all(|share| (share * 1000.0 - 1.0).abs() < 1e-5));
    let big = gpu.upload(&[1.0f32; 1 << 16], [1 << 16]).unwrap();
    let (twice, of_twice) = run(gpu, |r| r.add(&big, &big));
    assert!(twice.iter().all(|x| *x == 2.0));
    kernels.into_iter().chain(of_sums).chain(of_shares).chain(of_twice).collect()
}

/// Whether a kernel, or a variant's kernels, count on the size of subgroups.
fn shuffles(kernel: &str) -> bool {
    let shuffling = ["matmul_rows", "matmul_dot", "conv_direct"].iter().any(|name| kernel.starts_with(name));
    shuffling || kernel.contains("shuffle") || kernel.contains("uniform")
}

#[test]
fn without_shuffles_or_known_subgroups_everything_goes_through_shared_memory() {
    for known in [true, false] {
        let seam = Seam::take();
        if known {
            seam.hide_shuffles();
        } else {
            // As a driver tells that has no say in what its compiler takes.
            seam.vary_subgroups(4, 8);
            seam.hide_feature("subgroupSizeControl");
        }
        let gpu = seam.gpu();
        let kernels = everything_that_shuffles(&gpu);
        assert!(!kernels.iter().any(|kernel| shuffles(kernel)), "{kernels:?}");
        assert!(
            !gpu.variants().iter().any(|variant| shuffles(variant.name) || variant.name.contains("rows"))
        );
        assert!(seam.subgroups_asked().iter().all(|(size, _)| size.is_none()));
        // Asked for by name, its kernels say what they lack.
        let gpu = gpu_with(seam.config().variant("softmax", "texel-shuffle"));
        let x = gpu.upload(&[0.5f32; 3000], [3, 1000]).unwrap();
        let refused = gpu.run(|r| r.softmax(&x, -1)).unwrap_err();
        let needs = match known {
            true => "needs the SPIR-V capability GroupNonUniformShuffle, which",
            false => "needs subgroups of 8, not of 4 to 8, which",
        };
        assert!(
            matches!(refused, Error::KernelNeeds { .. }) && refused.to_string().contains(needs),
            "{refused}"
        );
    }
}

#[test]
fn kernels_that_shuffle_ask_for_their_subgroups() {
    let seam = Seam::take();
    // A driver that has several sizes, and can be told which.
    seam.vary_subgroups(4, 8);
    let gpu = seam.gpu();
    let kernels = everything_that_shuffles(&gpu);
    assert!(kernels.iter().filter(|kernel| shuffles(kernel)).count() > 5, "{kernels:?}");
    let asked = seam.subgroups_asked();
    let distinct: std::collections::BTreeSet<_> = kernels.iter().filter(|kernel| shuffles(kernel)).collect();
    let with_size: Vec<_> = asked.iter().filter(|(size, _)| size.is_some()).collect();
    assert!(with_size.len() >= distinct.len(), "{asked:?} for {distinct:?}");
    assert!(with_size.iter().all(|asked| **asked == (Some(8), true)), "{asked:?}");
}
