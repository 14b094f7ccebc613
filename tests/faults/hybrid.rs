//! A device's error is an error of `Hybrid`, on whatever ground the device was chosen: never a run on the CPU instead.

use ash::vk;
use tidemill::hybrid::{Calibration, Class, Curve, DeviceTimes, Hybrid, Policy, Side};
use tidemill::{Accelerator, Error};

use crate::seam::Seam;

/// Prices by which the device is always taken, or never.
fn prices(cpu_us: f64, gpu_us: f64) -> Calibration {
    let flat = |us: f64| Curve::new(vec![(1.0, us), (1e9, us)]).unwrap();
    let curves = |us: f64| -> [Curve; Class::ALL.len()] { std::array::from_fn(|_| flat(us)) };
    let gpu = DeviceTimes {
        ops: curves(gpu_us),
        upload: flat(gpu_us),
        download: flat(gpu_us),
        submission_us: gpu_us / 2.0,
        dispatch_us: gpu_us / 2.0,
    };
    Calibration { cpu: curves(cpu_us), gpu: Some(gpu) }
}

fn single(hybrid: &Hybrid, out: &mut [f32; 3]) -> tidemill::Result<Side> {
    Ok(hybrid.relu(&[-1.0, 2.0, -3.0], out)?.decision.side)
}

fn chain(hybrid: &Hybrid, out: &mut [f32; 3]) -> tidemill::Result<Side> {
    let decision = hybrid.chain(|c| {
        let x = c.input(&[-1.0f32, 2.0, -3.0])?;
        let x = c.relu(x)?;
        c.output(x, out)
    });
    Ok(decision?.side)
}

#[test]
fn a_failing_device_is_an_error_and_no_run_on_the_cpu() {
    for run in [single, chain] {
        for policy in [Policy::Gpu, Policy::Auto] {
            for failure in [vk::Result::ERROR_OUT_OF_HOST_MEMORY, vk::Result::ERROR_DEVICE_LOST] {
                let seam = Seam::take();
                let gpu = seam.gpu();
                let hybrid = Hybrid::with_calibration(Accelerator::clone(&gpu), prices(1e6, 1.0), policy);
                let mut out = [7.0; 3];
                assert_eq!(run(&hybrid, &mut out).unwrap(), Side::Gpu);
                assert_eq!(out, [0.0, 2.0, 0.0]);
                out = [7.0; 3];
                seam.fail("vkQueueSubmit2", 0, 1, failure);
                let error = run(&hybrid, &mut out).unwrap_err();
                let (lost, named) = match &error {
                    Error::DeviceLost { call, .. } => (true, *call),
                    Error::Vulkan { call, .. } => (false, *call),
                    other => panic!("{policy:?}: {other}"),
                };
                assert_eq!((lost, named), (failure == vk::Result::ERROR_DEVICE_LOST, "vkQueueSubmit2"));
                assert_eq!(out, [7.0; 3], "{policy:?}: the CPU has written the result");
                // What is lost stays lost; otherwise the next call is as if nothing had been.
                match run(&hybrid, &mut out) {
                    Ok(side) => assert_eq!((lost, side, out), (false, Side::Gpu, [0.0, 2.0, 0.0])),
                    Err(again) => assert!(lost && matches!(again, Error::DeviceLost { .. }), "{again}"),
                }
            }
        }
    }
}

#[test]
fn a_call_on_the_cpu_does_not_ask_the_device() {
    for run in [single, chain] {
        for (policy, prices) in [(Policy::Cpu, prices(1e6, 1.0)), (Policy::Auto, prices(1.0, 1e6))] {
            let seam = Seam::take();
            let gpu = seam.gpu();
            let hybrid = Hybrid::with_calibration(Accelerator::clone(&gpu), prices, policy);
            seam.fail("vkQueueSubmit2", 0, 1, vk::Result::ERROR_DEVICE_LOST);
            let (mut out, before) = ([7.0; 3], seam.all_calls());
            assert_eq!(run(&hybrid, &mut out).unwrap(), Side::Cpu);
            assert_eq!((out, seam.all_calls()), ([0.0, 2.0, 0.0], before));
        }
    }
}
