//! Users' own kernels: end to end, and every mistake in their arguments.

use tidemill::error::KernelMismatch;
use tidemill::{Accelerator, DType, Dispatch, Error, Kernel, Tensor};

use crate::fixtures::{kernel, words};
use crate::harness::gpu;

#[test]
fn push_constants_and_specialization_arrive() {
    let gpu = gpu();
    let scale = kernel("scale");
    assert_eq!(scale.name(), "scale");
    assert_eq!(scale.reflection().push_constant_bytes, 4);
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let t = gpu.upload(&x, [10, 100]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let base = Dispatch::new(&scale).input(&t).output([1000], DType::F32);
    let y = r.dispatch(base.clone().push(&[2.0f32]).specialize(0, 64u32).groups([16, 1, 1])).unwrap()[0];
    let again = Dispatch::new(&scale).input(y).output([10, 100], DType::F32).push(&[0.5f32]);
    let again = again.specialize(0, 8u32).specialize(1, 1.0f32).specialize(1, -3.0f32).groups([125, 1, 1]);
    let z = r.dispatch(again).unwrap()[0];
    let (y, z) = (r.keep(y).unwrap(), r.keep(z).unwrap());
    let _ = r.end_recording().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), x.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert_eq!(z.read::<f32>().unwrap(), x.iter().map(|x| x - 3.0).collect::<Vec<_>>());
    assert_eq!(z.shape().dims(), [10, 100]);
}

#[test]
fn several_outputs_and_zeros_where_the_shader_reads() {
    let gpu = gpu();
    // A recycled block that is anything but zero.
    drop(gpu.upload(&[-1i32; 1], [1]).unwrap());
    let outputs = kernel("outputs");
    let x: Vec<i32> = (0..500).collect();
    let t = gpu.upload(&x, [500]).unwrap();
    for _ in 0..2 {
        let run = Dispatch::new(&outputs).input(&t).output([500], DType::I32).output([1], DType::I32);
        let kept = gpu.run(|r| r.dispatch(run.groups([8, 1, 1]))).unwrap();
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0].read::<i32>().unwrap(), x.iter().map(|x| 2 * x).collect::<Vec<_>>());
        assert_eq!(kept[1].read::<i32>().unwrap(), [124_750]);
    }
}

#[test]
fn a_kernel_sees_exactly_the_tensor() {
    let gpu = gpu();
    let lengths = kernel("lengths");
    for n in [0usize, 1, 3, 5, 16, 33] {
        let x = gpu.upload(&vec![0.0f32; n], [n]).unwrap();
        let run = Dispatch::new(&lengths).input(&x).output([2], DType::U32).output([n + 2], DType::F32);
        let kept = gpu.run(|r| r.dispatch(run)).unwrap();
        assert_eq!(kept[0].read::<u32>().unwrap(), [n as u32, n as u32 + 2]);
        assert_eq!(kept[1].read::<f32>().unwrap(), (0..n + 2).map(|i| i as f32).collect::<Vec<_>>());
    }
}

/// A module whose indices are clamped stays inside its tensors, whatever it is asked for.
#[test]
fn guarded_spirv_is_safe_to_run() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let guarded = Kernel::from_spirv_guarded("scale", &words("scale")).unwrap();
    assert_eq!(guarded.reflection().bindings, kernel("scale").reflection().bindings);
    // The output is longer than what is read: the last element stands for those that are not there.
    let run = Dispatch::new(&guarded).input(&x).output([6], DType::F32).push(&[2.0f32]).specialize(0, 8u32);
    let y = gpu.run(|r| r.dispatch(run)).unwrap();
    assert_eq!(y[0].read::<f32>().unwrap(), [2.0, 4.0, 6.0, 6.0, 6.0, 6.0]);
    // Nothing to stand for them.
    let none = gpu.upload(&[0.0f32; 0], [0]).unwrap();
    let run = Dispatch::new(&guarded).input(&none).output([6], DType::F32).push(&[2.0f32]);
    let refused = gpu.run(|r| r.dispatch(run.specialize(0, 8u32))).unwrap_err();
    assert_eq!(refused.to_string(), "kernel scale: binding 0 needs at least 4 bytes, the tensor has 0");

    // There is no clamp for these.
    let fetches = Kernel::from_spirv_guarded("fetch", &words("uniform_texel")).unwrap_err();
    assert!(matches!(fetches, Error::Unguardable { .. }), "{fetches}");
    assert_eq!(
        fetches.to_string(),
        "kernel fetch has the instruction OpImageFetch; such accesses can't be kept inside the bindings; only \
         `Kernel::from_spirv` accepts it, on the caller's responsibility"
    );
    // A value that another one takes, of another type: drivers behave in undefined ways.
    let mut damaged = words("scale");
    let store = damaged.iter().rposition(|word| *word == 0x0003_003e).unwrap();
    damaged[store + 2] = damaged[store + 1];
    let refused = Kernel::from_spirv_guarded("damaged", &damaged).unwrap_err().to_string();
    assert!(
        refused.starts_with("kernel damaged is damaged: the operands of OpStore have other types"),
        "{refused}"
    );
    let cut = &words("scale")[..40];
    assert!(matches!(Kernel::from_spirv_guarded("cut", cut), Err(Error::Spirv(_))));
}

/// A kernel for floats would read other numbers out of integers' bits.
#[test]
fn element_types_are_the_shaders() {
    let gpu = gpu();
    let scale = kernel("scale");
    let (x, i) = (gpu.upload(&[1.0f32; 8], [8]).unwrap(), gpu.upload(&[1i32; 8], [8]).unwrap());
    let run = |input, output| Dispatch::new(&scale).input(input).output([8], output).push(&[2.0f32]);
    let said = |run: Dispatch<'_>| {
        gpu.run(|r| r.dispatch(run.specialize(0, 8u32))).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(said(run(&x, DType::F32)), Ok(()));
    let input = "kernel scale: binding 0 holds f32 in the shader, the tensor holds i32";
    assert_eq!(said(run(&i, DType::F32)), Err(input.to_owned()));
    let output = "kernel scale: binding 1 holds f32 in the shader, the tensor holds f16";
    assert_eq!(said(run(&x, DType::F16)), Err(output.to_owned()));
}

#[test]
fn texel_bindings_are_views_of_the_tensor() {
    let gpu = gpu();
    let texels = kernel("texels");
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let t = gpu.upload(&x, [100, 2]).unwrap();
    let quads = gpu.upload(&[1u32; 12], [12]).unwrap();
    let run = Dispatch::new(&texels)
        .input(&t)
        .output([100], DType::F32)
        .input(&quads)
        .output([3], DType::U32)
        .groups([2, 1, 1]);
    let kept = gpu.run(|r| r.dispatch(run)).unwrap();
    let sums: Vec<f32> = x.chunks(2).map(|pair| pair[0] + pair[1]).collect();
    assert_eq!(kept[0].read::<f32>().unwrap(), sums);
    assert_eq!(kept[1].read::<u32>().unwrap(), [100, 100, 3], "sizes are the tensors', not the blocks'");
}

#[test]
fn uniform_blocks_and_fixed_parts() {
    let gpu = gpu();
    let settings = kernel("settings");
    let bias = gpu.upload(&[1.0f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0], [8]).unwrap();
    let head = gpu.upload(&[0u32, 0, 0, 4], [4]).unwrap();
    let run = Dispatch::new(&settings).input(&bias).input(&head).output([1], DType::F32);
    assert_eq!(gpu.run(|r| r.dispatch(run)).unwrap()[0].read::<f32>().unwrap(), [7.0]);

    let small = gpu.upload(&[0.0f32; 4], [4]).unwrap();
    refused(
        &gpu,
        Dispatch::new(&settings).input(&small).input(&head).output([1], DType::F32),
        |m| matches!(m, KernelMismatch::BindingSize { binding: 0, needs: 32, got: 16 }),
        "kernel settings: binding 0 needs at least 32 bytes, the tensor has 16",
    );
}

/// The recording refuses the run with this message, and works as before.
fn refused(gpu: &Accelerator, run: Dispatch<'_>, is: impl Fn(&KernelMismatch) -> bool, message: &str) {
    let r = gpu.begin_recording().unwrap();
    let one = r.fill([3], 1.0f32).unwrap();
    let error = r.dispatch(run).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(matches!(&error, Error::KernelArguments { mismatch, .. } if is(mismatch)), "{error:?}");
    let two = r.add(one, one).unwrap();
    let two = r.keep(two).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(two.read::<f32>().unwrap(), [2.0; 3]);
}

fn vector(gpu: &Accelerator, n: usize) -> Tensor {
    gpu.upload(&vec![1.0f32; n], [n]).unwrap()
}

#[test]
fn arguments_must_fit_the_bindings() {
    let gpu = gpu();
    let (scale, x) = (kernel("scale"), vector(&gpu, 10));
    let fine =
        || Dispatch::new(&scale).input(&x).output([10], DType::F32).push(&[2.0f32]).specialize(0, 32u32);

    refused(
        &gpu,
        Dispatch::new(&scale).input(&x).push(&[2.0f32]),
        |m| matches!(m, KernelMismatch::BindingCount { expected: 2, got: 1 }),
        "kernel scale: it has 2 bindings, 1 were given",
    );
    refused(
        &gpu,
        Dispatch::new(&scale).output([10], DType::F32).output([10], DType::F32).push(&[2.0f32]),
        |m| matches!(m, KernelMismatch::Binding { binding: 0, .. }),
        "kernel scale: binding 0 is readonly in the shader, the argument is an output",
    );
    refused(
        &gpu,
        Dispatch::new(&scale).input(&x).input(&x).push(&[2.0f32]),
        |m| matches!(m, KernelMismatch::Binding { binding: 1, .. }),
        "kernel scale: binding 1 is written by the shader, the argument is an input",
    );
    refused(
        &gpu,
        fine().push(&[2.0f32, 3.0]),
        |m| matches!(m, KernelMismatch::PushConstants { expected: 4, got: 8 }),
        "kernel scale: its push constants are 4 bytes, 8 were given",
    );
    refused(
        &gpu,
        fine().specialize(7, 1u32),
        |m| matches!(m, KernelMismatch::Specialization { id: 7, .. }),
        "kernel scale: it has no specialization constant 7; it has 0, 1",
    );
    let limit = gpu.device().limits.groups;
    for got in [[1, 0, 1], [1, 1, u32::MAX]] {
        refused(
            &gpu,
            fine().groups(got),
            |m| matches!(m, KernelMismatch::Groups { .. }),
            &format!("kernel scale: {got:?} workgroups are outside the device's {limit:?}"),
        );
    }
    let (local, total) = (gpu.device().limits.local_size, gpu.device().limits.invocations);
    for size in [0, 1 << 20] {
        refused(
            &gpu,
            fine().specialize(0, size),
            |m| matches!(m, KernelMismatch::LocalSize { .. }),
            &format!(
                "kernel scale: a workgroup of [{size}, 1, 1] invocations exceeds the device's {local:?} ({total} in total)"
            ),
        );
    }
}

#[test]
fn bindings_must_be_what_tensors_can_be() {
    let gpu = gpu();
    let x = vector(&gpu, 10);
    let set_one = kernel("set_one");
    refused(
        &gpu,
        Dispatch::new(&set_one).output([1], DType::F32),
        |m| matches!(m, KernelMismatch::Binding { binding: 3, .. }),
        "kernel set_one: binding 3 is in set 1 with 1 descriptors, the argument is one tensor in set 0",
    );
    let array = kernel("descriptor_array");
    refused(
        &gpu,
        Dispatch::new(&array).output([1], DType::F32),
        |m| matches!(m, KernelMismatch::Binding { binding: 0, .. }),
        "kernel descriptor_array: binding 0 is in set 0 with 2 descriptors, the argument is one tensor in set 0",
    );
    let uniform_texel = kernel("uniform_texel");
    refused(
        &gpu,
        Dispatch::new(&uniform_texel).input(&x).output([1], DType::F32),
        |m| matches!(m, KernelMismatch::Binding { binding: 0, .. }),
        "kernel uniform_texel: binding 0 is uniform texel buffer, the argument is a storage buffer or storage texel buffer",
    );
    let half = kernel("half_texels");
    refused(
        &gpu,
        Dispatch::new(&half).output([8], DType::F32),
        |m| matches!(m, KernelMismatch::Binding { binding: 0, .. }),
        "kernel half_texels: binding 0 is storage texel buffer (Rgba16f), the argument is a view in a stated 32-bit format",
    );
}

#[test]
fn a_binding_larger_than_the_device_allows_is_refused() {
    let gpu = gpu();
    let limit = gpu.device().limits.uniform_range_bytes;
    let (settings, head) = (kernel("settings"), gpu.upload(&[0u32; 4], [4]).unwrap());
    let bias = vector(&gpu, limit as usize / 4 + 1);
    let got = limit + 4;
    refused(
        &gpu,
        Dispatch::new(&settings).input(&bias).input(&head).output([1], DType::F32),
        |m| matches!(m, KernelMismatch::BindingLimit { binding: 0, .. }),
        &format!(
            "kernel settings: binding 0 would span {got} bytes, the device allows {limit}; bind a smaller tensor"
        ),
    );
    // Values have no memory yet, so a promise of that size costs nothing. Some devices bind whatever a buffer holds.
    let (scale, limits) = (kernel("scale"), gpu.device().limits);
    let limit = limits.storage_range_bytes;
    if limit < limits.buffer_bytes {
        let r = gpu.begin_recording().unwrap();
        let elements = limit as usize / 4 + 1;
        let x = r.fill([elements], 0.0f32).unwrap();
        let run =
            Dispatch::new(&scale).input(x).output([10], DType::F32).push(&[1.0f32]).specialize(0, 32u32);
        let error = r.dispatch(run).unwrap_err();
        let got = 4 * elements;
        assert_eq!(
            error.to_string(),
            format!(
                "kernel scale: binding 0 would span {got} bytes, the device allows {limit}; bind a smaller tensor"
            )
        );
    }
}

#[test]
fn what_the_device_has_not_is_named() {
    let gpu = gpu();
    let device = &gpu.device().name;
    let (atomics, push) = (kernel("needs_atomics64"), kernel("needs_push"));
    let r = gpu.begin_recording().unwrap();
    let error = r.dispatch(Dispatch::new(&atomics).output([2], DType::U32)).unwrap_err();
    assert!(matches!(error, Error::KernelCapability { .. }));
    assert_eq!(
        error.to_string(),
        "kernel needs_atomics64: needs the SPIR-V capability Int64Atomics, which Tidemill does not enable; compile it without"
    );
    let error = r.dispatch(Dispatch::new(&push).output([1], DType::F32)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("kernel needs_push: needs 1200 bytes of push constants, which {device} does not support")
    );
    let fine = r.fill([2], 3.0f32).unwrap();
    let fine = r.keep(fine).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(fine.read::<f32>().unwrap(), [3.0; 2]);
}

#[test]
#[allow(unsafe_code, reason = "words that are no kernel")]
fn what_is_no_kernel_is_refused() {
    // SAFETY: neither of them becomes a kernel.
    let error = unsafe { Kernel::from_spirv("none", &[]) }.unwrap_err();
    assert!(matches!(error, Error::Spirv(_)));
    assert_eq!(error.to_string(), "kernel: not SPIR-V: 0 words, a module's header alone has 5");
    let mut cut = words("scale");
    cut.truncate(cut.len() - 1);
    // SAFETY: as above.
    assert!(matches!(unsafe { Kernel::from_spirv("cut", &cut) }, Err(Error::Spirv(_))));
}

#[test]
fn operands_of_a_dispatch_are_checked_like_those_of_an_op() {
    let (gpu, other) = (gpu(), gpu());
    let (scale, theirs) = (kernel("scale"), vector(&other, 4));
    let unwritten = gpu.empty([4], DType::F32).unwrap();
    let run = |x| Dispatch::new(&scale).input(x).output([4], DType::F32).push(&[1.0f32]).specialize(0, 32u32);
    let r = gpu.begin_recording().unwrap();
    assert!(matches!(r.dispatch(run(&theirs)), Err(Error::ForeignTensor { op: "dispatch", .. })));
    assert!(matches!(r.dispatch(run(&unwritten)), Err(Error::NotWritten { op: "dispatch", .. })));
    let x = vector(&gpu, 4);
    let large = Dispatch::new(&scale).input(&x).output([usize::MAX], DType::F32).push(&[1.0f32]);
    assert!(matches!(r.dispatch(large), Err(Error::TooLarge { op: "dispatch", .. })));
    let y = r.dispatch(run(&x)).unwrap()[0];
    let y = r.keep(y).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [1.0; 4]);
}
