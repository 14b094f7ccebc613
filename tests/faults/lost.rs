//! The device is lost.

use ash::vk;
use tidemill::{Accelerator, Error};

use crate::seam::Seam;

/// Tests of lost devices leave validation on, and do not care for guard bytes.
fn lose(
    call: &'static str,
    trigger: impl FnOnce(&Accelerator, &tidemill::Tensor, &tidemill::Submission) -> Error,
) {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let a = gpu.upload(&[1.0f32; 6], [2, 3]).unwrap();
    seam.close_gate();
    let mut r = gpu.begin_recording().unwrap();
    let x = r.add(&a, &a).unwrap();
    let x = r.keep(x).unwrap();
    let done = r.end_recording().unwrap();
    seam.fail(call, 0, 1, vk::Result::ERROR_DEVICE_LOST);
    let error = trigger(&gpu, &x, &done);
    let Error::DeviceLost { call: found, ref in_flight } = error else { panic!("{error}") };
    assert_eq!((found, in_flight.len()), (call, 1));
    let message = format!("the device was lost in {call}; in flight were: add 2x3 f32");
    assert_eq!(error.to_string(), message);
    // Sticky, whatever is tried next, though Vulkan itself would go on.
    for again in [
        gpu.begin_recording().unwrap_err(),
        gpu.upload(&[1.0f32], [1]).unwrap_err(),
        gpu.synchronize().unwrap_err(),
        done.wait().unwrap_err(),
        done.is_complete().unwrap_err(),
        x.read::<f32>().unwrap_err(),
        a.read::<f32>().unwrap_err(),
        a.write(&[2.0f32; 6]).unwrap_err(),
    ] {
        assert_eq!(again.to_string(), message);
    }
    // Everything may go in any order.
    seam.open_gate();
    drop(a);
    drop(gpu);
    drop((done, x));
    assert_eq!(seam.live(), (0, 0));
}

#[test]
fn lost_while_submitting() {
    lose("vkQueueSubmit2", |gpu, x, _| gpu.run(|r| r.mul(x, x)).unwrap_err());
}

#[test]
fn lost_while_waiting() {
    lose("vkWaitSemaphores", |_, _, done| done.wait().unwrap_err());
}

#[test]
fn lost_while_asking() {
    lose("vkGetSemaphoreCounterValue", |_, _, done| done.is_complete().unwrap_err());
}
