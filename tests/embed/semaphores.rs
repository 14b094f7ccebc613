//! The host's timeline semaphores in submissions.

use std::time::Duration;

use ash::vk;
use tidemill::DType;
use tidemill::interop::BUFFER_USAGE;

use crate::host::{Host, Made};

#[test]
fn a_submission_waits_for_and_signals_the_hosts_semaphores() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let (gate, done) = (host.semaphore(), host.semaphore());
    let x = gpu.upload(&[2.0f32; 100], [100]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.mul(&x, &x).unwrap();
    let y = r.keep(y).unwrap();
    r.wait_for(host.point(gate, 3));
    r.signal(host.point(done, 7));
    let submission = r.end_recording().unwrap();
    host.signal(gate, 2);
    assert!(!submission.wait_timeout(Duration::from_millis(50)).unwrap(), "it waits for 3");
    assert_eq!(host.value(done), 0);
    host.signal(gate, 3);
    host.wait(done, 7);
    assert!(submission.wait_timeout(Duration::from_secs(20)).unwrap());
    assert_eq!(y.read::<f32>().unwrap(), [4.0; 100]);

    // What is asked of a plan holds for its next submission only.
    let r = gpu.begin_recording().unwrap();
    let y = r.add(&x, &x).unwrap();
    let y = r.keep(y).unwrap();
    r.signal(host.point(done, 8));
    let mut plan = r.into_plan().unwrap();
    plan.wait_for(host.point(gate, 4));
    let submission = plan.submit().unwrap();
    assert!(!submission.wait_timeout(Duration::from_millis(50)).unwrap());
    host.signal(gate, 4);
    host.wait(done, 8);
    plan.submit().unwrap().wait().unwrap();
    assert_eq!((y.read::<f32>().unwrap(), host.value(done)), (vec![4.0; 100], 8));
    plan.signal(host.point(done, 9));
    drop(plan.submit().unwrap());
    host.wait(done, 9);
    gpu.synchronize().unwrap();
    host.destroy_semaphore(gate);
    host.destroy_semaphore(done);
}

/// The host writes, we compute, the host reads, with nothing but semaphores in between and no wait on the CPU.
#[test]
fn host_and_engine_hand_a_buffer_back_and_forth() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let timeline = host.semaphore();
    let (input, output) = (host.buffer(4096, BUFFER_USAGE), host.buffer(4096, BUFFER_USAGE));
    let results: Vec<_> = (0..4).map(|_| host.buffer(4096, vk::BufferUsageFlags::TRANSFER_DST)).collect();
    let x = gpu.wrap(input.range(0, 4096), [1024], DType::F32).unwrap();
    let y = gpu.wrap(output.range(0, 4096), [1024], DType::F32).unwrap();
    for (n, result) in (0u64..).zip(&results) {
        let commands = host.begin();
        // SAFETY: valid handles; the last reader is waited for.
        unsafe { host.device.cmd_fill_buffer(commands, input.raw, 0, 4096, (n as f32).to_bits()) };
        host.submit(commands, &[(timeline, 3 * n)], &[(timeline, 3 * n + 1)]);

        let r = gpu.begin_recording().unwrap();
        let v = r.add_scalar(&x, 0.5).unwrap();
        r.keep_in(v, &y).unwrap();
        r.wait_for(host.point(timeline, 3 * n + 1));
        r.signal(host.point(timeline, 3 * n + 2));
        drop(r.end_recording().unwrap());

        let commands = host.begin();
        let region = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 4096 };
        // SAFETY: valid handles; the writer is waited for.
        unsafe { host.device.cmd_copy_buffer(commands, output.raw, result.raw, &[region]) };
        host.submit(commands, &[(timeline, 3 * n + 2)], &[(timeline, 3 * n + 3)]);
    }
    host.wait(timeline, 12);
    for (n, result) in results.iter().enumerate() {
        assert_eq!(result.read(), [n as f32 + 0.5; 1024]);
    }
    drop((x, y));
    gpu.close().unwrap();
    host.destroy_semaphore(timeline);
}

/// The same without the barriers that Vulkan asks for: the layer hears it, so the other tests' silence means something.
#[test]
fn a_hazard_of_the_hosts_own_is_seen() {
    let host = Host::new(Made::Full);
    let buffer = host.buffer(4096, BUFFER_USAGE);
    host.run(&[], |commands| {
        for word in 0..2 {
            // SAFETY: valid handles; the hazard is the point.
            unsafe { host.device.cmd_fill_buffer(commands, buffer.raw, 0, 4096, word) };
        }
    });
    let messages = host.take_messages();
    assert!(messages.iter().any(|m| m.replace('_', "-").contains("WRITE-AFTER-WRITE")), "{messages:?}");
}
