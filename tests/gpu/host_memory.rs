//! Tensors on memory of the application: a mapped file of weights, without a copy.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidemill::error::HostError;
use tidemill::interop::HostMemory;
use tidemill::{Accelerator, DType, Error, F16};

use crate::fixtures::Pages;
use crate::harness::{config, gpu, gpu_with};

/// A file in memory, read only, as the crates for that have it.
#[cfg(unix)]
#[allow(unsafe_code, reason = "it stands in for a crate that maps files")]
mod mapped {
    use std::ffi::{c_int, c_long, c_void};
    use std::fs::File;
    use std::os::fd::AsRawFd;

    unsafe extern "C" {
        fn mmap(
            at: *mut c_void,
            bytes: usize,
            access: c_int,
            flags: c_int,
            file: c_int,
            offset: c_long,
        ) -> *mut c_void;
        fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    }

    pub struct Mapped {
        at: *mut c_void,
        bytes: usize,
    }

    // SAFETY: it only lends bytes that nothing changes.
    unsafe impl Send for Mapped {}
    // SAFETY: as above.
    unsafe impl Sync for Mapped {}

    impl Mapped {
        pub fn new(file: &File) -> Mapped {
            const READ: c_int = 1;
            const PRIVATE: c_int = 2;
            let bytes = usize::try_from(file.metadata().unwrap().len()).unwrap();
            // SAFETY: a new mapping, wherever the system puts it.
            let at = unsafe { mmap(std::ptr::null_mut(), bytes, READ, PRIVATE, file.as_raw_fd(), 0) };
            assert_ne!(at.addr(), usize::MAX, "the file can't be mapped");
            Mapped { at, bytes }
        }
    }

    impl AsRef<[u8]> for Mapped {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: it is mapped until this is dropped, and the tests leave the file alone.
            unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
        }
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: its own mapping.
            unsafe { munmap(self.at, self.bytes) };
        }
    }
}

/// A mapped file of these numbers.
fn mapped(numbers: &[f32]) -> HostMemory {
    let name = format!("tidemill-host-memory-{}-{:p}", std::process::id(), numbers);
    let path = std::env::temp_dir().join(name);
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
    File::create(&path).unwrap().write_all(&bytes).unwrap();
    let file = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    HostMemory::new(mapped::Mapped::new(&file))
}

/// The test's own memory, with a flag that says when it is let go of.
fn pages(number: f32) -> (HostMemory, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    (HostMemory::new(Pages::of(number, dropped.clone())), dropped)
}

/// Waits until what finished work held is let go of.
fn settle(gpu: &Accelerator) {
    gpu.synchronize().unwrap();
    let _ = gpu.stats();
}

#[test]
fn a_mapped_file_is_an_operand_like_any_other() {
    let gpu = gpu();
    assert!(gpu.device().features.host_pointers, "the tests' driver has VK_EXT_external_memory_host");
    // The last page is not whole, and a bias lies across two.
    let numbers: Vec<f32> = (0..12_345).map(|i| (i % 97) as f32 - 48.0).collect();
    let file = mapped(&numbers);
    let misses = gpu.stats().pool.misses;
    let (rows, columns) = (64, 100);
    let w = gpu.import(&file, 0, [rows, columns], DType::F32).unwrap();
    let at = 4 * 8180;
    let bias = gpu.import(&file, at, [columns], DType::F32).unwrap();
    // Up to the last byte of the file.
    let last = numbers.len() - 12_300;
    let tail = gpu.import(&file, 4 * (numbers.len() - last), [last], DType::F32).unwrap();
    assert!(w.is_imported() && bias.is_imported() && tail.is_imported());
    assert_eq!(gpu.stats().pool.misses, misses, "none of it is the pool's");
    assert_eq!(
        gpu.stats().imported_bytes,
        (4 * (rows * columns + columns + last)).next_multiple_of(16) as u64
    );
    drop(file);
    assert_eq!(w.read::<f32>().unwrap(), numbers[..rows * columns]);
    assert_eq!(tail.read::<f32>().unwrap(), numbers[numbers.len() - last..]);

    let x = gpu.upload(&vec![1.0f32; 3 * rows], [3, rows]).unwrap();
    let (y, twice) = gpu
        .run(|r| {
            let y = r.matmul(&x, &w)?;
            Ok((r.add(y, &bias)?, r.add(&tail, &tail)?))
        })
        .unwrap();
    let column = |c: usize| (0..rows).map(|k| numbers[k * columns + c]).sum::<f32>() + numbers[at / 4 + c];
    let expected: Vec<f32> = (0..3 * columns).map(|i| column(i % columns)).collect();
    assert_eq!(y.read::<f32>().unwrap(), expected, "sums of whole numbers");
    let expected: Vec<f32> = numbers[numbers.len() - last..].iter().map(|x| x + x).collect();
    assert_eq!(twice.read::<f32>().unwrap(), expected);
    drop((w, bias, tail));
    settle(&gpu);
    assert_eq!(gpu.stats().imported_bytes, 0);
}

#[test]
fn every_element_type_is_taken() {
    let gpu = gpu();
    let (memory, _) = pages(1.0);
    let words = memory.as_bytes().len() / 4;
    let f = gpu.import(&memory, 0, [words], DType::F32).unwrap();
    let u = gpu.import(&memory, 0, [words], DType::U32).unwrap();
    let i = gpu.import(&memory, 16, [words - 4], DType::I32).unwrap();
    let h = gpu.import(&memory, 0, [2 * words - 1], DType::F16).unwrap();
    assert_eq!(f.read::<f32>().unwrap(), vec![1.0; words]);
    let bits = 1.0f32.to_bits();
    let sum = gpu.run(|r| r.add(&u, &u)).unwrap();
    assert_eq!(sum.read::<u32>().unwrap(), vec![bits.wrapping_mul(2); words]);
    assert_eq!(i.read::<i32>().unwrap(), vec![bits as i32; words - 4]);
    let halves = gpu.run(|r| r.add(&h, &h)).unwrap().read::<F16>().unwrap();
    // The upper half of 1.0 is 1.875 as an f16.
    let expected: Vec<f32> = (0..2 * words - 1).map(|i| if i % 2 == 0 { 0.0 } else { 3.75 }).collect();
    assert_eq!(halves.iter().map(|h| h.to_f32()).collect::<Vec<_>>(), expected);
    // Nothing takes no memory.
    let none = gpu.import(&memory, Pages::BYTES, [0], DType::F32).unwrap();
    assert!(!none.is_imported() && none.read::<f32>().unwrap().is_empty());
}

#[test]
fn plans_bind_it_and_views_keep_it() {
    let gpu = gpu();
    let x = gpu.upload(&[5.0f32; 64], [64]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.add(&x, &x).unwrap();
    let y = r.keep(y).unwrap();
    let view = r.reshape(&x, [8, 8]).unwrap();
    let view = r.keep(view).unwrap();
    let mut plan = r.into_plan().unwrap();
    let (memory, dropped) = pages(3.0);
    let w = gpu.import(&memory, 256, [64], DType::F32).unwrap();
    drop(memory);
    plan.bind(&x, &w).unwrap();
    let _ = plan.submit().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [6.0; 64]);
    // The view is the plan's input of that submission: it has the memory, too.
    assert!(view.is_imported());
    plan.bind(&x, &x).unwrap();
    drop(w);
    settle(&gpu);
    assert!(!dropped.load(Ordering::Acquire), "the view has it");
    assert_eq!(view.read::<f32>().unwrap(), [3.0; 64]);
    let _ = plan.submit().unwrap();
    assert_eq!(view.read::<f32>().unwrap(), [5.0; 64]);
    settle(&gpu);
    assert!(dropped.load(Ordering::Acquire));
}

#[test]
fn nothing_writes_it() {
    let gpu = gpu();
    let (memory, dropped) = pages(2.0);
    let before = memory.as_bytes().to_vec();
    let w = gpu.import(&memory, 0, [64], DType::F32).unwrap();

    // The host's write gives the tensor memory of its own, alone or in a plan.
    let own = gpu.import(&memory, 0, [64], DType::F32).unwrap();
    own.write(&[9.0f32; 64]).unwrap();
    assert!(!own.is_imported());
    assert_eq!(own.read::<f32>().unwrap(), [9.0; 64]);
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&w).unwrap();
    let y = r.keep(y).unwrap();
    let mut plan = r.into_plan().unwrap();
    let _ = plan.submit().unwrap();
    w.write(&[4.0f32; 64]).unwrap();
    assert!(!w.is_imported());
    assert_eq!(y.read::<f32>().unwrap(), [-2.0; 64]);
    let _ = plan.submit().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [-4.0; 64]);

    // So does a plan's output.
    let target = gpu.import(&memory, 0, [64], DType::F32).unwrap();
    plan.bind(&y, &target).unwrap();
    let _ = plan.submit().unwrap();
    assert!(!target.is_imported());
    assert_eq!(target.read::<f32>().unwrap(), [-4.0; 64]);

    // And it is no place for results.
    let imported = gpu.import(&memory, 0, [64], DType::F32).unwrap();
    let r = gpu.begin_recording().unwrap();
    let z = r.exp(&w).unwrap();
    let error = r.keep_in(z, &imported).unwrap_err();
    assert!(matches!(error, Error::Host(HostError::NotWrapped { .. })), "{error}");
    drop(r);
    assert_eq!(memory.as_bytes(), before);
    drop((memory, w, own, target, imported, plan, y));
    settle(&gpu);
    assert!(dropped.load(Ordering::Acquire));
}

#[test]
fn it_is_kept_for_open_recordings_and_let_go_of_afterwards() {
    let gpu = gpu();
    let (memory, dropped) = pages(1.5);
    let w = gpu.import(&memory, 4096, [100], DType::F32).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.add(&w, &w).unwrap();
    let y = r.keep(y).unwrap();
    drop((w, memory));
    assert!(!dropped.load(Ordering::Acquire));
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [3.0; 100]);
    settle(&gpu);
    assert!(dropped.load(Ordering::Acquire));

    // An accelerator that is closed has none.
    let gpu = Accelerator::new(&config()).unwrap();
    let (memory, dropped) = pages(1.5);
    let w = gpu.import(&memory, 0, [100], DType::F32).unwrap();
    drop(memory);
    let again = gpu.clone();
    assert!(matches!(gpu.close(), Err(Error::StillInUse { tensors: 1, .. })));
    assert!(!dropped.load(Ordering::Acquire));
    drop(w);
    assert!(dropped.load(Ordering::Acquire), "no submission has used it");
    again.close().unwrap();
}

#[test]
fn what_does_not_fit_is_refused_with_its_numbers() {
    let gpu = gpu_with(config());
    let (memory, _) = pages(1.0);
    let alignment = gpu.device().limits.offset_alignment;
    let import = |offset, elements: usize| gpu.import(&memory, offset, [elements], DType::F32).unwrap_err();
    for (offset, elements) in [(0, Pages::BYTES / 4 + 1), (Pages::BYTES, 1), (usize::MAX, 1)] {
        let error = import(offset, elements);
        let expected = HostError::MemoryRange { offset, needs: 4 * elements, got: Pages::BYTES };
        assert!(matches!(&error, Error::Host(e) if *e == expected), "{error}");
    }
    let error = import(4, 8);
    assert!(
        matches!(&error, Error::Host(HostError::MemoryAddress { offset: 4, alignment: a, .. }) if *a == alignment)
    );
    assert!(error.to_string().contains(&format!("a multiple of the device's {alignment}")), "{error}");
    // A copy has no such needs.
    let (copy, why) = gpu.import_or_upload(&memory, 4, [8], DType::F32).unwrap();
    assert!(!copy.is_imported() && matches!(why, Some(HostError::MemoryAddress { .. })));
    assert_eq!(copy.read::<f32>().unwrap(), [1.0; 8]);
    let (w, why) = gpu.import_or_upload(&memory, 0, [8], DType::F32).unwrap();
    assert!(w.is_imported() && why.is_none());
    // But it does not make up what is not there.
    let error = gpu.import_or_upload(&memory, 4096, [Pages::BYTES], DType::F32).unwrap_err();
    assert!(matches!(error, Error::Host(HostError::MemoryRange { .. })), "{error}");
}
