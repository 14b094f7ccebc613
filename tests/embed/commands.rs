//! Recording into the host's own command buffers.

use ash::vk;
use tidemill::error::HostError;
use tidemill::interop::{BUFFER_USAGE, HostCommands};
use tidemill::{DType, Error};

use crate::host::{Host, Made, config};

const N: usize = 1024;
const BYTES: u64 = 4096;

fn commands(host: &Host, buffer: vk::CommandBuffer, semaphore: vk::Semaphore, value: u64) -> HostCommands {
    // SAFETY: the tests keep to it.
    unsafe { HostCommands::new(buffer, host.point(semaphore, value)) }
}

#[test]
fn work_goes_into_the_hosts_command_buffer_between_its_own() {
    for made in [Made::Full, Made::Needed] {
        let host = Host::new(made);
        let gpu = host.accelerator();
        let (gate, done) = (host.semaphore(), host.semaphore());
        let input = host.buffer(BYTES, BUFFER_USAGE);
        let result = host.buffer(BYTES, vk::BufferUsageFlags::TRANSFER_DST);
        let shared = gpu.wrap(input.range(0, BYTES), [N], DType::F32).unwrap();
        let weights = gpu.upload(&[3.0f32; N], [N]).unwrap();
        let before = gpu.stats();

        let buffer = host.begin();
        // SAFETY: valid handles.
        unsafe { host.device.cmd_fill_buffer(buffer, input.raw, 0, BYTES, 2.0f32.to_bits()) };
        let r = gpu.begin_recording().unwrap();
        let y = r.mul(&shared, &weights).unwrap();
        let total = r.sum(y, 0).unwrap();
        let y = r.sub(y, total).unwrap();
        let (y, total) = (r.keep(y).unwrap(), r.keep(total).unwrap());
        r.record_into(commands(&host, buffer, done, 1)).unwrap();
        assert_eq!(gpu.stats().in_flight, 0, "nothing was submitted");
        let memory = y.raw_buffer().unwrap();
        assert!(memory.ready.is_none(), "the host knows when");
        let region = vk::BufferCopy { src_offset: memory.offset_bytes, dst_offset: 0, size: BYTES };
        // SAFETY: valid handles; a barrier to whatever follows stands behind the results.
        unsafe { host.device.cmd_copy_buffer(buffer, memory.buffer, result.raw, &[region]) };
        drop(memory);
        // Held back by the host, so that it is certainly not over yet.
        host.submit(buffer, &[(gate, 1)], &[(done, 1)]);
        // Dropped tensors' blocks stay away from the pool until the host says so.
        let held = gpu.stats().pool.live_blocks;
        drop(weights);
        drop(y);
        let dropped = gpu.stats().pool.live_blocks;
        // Opened before anything may fail: the accelerator's end waits for the host's work.
        host.signal(gate, 1);
        assert_eq!(dropped, held);
        assert!(held >= before.pool.live_blocks + 2, "two results: {held}");
        let expected = (N * 6) as f32;
        assert_eq!(total.read::<f32>().unwrap(), [expected], "read waits for the host's semaphore");
        assert_eq!(result.read(), [6.0 - expected; N]);
        let pool = gpu.stats().pool;
        assert_eq!((pool.live_blocks, pool.guard_bytes_touched), (1, 0), "only the total is left");

        // Results are operands of what comes next.
        assert_eq!(gpu.run(|r| r.neg(&total)).unwrap().read::<f32>().unwrap(), [-expected]);
        drop((total, shared));
        gpu.close().unwrap();
        host.destroy_semaphore(gate);
        host.destroy_semaphore(done);
    }
}

#[test]
fn what_comes_after_the_hosts_submission_is_ordered_behind_it() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let (gate, done) = (host.semaphore(), host.semaphore());
    let output = host.buffer(BYTES, BUFFER_USAGE);
    let shared = gpu.wrap(output.range(0, BYTES), [N], DType::F32).unwrap();
    let x = gpu.upload(&[1.0f32; N], [N]).unwrap();
    let a = gpu.run(|r| r.add_scalar(&x, 1.0)).unwrap();
    for n in 1..=3 {
        let buffer = host.begin();
        let r = gpu.begin_recording().unwrap();
        let b = r.mul(&a, &a).unwrap();
        let c = r.add_scalar(b, n as f32).unwrap();
        let b = r.keep(b).unwrap();
        r.keep_in(c, &shared).unwrap();
        r.record_into(commands(&host, buffer, done, n)).unwrap();
        host.submit(buffer, &[(gate, n)], &[(done, n)]);
        // Reads one result, overwrites the other, and has a copy of it before.
        let d = gpu.run(|r| r.add(&b, &shared)).unwrap();
        shared.write(&[9.0f32; N]).unwrap();
        let e = gpu.run(|r| r.copy(&shared)).unwrap();
        host.signal(gate, n);
        assert_eq!(d.read::<f32>().unwrap(), [8.0 + n as f32; N]);
        assert_eq!(e.read::<f32>().unwrap(), [9.0; N]);
    }
    gpu.synchronize().unwrap();
    assert_eq!(output.read(), [9.0; N]);
    drop((a, x, shared));
    gpu.close().unwrap();
    host.destroy_semaphore(gate);
    host.destroy_semaphore(done);
}

#[test]
fn uploads_waits_and_signals_are_refused() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let done = host.semaphore();
    let input = host.buffer(BYTES, BUFFER_USAGE);
    let shared = gpu.wrap(input.range(0, BYTES), [N], DType::F32).unwrap();
    let other = host.buffer(BYTES, BUFFER_USAGE);
    let unused = gpu.wrap(other.range(0, BYTES), [N], DType::F32).unwrap();
    // Memory that the engine does not see mapped: this goes by way of staging.
    shared.write(&[1.0f32; N]).unwrap();
    unused.write(&[1.0f32; N]).unwrap();
    let buffer = host.begin();
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&shared).unwrap();
    let y = r.keep(y).unwrap();
    let error = r.record_into(commands(&host, buffer, done, 1)).unwrap_err();
    let expected = HostError::UploadsPending { uploads: 1, bytes: BYTES };
    assert!(matches!(&error, Error::Host(e) if *e == expected), "{error}");
    assert!(error.to_string().contains("call Accelerator::flush before"), "{error}");
    assert!(matches!(y.read::<f32>(), Err(Error::Discarded { .. })));

    let r = gpu.begin_recording().unwrap();
    let v = r.neg(&shared).unwrap();
    let y = r.keep(v).unwrap();
    r.signal(host.point(done, 1));
    let error = r.record_into(commands(&host, buffer, done, 1)).unwrap_err();
    assert!(error.to_string().contains("0 waits and 1 signals"), "{error}");
    assert!(matches!(y.read::<f32>(), Err(Error::Discarded { .. })));

    gpu.flush().unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&shared).unwrap();
    let y = r.keep(y).unwrap();
    r.record_into(commands(&host, buffer, done, 1)).unwrap();
    host.submit(buffer, &[], &[(done, 1)]);
    assert_eq!(y.read::<f32>().unwrap(), [-1.0; N]);
    drop((shared, unused));
    gpu.synchronize().unwrap();
    host.destroy_semaphore(done);
}

#[test]
fn memory_that_is_short_is_not_waited_for() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator_with(&config().pool_cap(64 << 10));
    let (gate, done) = (host.semaphore(), host.semaphore());
    let x = gpu.upload(&[1.0f32; N], [N]).unwrap();
    // In flight, and not over before the gate opens: waiting for it would be for ever.
    let r = gpu.begin_recording().unwrap();
    let v = r.fill([11 * N], 1.0f32).unwrap();
    drop(r.keep(v).unwrap());
    r.wait_for(host.point(gate, 1));
    drop(r.end_recording().unwrap());
    let buffer = host.begin();
    let r = gpu.begin_recording().unwrap();
    let v = r.pad(&x, [(0, 3 * N)], 0.0).unwrap();
    let y = r.keep(v).unwrap();
    let error = r.record_into(commands(&host, buffer, done, 1)).unwrap_err();
    assert!(matches!(error, Error::OverCap { .. }), "{error}");
    drop(y);
    host.submit(buffer, &[], &[]);
    host.signal(gate, 1);
    gpu.synchronize().unwrap();
    drop(x);
    gpu.close().unwrap();
    host.destroy_semaphore(gate);
    host.destroy_semaphore(done);
}

#[test]
fn a_host_that_throws_its_commands_away_signals_by_itself() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let done = host.semaphore();
    let x = gpu.upload(&[1.0f32; N], [N]).unwrap();
    let buffer = host.begin();
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&x).unwrap();
    drop(r.keep(y).unwrap());
    r.record_into(commands(&host, buffer, done, 1)).unwrap();
    // SAFETY: a command buffer of the host's own that was never submitted.
    unsafe { host.device.end_command_buffer(buffer) }.unwrap();
    drop(x);
    assert_eq!(gpu.stats().pool.live_blocks, 2);
    host.signal(done, 1);
    assert_eq!(gpu.stats().pool.live_blocks, 0);
    gpu.close().unwrap();
    host.destroy_semaphore(done);
}
