//! The device is lost.

use ash::vk;
use tidemill::{Accelerator, Error};

use crate::seam::{Seam, device_fault};

/// Tests of lost devices leave validation on, and do not care for guard bytes.
fn lose(
    call: &'static str,
    columns: usize,
    trigger: impl FnOnce(&Accelerator, &tidemill::Tensor, &tidemill::Submission) -> Error,
) {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let a = gpu.upload(&vec![1.0f32; 2 * columns], [2, columns]).unwrap();
    seam.close_gate();
    let r = gpu.begin_recording().unwrap();
    let x = r.add(&a, &a).unwrap();
    let x = r.keep(x).unwrap();
    let done = r.end_recording().unwrap();
    seam.fail(call, 0, 1, vk::Result::ERROR_DEVICE_LOST);
    let error = trigger(&gpu, &x, &done);
    let Error::DeviceLost { call: found, ref in_flight, .. } = error else { panic!("{error}") };
    assert_eq!((found, in_flight.len()), (call, 1));
    let message = format!("the device was lost in {call}; in flight were: add 2x{columns} f32");
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
        a.write(&vec![2.0f32; 2 * columns]).unwrap_err(),
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
    lose("vkQueueSubmit2", 3, |gpu, x, _| gpu.run(|r| r.mul(x, x)).unwrap_err());
}

#[test]
fn lost_while_waiting() {
    lose("vkWaitSemaphores", 4, |_, _, done| done.wait().unwrap_err());
}

#[test]
fn lost_while_asking() {
    lose("vkGetSemaphoreCounterValue", 5, |_, _, done| done.is_complete().unwrap_err());
}

/// Loses a device with this in flight: `x + x` of a shape.
fn lose_with(seam: &Seam, shape: [usize; 2]) -> Error {
    let gpu = seam.gpu();
    let a = gpu.upload(&vec![1.0f32; shape[0] * shape[1]], shape).unwrap();
    seam.close_gate();
    let x = gpu.run(|r| r.add(&a, &a)).unwrap();
    seam.fail("vkWaitSemaphores", 0, 1, vk::Result::ERROR_DEVICE_LOST);
    let error = x.read::<f32>().unwrap_err();
    seam.open_gate();
    error
}

#[test]
fn what_is_in_flight_at_two_losses_is_named_as_the_cause() {
    let seam = Seam::take();
    let shapes = [[11, 3], [11, 4], [11, 3]];
    let again = shapes.map(|shape| {
        let Error::DeviceLost { again, fault, .. } = lose_with(&seam, shape) else { panic!("not lost") };
        assert!(fault.is_none(), "this driver does not tell");
        again.to_vec()
    });
    assert_eq!(again, [vec![], vec![], vec!["add 11x3 f32".to_owned()]]);
    let text = lose_with(&seam, [11, 4]).to_string();
    let end =
        "; in flight were: add 11x4 f32; also in flight at an earlier loss: add 11x4 f32, the likely cause";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn the_driver_tells_why() {
    let seam = Seam::take();
    seam.fake_device_fault();
    let gpu = seam.gpu();
    assert!(gpu.device().features.device_fault);
    drop(gpu);
    assert_eq!(seam.calls("vkGetDeviceFaultInfoEXT"), 0, "nothing is lost yet");
    let error = lose_with(&seam, [12, 3]);
    assert_eq!(seam.calls("vkGetDeviceFaultInfoEXT"), 2);
    let Error::DeviceLost { fault: Some(fault), .. } = &error else { panic!("{error}") };
    let (words, code, data) = device_fault::CODE;
    assert_eq!(fault.description, device_fault::DESCRIPTION);
    assert_eq!(
        (fault.addresses[0].kind, fault.addresses[0].address),
        ("invalid write", device_fault::ADDRESS)
    );
    assert_eq!(fault.addresses[0].precision, device_fault::PRECISION);
    let found = &fault.codes[0];
    assert_eq!((found.description.as_str(), found.code, found.data), (words, code, data));
    let end = "in flight were: add 12x3 f32; the driver says: the tests' own fault, invalid write at 0xdead0000 (to 4096 bytes), \
               wave 3 hung (0x17, 0x2a)";
    assert!(error.to_string().ends_with(end), "{error}");
    // A driver that then does not tell is none that does.
    for skip in [0, 1] {
        seam.fail("vkGetDeviceFaultInfoEXT", skip, 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let error = lose_with(&seam, [12, 4 + skip as usize]);
        assert!(matches!(error, Error::DeviceLost { fault: None, .. }), "{error}");
    }
}
