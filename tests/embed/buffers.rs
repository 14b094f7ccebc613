//! The host's buffers as tensors, and tensors' memory in the host's hands.

use ash::vk;
use tidemill::error::HostError;
use tidemill::interop::BUFFER_USAGE;
use tidemill::interop::HostMemory;
use tidemill::{DType, Error};

use crate::host::{Host, Made};

/// In the middle of a buffer, so that both sides are watched.
const OFFSET: u64 = 256;
const ELEMENTS: usize = 1000;
/// Whole groups of 16 bytes.
const BYTES: u64 = 4000;
const MARK: f32 = -77.0;

/// Whether just the range has these contents, and the rest is as it was.
fn check(all: &[f32], expected: &[f32]) {
    let (first, last) = (OFFSET as usize / 4, OFFSET as usize / 4 + ELEMENTS);
    assert_eq!(all[first..last], *expected);
    assert!(all[..first].iter().chain(&all[last..]).all(|&x| x == MARK), "bytes outside were written");
}

#[test]
fn a_buffer_of_the_hosts_is_read_and_written_in_place() {
    let host = Host::new(Made::Full);
    let buffer = host.buffer(8192, BUFFER_USAGE);
    let mut all = vec![MARK; 2048];
    let data: Vec<f32> = (0..ELEMENTS).map(|i| i as f32).collect();
    all[64..64 + ELEMENTS].copy_from_slice(&data);
    buffer.write(&all);
    let gpu = host.accelerator();
    let shared = gpu.wrap(buffer.range(OFFSET, BYTES), [ELEMENTS], DType::F32).unwrap();
    assert_eq!(shared.read::<f32>().unwrap(), data);

    // As an operand of several kinds of kernels: elementwise, a reduction, a matmul.
    let r = gpu.begin_recording().unwrap();
    let twice = r.add(&shared, &shared).unwrap();
    let sum = r.sum(&shared, 0).unwrap();
    let matrix = r.reshape(&shared, [10, 100]).unwrap();
    let matmul = r.matmul(matrix, &gpu.upload(&[1.0f32; 100], [100, 1]).unwrap()).unwrap();
    let (twice, sum) = (r.keep(twice).unwrap(), r.keep(sum).unwrap());
    let matmul = r.keep(matmul).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(twice.read::<f32>().unwrap()[999], 1998.0);
    assert_eq!(sum.read::<f32>().unwrap(), [499_500.0]);
    assert_eq!(matmul.read::<f32>().unwrap()[1], (100..200).sum::<i32>() as f32);

    // A result in its place, after a chain that fuses.
    let r = gpu.begin_recording().unwrap();
    let v = r.scale(&twice, 0.5).unwrap();
    let v = r.add_scalar(v, 1.0).unwrap();
    r.keep_in(v, &shared).unwrap();
    assert!(matches!(r.neg(&shared), Err(Error::NotSubmitted { .. })), "it has other contents by then");
    r.end_recording().unwrap().wait().unwrap();
    let next: Vec<f32> = data.iter().map(|x| x + 1.0).collect();
    check(&buffer.read(), &next);
    assert_eq!(shared.read::<f32>().unwrap(), next);

    // A value that something else is kept of, or that is a tensor's contents, is copied.
    let r = gpu.begin_recording().unwrap();
    let v = r.neg(&twice).unwrap();
    let kept = r.keep(v).unwrap();
    r.keep_in(v, &shared).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    check(&buffer.read(), &kept.read::<f32>().unwrap());

    // The host's own data, twice while work that uses it is in flight.
    let before = gpu.run(|r| r.copy(&shared)).unwrap();
    shared.write(&vec![5.0f32; ELEMENTS]).unwrap();
    shared.write(&vec![6.0f32; ELEMENTS]).unwrap();
    let after = gpu.run(|r| r.copy(&shared)).unwrap();
    assert_eq!(before.read::<f32>().unwrap(), kept.read::<f32>().unwrap());
    assert_eq!(after.read::<f32>().unwrap(), [6.0; ELEMENTS]);
    check(&buffer.read(), &[6.0; ELEMENTS]);
    // One that fails leaves all as it was.
    let error = shared.write_with::<f32>(|f| assert!(f.push(1.0))).unwrap_err();
    assert!(matches!(error, Error::Incomplete { written: 1, .. }));
    assert_eq!(shared.read::<f32>().unwrap(), [6.0; ELEMENTS]);

    assert_eq!(gpu.stats().pool.guard_bytes_touched, 0);
    drop((shared, twice, sum, matmul, kept, before, after));
    gpu.close().unwrap();
    check(&buffer.read(), &[6.0; ELEMENTS]);
}

#[test]
fn a_plan_writes_to_the_hosts_buffer_again_and_again() {
    let host = Host::new(Made::Full);
    let buffer = host.buffer(4096, BUFFER_USAGE);
    let gpu = host.accelerator();
    let shared = gpu.wrap(buffer.range(0, BYTES), [ELEMENTS], DType::F32).unwrap();
    let x = gpu.upload(&vec![0.0f32; ELEMENTS], [ELEMENTS]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.add_scalar(&x, 1.0).unwrap();
    let y = r.keep(y).unwrap();
    let mut plan = r.into_plan().unwrap();
    plan.bind(&y, &shared).unwrap();
    for n in 0..5 {
        x.write(&vec![n as f32; ELEMENTS]).unwrap();
        // Several in flight: each writes to the same place, after the last.
        drop(plan.submit().unwrap());
    }
    gpu.synchronize().unwrap();
    assert_eq!(buffer.read()[..ELEMENTS], [5.0; ELEMENTS]);
    drop((plan, x, y, shared));

    // Kept there when it was recorded.
    let shared = gpu.wrap(buffer.range(0, BYTES), [ELEMENTS], DType::F32).unwrap();
    let r = gpu.begin_recording().unwrap();
    let v = r.fill([ELEMENTS], 9.0f32).unwrap();
    r.keep_in(v, &shared).unwrap();
    let mut plan = r.into_plan().unwrap();
    plan.submit().unwrap().wait().unwrap();
    assert_eq!(buffer.read()[..ELEMENTS], [9.0; ELEMENTS]);
    drop(plan);
    assert_eq!(shared.read::<f32>().unwrap(), [9.0; ELEMENTS], "what it has written stays");

    // A recording or a plan that comes to nothing leaves the host's contents.
    let r = gpu.begin_recording().unwrap();
    let v = r.fill([ELEMENTS], 1.0f32).unwrap();
    r.keep_in(v, &shared).unwrap();
    drop(r.into_plan().unwrap());
    let r = gpu.begin_recording().unwrap();
    let v = r.fill([ELEMENTS], 2.0f32).unwrap();
    r.keep_in(v, &shared).unwrap();
    drop(r);
    assert_eq!(shared.read::<f32>().unwrap(), [9.0; ELEMENTS]);
}

/// What a view has is the host's memory, too: nothing writes there while the view is read.
#[test]
fn the_hosts_memory_is_not_written_while_a_view_of_it_is_read() {
    let host = Host::new(Made::Full);
    let buffer = host.buffer(4096, BUFFER_USAGE);
    buffer.write(&[1.0; 1024]);
    let gpu = host.accelerator();
    let shared = gpu.wrap(buffer.range(0, BYTES), [ELEMENTS], DType::F32).unwrap();
    let view = gpu.run(|r| r.reshape(&shared, [10, 100])).unwrap();

    let r = gpu.begin_recording().unwrap();
    let v = r.fill([ELEMENTS], 2.0f32).unwrap();
    r.keep_in(v, &shared).unwrap();
    assert!(matches!(r.neg(&view), Err(Error::NotSubmitted { .. })), "it has other contents by then");
    drop(r);
    let r = gpu.begin_recording().unwrap();
    let v = r.neg(&view).unwrap();
    let v = r.reshape(v, [ELEMENTS]).unwrap();
    assert!(matches!(r.keep_in(v, &shared), Err(Error::ReadToo { .. })));
    let flat = view.reshape([ELEMENTS]).unwrap();
    let not_wrapped = r.keep_in(v, &flat).unwrap_err();
    assert!(matches!(not_wrapped, Error::Host(HostError::NotWrapped { .. })), "{not_wrapped}");
    let negative = r.keep(v).unwrap();
    let mut plan = r.into_plan().unwrap();
    assert!(matches!(plan.bind(&negative, &shared), Err(Error::BoundTwice { .. })));
    let x = gpu.upload(&vec![3.0f32; ELEMENTS], [10, 100]).unwrap();
    plan.bind(&view, &x).unwrap();
    plan.bind(&negative, &shared).unwrap();
    assert!(matches!(plan.bind(&view, &view), Err(Error::BoundTwice { .. })));
    drop(plan.submit().unwrap());
    gpu.synchronize().unwrap();
    assert_eq!(buffer.read()[..ELEMENTS], [-3.0; ELEMENTS]);

    // An input that comes to be such a view only after it was bound.
    let y = gpu.upload(&vec![4.0f32; ELEMENTS], [ELEMENTS]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let moving = r.reshape(&y, [10, 100]).unwrap();
    let moving = r.keep(moving).unwrap();
    let mut viewing = r.into_plan().unwrap();
    plan.bind(&view, &moving).unwrap();
    viewing.bind(&y, &shared).unwrap();
    drop(viewing.submit().unwrap());
    assert!(matches!(plan.submit(), Err(Error::BoundTwice { op: "submit", .. })));
    viewing.bind(&y, &y).unwrap();
    drop(viewing.submit().unwrap());
    assert_eq!(moving.read::<f32>().unwrap(), [4.0; ELEMENTS], "a view follows what it views");
    drop(plan.submit().unwrap());
    gpu.synchronize().unwrap();
    assert_eq!(buffer.read()[..ELEMENTS], [-4.0; ELEMENTS]);

    // A view that is written is one no longer.
    view.write(&vec![9.0f32; ELEMENTS]).unwrap();
    gpu.synchronize().unwrap();
    assert_eq!(buffer.read()[..ELEMENTS], [-4.0; ELEMENTS]);
    assert_eq!(view.read::<f32>().unwrap(), [9.0; ELEMENTS]);
}

#[test]
fn a_range_that_does_not_fit_is_refused_with_its_numbers() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let buffer = host.buffer(4096, BUFFER_USAGE);
    let wrap = |offset, bytes, n: usize| gpu.wrap(buffer.range(offset, bytes), [n], DType::F32);
    let error = wrap(0, 40, 10).unwrap_err();
    assert!(matches!(error, Error::Host(HostError::BufferSize { needs: 48, got: 40 })), "{error}");
    assert!(error.to_string().contains("48 bytes are needed") && error.to_string().contains("has 40"));
    let error = wrap(4, 48, 10).unwrap_err();
    assert!(matches!(error, Error::Host(HostError::BufferOffset { offset: 4, .. })), "{error}");
    assert!(error.to_string().contains("begins at byte 4"), "{error}");
    let plain = host.buffer(4096, BUFFER_USAGE & !vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER);
    let error = gpu.wrap(plain.range(0, 4096), [10], DType::F32).unwrap_err();
    assert!(error.to_string().contains("created without STORAGE_TEXEL_BUFFER;"), "{error}");

    let shared = wrap(0, 48, 10).unwrap();
    let own = gpu.upload(&[1.0f32; 10], [10]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let v = r.neg(&own).unwrap();
    let error = r.keep_in(v, &own).unwrap_err();
    assert_eq!(
        error.to_string(),
        "keep_in: the tensor is not a wrapped buffer of the host; wrap one, or use keep(), which takes memory from the pool"
    );
    let error = r.keep_in(v, &shared.reshape([5, 2]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Shapes { .. }), "{error}");
    let halves = r.cast(v, DType::F16).unwrap();
    assert!(matches!(r.keep_in(halves, &shared), Err(Error::Type { .. })));
    let sum = r.add(v, &shared).unwrap();
    let error = r.keep_in(sum, &shared).unwrap_err();
    assert_eq!(
        error.to_string(),
        "keep_in: the recording reads tensor [10], or a view of it, so its memory can't hold a result of the same \
         recording; keep the value in another buffer, or use a separate recording"
    );
    // Still usable.
    let sum = r.keep(sum).unwrap();
    drop(r.end_recording().unwrap());
    assert_eq!(sum.read::<f32>().unwrap().len(), 10);
}

#[test]
fn a_tensors_memory_is_used_by_the_hosts_own_commands() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let target = host.buffer(BYTES, vk::BufferUsageFlags::TRANSFER_DST);
    let x = gpu.upload(&vec![1.0f32; ELEMENTS], [ELEMENTS]).unwrap();
    assert!(x.raw_buffer().unwrap().ready.is_none(), "written in place by the host");
    let r = gpu.begin_recording().unwrap();
    let y = r.add(&x, &x).unwrap();
    let y = r.keep(y).unwrap();
    assert!(matches!(y.raw_buffer(), Err(Error::NotSubmitted { .. })));
    let mut plan = r.into_plan().unwrap();
    let mut last = None;
    for n in 1..4 {
        x.write(&vec![n as f32; ELEMENTS]).unwrap();
        let done = plan.submit().unwrap();
        let memory = y.raw_buffer().unwrap();
        assert_eq!(memory.size_bytes, BYTES);
        assert_eq!(memory.ready, Some(done.raw_point()));
        // What the host still holds is not overwritten: the plan takes another block.
        assert_ne!(
            last.replace(memory.clone()).map(|m: tidemill::interop::TensorBuffer| m.buffer),
            Some(memory.buffer)
        );
        host.run(memory.ready.as_slice(), |commands| {
            let region =
                vk::BufferCopy { src_offset: memory.offset_bytes, dst_offset: 0, size: memory.size_bytes };
            // SAFETY: valid handles; the wait makes the contents visible.
            unsafe { host.device.cmd_copy_buffer(commands, memory.buffer, target.raw, &[region]) };
        });
        assert_eq!(target.read(), [2.0 * n as f32; ELEMENTS]);
    }
    // And with nothing held, it writes in place again.
    let held = last.take().unwrap().buffer;
    plan.submit().unwrap().wait().unwrap();
    let now = y.raw_buffer().unwrap().buffer;
    assert_eq!(now, held);
    plan.submit().unwrap().wait().unwrap();
    assert_eq!(y.raw_buffer().unwrap().buffer, now);

    // A wrapped tensor comes out as it came in.
    let own = host.buffer(4096, BUFFER_USAGE);
    let shared = gpu.wrap(own.range(512, 64), [16], DType::F32).unwrap();
    let memory = shared.raw_buffer().unwrap();
    assert_eq!((memory.buffer, memory.offset_bytes, memory.size_bytes), (own.raw, 512, 64));
    drop((shared, x, y, plan));
    // What the host holds is still on the device, and `close` says so.
    assert!(matches!(gpu.close(), Err(Error::StillInUse { tensors: 0, handles: 1 })));
    drop(memory);
}

/// The list of extensions that the host made its device with decides, whatever the driver has.
#[test]
fn memory_of_the_application_is_imported_if_the_host_enabled_it() {
    let memory = HostMemory::new(vec![0u8; 3 * 4096]);
    let first = memory.as_bytes().as_ptr().addr();
    let offset = first.next_multiple_of(4096) - first;

    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let zeros = gpu.import(&memory, offset, [1024], DType::F32).unwrap();
    assert!(zeros.is_imported());
    assert_eq!(gpu.run(|r| r.exp(&zeros)).unwrap().read::<f32>().unwrap(), [1.0; 1024]);
    // In the host's hands it needs no waiting for.
    let handed = zeros.raw_buffer().unwrap();
    assert!(handed.ready.is_none() && handed.size_bytes == 4096);
    drop((handed, zeros));
    gpu.close().unwrap();

    let host = Host::new(Made::Needed);
    let gpu = host.accelerator();
    let error = gpu.import(&memory, offset, [1024], DType::F32).unwrap_err();
    assert!(matches!(error, Error::Host(HostError::NoHostPointers { .. })), "{error}");
    let (copy, why) = gpu.import_or_upload(&memory, offset, [1024], DType::F32).unwrap();
    assert!(!copy.is_imported() && matches!(why, Some(HostError::NoHostPointers { .. })));
    assert_eq!(gpu.run(|r| r.exp(&copy)).unwrap().read::<f32>().unwrap(), [1.0; 1024]);
    drop(copy);
    gpu.close().unwrap();
}
