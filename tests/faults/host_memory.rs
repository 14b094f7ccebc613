//! Memory of the application: who keeps it while the device is slow, and devices and drivers that do not take it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use tidemill::error::HostError;
use tidemill::interop::HostMemory;
use tidemill::{Accelerator, DType, Error, Tensor};

use crate::fixtures::Pages;
use crate::seam::{FakeMemory, Seam};

fn pages(number: f32) -> (HostMemory, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    (HostMemory::new(Pages::of(number, dropped.clone())), dropped)
}

fn import(gpu: &Accelerator, memory: &HostMemory) -> tidemill::Result<Tensor> {
    gpu.import(memory, 0, [Pages::BYTES / 4], DType::F32)
}

/// What was copied instead is right.
fn is_copied(gpu: &Accelerator, memory: &HostMemory, reason: &HostError) {
    let (copy, why) = gpu.import_or_upload(memory, 0, [Pages::BYTES / 4], DType::F32).unwrap();
    assert_eq!(why.as_ref(), Some(reason));
    assert!(!copy.is_imported());
    let twice = gpu.run(|r| r.add(&copy, &copy)).unwrap();
    assert_eq!(twice.read::<f32>().unwrap(), vec![4.0; Pages::BYTES / 4]);
}

#[test]
fn work_in_flight_keeps_it() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let (memory, dropped) = pages(2.0);
    let w = import(&gpu, &memory).unwrap();
    drop(memory);
    let r = gpu.begin_recording().unwrap();
    let y = r.add(&w, &w).unwrap();
    let y = r.keep(y).unwrap();
    let mut plan = r.into_plan().unwrap();
    seam.close_gate();
    let done = plan.submit().unwrap();
    // All that could hold it, but for the submission, goes.
    drop((plan, w));
    let _ = gpu.stats();
    assert!(!dropped.load(Ordering::Acquire), "the device has not read it yet");
    assert!(gpu.stats().imported_bytes > 0);
    seam.open_gate();
    done.wait().unwrap();
    let _ = gpu.stats();
    assert!(dropped.load(Ordering::Acquire));
    assert_eq!(gpu.stats().imported_bytes, 0);
    assert_eq!(y.read::<f32>().unwrap(), vec![4.0; Pages::BYTES / 4]);
}

#[test]
fn a_device_without_the_extension_is_named() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_EXT_external_memory_host");
    let gpu = seam.gpu();
    assert!(!gpu.device().features.host_pointers);
    let (memory, dropped) = pages(2.0);
    let error = import(&gpu, &memory).unwrap_err();
    let device = gpu.device().name.clone();
    let reason = HostError::NoHostPointers { device: device.clone() };
    assert!(matches!(&error, Error::Host(e) if *e == reason), "{error}");
    assert!(error.to_string().contains(&format!("{device} has no VK_EXT_external_memory_host")), "{error}");
    is_copied(&gpu, &memory, &reason);
    drop(memory);
    assert!(dropped.load(Ordering::Acquire), "a copy holds nothing");
    assert_eq!(seam.calls("vkGetMemoryHostPointerPropertiesEXT"), 0);
}

/// A driver that says no at any point leaves nothing behind.
#[test]
fn a_driver_that_refuses_is_an_error_or_a_copy() {
    let calls = [
        ("vkGetMemoryHostPointerPropertiesEXT", vk::Result::ERROR_INVALID_EXTERNAL_HANDLE),
        ("vkCreateBuffer", vk::Result::ERROR_OUT_OF_HOST_MEMORY),
        ("vkAllocateMemory", vk::Result::ERROR_INVALID_EXTERNAL_HANDLE),
        ("vkBindBufferMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY),
    ];
    for (call, result) in calls {
        let seam = Seam::take();
        let gpu = seam.gpu();
        // Its block makes no further one necessary.
        drop(gpu.upload(&[0.0f32; Pages::BYTES / 4], [Pages::BYTES / 4]).unwrap());
        let (memory, dropped) = pages(2.0);
        let (bytes, buffers) = (seam.memory_bytes(), seam.calls("vkCreateBuffer"));
        seam.fail(call, 0, 2, result);
        let reason = HostError::ImportRefused { call, result: format!("{result:?}") };
        let error = import(&gpu, &memory).unwrap_err();
        assert!(matches!(&error, Error::Host(e) if *e == reason), "{error}");
        assert_eq!((seam.memory_bytes(), gpu.stats().imported_bytes), (bytes, 0));
        is_copied(&gpu, &memory, &reason);
        assert!(seam.calls("vkCreateBuffer") - buffers <= 4, "two imports, and the sum");
        // From now on it does.
        let w = import(&gpu, &memory).unwrap();
        drop(memory);
        assert_eq!(w.read::<f32>().unwrap(), vec![2.0; Pages::BYTES / 4]);
        drop(w);
        assert!(dropped.load(Ordering::Acquire));
        assert_eq!(gpu.stats().imported_bytes, 0);
    }
}

#[test]
fn pages_larger_than_the_systems_do_not_reach_beyond_the_memory() {
    let seam = Seam::take();
    seam.import_by(1 << 20);
    let gpu = seam.gpu();
    assert_eq!(gpu.device().limits.host_pointer_alignment, 1 << 20);
    let (memory, _) = pages(2.0);
    let error = import(&gpu, &memory).unwrap_err();
    let reason = HostError::MemoryPages { pages: 1 << 20, offset: 0, memory: Pages::BYTES };
    assert!(matches!(&error, Error::Host(e) if *e == reason), "{error}");
    is_copied(&gpu, &memory, &reason);
    // Where there is one around the tensor, it is taken.
    let large = HostMemory::new(vec![0u8; 3 << 20]);
    let first = large.as_bytes().as_ptr().addr().next_multiple_of(1 << 20) - large.as_bytes().as_ptr().addr();
    let w = gpu.import(&large, first + 8192, [1000], DType::F32).unwrap();
    assert_eq!(gpu.run(|r| r.exp(&w)).unwrap().read::<f32>().unwrap(), [1.0; 1000]);
}

/// Memory that is not coherent would have to be flushed, and what is imported is not mapped.
#[test]
fn only_coherent_memory_is_imported() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = seam.gpu();
    let (memory, _) = pages(2.0);
    let w = import(&gpu, &memory).unwrap();
    let staged = gpu.stats().pool.staging_bytes;
    assert_eq!(w.read::<f32>().unwrap(), vec![2.0; Pages::BYTES / 4]);
    assert_eq!(gpu.stats().pool.staging_bytes, staged, "the host reads its own memory");
    let twice = gpu.run(|r| r.add(&w, &w)).unwrap();
    assert_eq!(twice.read::<f32>().unwrap(), vec![4.0; Pages::BYTES / 4]);
    drop((w, twice, gpu));
    assert_eq!(seam.violations(), [""; 0]);
    drop(seam);

    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete_not_coherent());
    let gpu = seam.gpu();
    let error = import(&gpu, &memory).unwrap_err();
    let call = "vkGetMemoryHostPointerPropertiesEXT";
    let reason = HostError::ImportRefused { call, result: "no coherent memory type among 0b10".to_owned() };
    assert!(matches!(&error, Error::Host(e) if *e == reason), "{error}");
    is_copied(&gpu, &memory, &reason);
    drop(gpu);
    assert_eq!(seam.violations(), [""; 0]);
}
