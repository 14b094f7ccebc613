//! Accelerators that come and go while others work. Vulkan's loader does not guard its list of devices, through which
//! every name of an object is looked for (`src/vk/loader.rs`): without a lock of ours, this dies by SIGSEGV.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tidemill::Accelerator;

use crate::harness::{config, gpu};

/// How many accelerators each of two threads makes and destroys.
const MADE: usize = 48;

#[test]
fn names_are_given_while_devices_come_and_go() {
    let done = AtomicBool::new(false);
    let recorded = AtomicUsize::new(0);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let gpu = gpu();
                let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
                // Every recording names its command buffer.
                while !done.load(Ordering::Relaxed) {
                    let y = gpu.run(|r| r.add(&x, &x)).unwrap();
                    assert_eq!(y.read::<f32>().unwrap(), [2.0; 64]);
                    recorded.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let makers: Vec<_> = (0..2)
            .map(|_| {
                threads.spawn(|| {
                    for _ in 0..MADE {
                        let gpu = gpu();
                        assert_eq!(gpu.zeros::<f32>([4]).unwrap().read::<f32>().unwrap(), [0.0; 4]);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = makers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a thread that makes accelerators failed");
    });
    assert!(recorded.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_last_handle_may_go_anywhere() {
    // The thread that made it, another one, and one that is ending: its own values are gone by then.
    thread_local! {
        static LAST: Mutex<Option<Accelerator>> = const { Mutex::new(None) };
    }
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = messages.clone();
    let config = config().on_message(move |message| sink.lock().unwrap().push(message.to_owned()));
    drop(Accelerator::new(&config).unwrap());
    let made = Accelerator::new(&config).unwrap();
    thread::spawn(move || drop(made)).join().unwrap();
    let made = Accelerator::new(&config).unwrap();
    thread::spawn(move || LAST.with(|last| *last.lock().unwrap() = Some(made))).join().unwrap();
    assert_eq!(*messages.lock().unwrap(), Vec::<String>::new());
}
