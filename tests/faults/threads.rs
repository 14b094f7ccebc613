//! Threads that can't be had: each that the library asks for is an error or has a stated substitute, and never a panic.
//!
//! `pthread_create` is this binary's own, so it can refuse. It refuses what Rust starts on a thread that asked for
//! that; a driver's threads have a start routine of the driver's, and go through.

#![allow(unsafe_code, reason = "it stands in for a function of C's")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::future::Future;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tidemill::{Accelerator, Config, Prewarm, cpu};

use crate::ramp;
use crate::seam::Seam;
use crate::workloads::{LARGE, SMALL};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Start, *mut c_void) -> c_int;

#[repr(C)]
struct Symbol {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, symbol: *mut Symbol) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Which threads can't be had.
#[derive(Clone, Copy, PartialEq)]
enum Refused {
    None,
    All,
    /// Counted from 1.
    Nth(u64),
}

thread_local! {
    static REFUSED: Cell<Refused> = const { Cell::new(Refused::None) };
    /// How many threads this one has asked for since it began to count.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// Where the file that an address belongs to is loaded.
fn base_of(address: *const c_void) -> *mut c_void {
    let null: *mut c_void = std::ptr::null_mut();
    let mut symbol = Symbol { file: null.cast(), base: null, name: null.cast(), address: null };
    // SAFETY: it looks the address up, and writes the symbol alone.
    unsafe { dladdr(address, &mut symbol) };
    symbol.base
}

/// # Safety
///
/// As of the C library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    const TRY_AGAIN: c_int = 11;
    const NEXT: *mut c_void = usize::MAX as *mut c_void;
    const NAME: &CStr = c"pthread_create";
    if base_of(start as *const c_void) == base_of(pthread_create as *const c_void) {
        let asked = ASKED.get() + 1;
        ASKED.set(asked);
        if matches!(REFUSED.get(), Refused::All) || REFUSED.get() == Refused::Nth(asked) {
            return TRY_AGAIN;
        }
    }
    // SAFETY: a name that ends with NUL.
    let real = unsafe { dlsym(NEXT, NAME.as_ptr()) };
    // SAFETY: it is the C library's function of that name, or null.
    let real = unsafe { std::mem::transmute::<*mut c_void, Option<Create>>(real) };
    // SAFETY: the caller's own arguments.
    real.map_or(TRY_AGAIN, |real| unsafe { real(thread, attributes, start, argument) })
}

/// Does something while threads are refused; gives the number that were asked for, too.
fn without<T>(refused: Refused, act: impl FnOnce() -> T) -> (T, u64) {
    ASKED.set(0);
    REFUSED.set(refused);
    let done = act();
    REFUSED.set(Refused::None);
    (done, ASKED.get())
}

#[test]
fn it_is_asked_for_threads_and_can_refuse() {
    let spawn = || std::thread::Builder::new().spawn(|| ()).map(|thread| thread.join().unwrap());
    assert!(matches!(without(Refused::None, spawn), (Ok(()), 1)));
    assert!(matches!(without(Refused::All, spawn), (Err(_), 1)));
    assert!(matches!(without(Refused::Nth(2), spawn), (Ok(()), 1)));
}

#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Awaits a result that comes only after the task was polled, and woken, twice.
fn await_result(seam: &Seam, gpu: &Accelerator, has_thread: bool) {
    let a = gpu.upload(&ramp(300), [300]).unwrap();
    seam.close_gate();
    let r = gpu.begin_recording().unwrap();
    let sum = r.add(&a, &a).unwrap();
    let sum = r.keep(sum).unwrap();
    let mut done = r.end_recording().unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut poll = || Pin::new(&mut done).poll(&mut Context::from_waker(&waker));
    for polls in 1..=3 {
        assert!(poll().is_pending());
        // Without a thread to wake it, the task is polled at once, each time.
        assert!(has_thread || woken.0.load(Ordering::Relaxed) == polls);
    }
    seam.open_gate();
    while poll().is_pending() {
        std::thread::yield_now();
    }
    assert!(matches!(poll(), Poll::Ready(Ok(()))));
    assert_eq!(sum.read::<f32>().unwrap()[299], 598.0);
}

/// Everything that asks for threads on an accelerator: messages, background work, and tasks that wait.
fn all_of_it(seam: &Seam, config: &Config, refused: Refused) -> u64 {
    let ((), asked) = without(refused, || {
        let gpu = Accelerator::new(config).unwrap();
        assert!((SMALL.run)(&gpu).unwrap() == (SMALL.expected)());
        assert!((LARGE.run)(&gpu).unwrap() == (LARGE.expected)());
        await_result(seam, &gpu, refused != Refused::All);
        assert!(gpu.wait_prewarmed().finished);
        assert_eq!(gpu.validation_messages(), [""; 0]);
        gpu.close().unwrap();
    });
    while seam.live() != (0, 0) {
        std::thread::yield_now();
    }
    asked
}

#[test]
fn an_accelerator_works_without_any_of_its_threads() {
    let seam = Seam::take();
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = messages.clone();
    let config = seam.config().on_message(move |message| sink.lock().push(message.to_owned()));
    let asked = all_of_it(&seam, &config, Refused::None);
    assert_eq!(asked, 3, "messages, background work, tasks that wait");
    for refused in (1..=asked).map(Refused::Nth).chain([Refused::All]) {
        all_of_it(&seam, &config, refused);
    }
    assert_eq!(*messages.lock(), [""; 0]);
}

/// Nothing is prewarmed then, and nothing waits for it.
#[test]
fn prewarming_without_a_thread_is_finished() {
    let seam = Seam::take();
    let config = seam.config().prewarm(Prewarm::Background);
    let (status, _) = without(Refused::All, || {
        let gpu = Accelerator::new(&config).unwrap();
        let status = gpu.wait_prewarmed();
        gpu.close().unwrap();
        status
    });
    assert!(status.finished && status.warmed == 0, "{status:?}");
    assert_eq!(seam.live(), (0, 0));
}

/// A thread that needs pipelines then makes them itself.
#[test]
fn pipelines_are_made_without_threads() {
    let seam = Seam::take();
    let gpu = crate::harness::gpu_with(seam.config().fusion(false));
    let x = gpu.upload(&ramp(300), [300]).unwrap();
    for (refused, made) in [(Refused::All, 2), (Refused::Nth(1), 4)] {
        let (sums, asked) = without(refused, || {
            gpu.run(|r| match made {
                2 => Ok((r.add(&x, &x)?, r.floor(&x)?)),
                _ => Ok((r.abs(&x)?, r.ceil(&x)?)),
            })
        });
        let (one, other) = sums.unwrap();
        assert!(asked >= 2, "{asked} threads");
        assert_eq!(one.read::<f32>().unwrap()[299], if made == 2 { 598.0 } else { 299.0 });
        assert_eq!(other.read::<f32>().unwrap(), ramp(300));
        assert_eq!(gpu.stats().pipelines.made, made);
    }
}

/// The host's function is for a thread of its own; without one it is never called, and nothing is lost.
#[test]
fn messages_without_a_thread_are_kept() {
    let seam = Seam::take();
    seam.skip_barriers(true);
    let config = seam.config().on_message(|message| panic!("there is no thread for {message}"));
    let (gpu, _) = without(Refused::All, || Accelerator::new(&config).unwrap());
    let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    gpu.run(|r| {
        let x = r.copy(&a)?;
        r.copy(x)
    })
    .unwrap();
    gpu.synchronize().unwrap();
    seam.skip_barriers(false);
    assert!(!gpu.validation_messages().is_empty());
}

#[cfg(feature = "shaderc")]
#[test]
fn glsl_without_a_thread_is_an_error() {
    use tidemill::error::GlslError;
    use tidemill::{Error, Glsl};
    let source = "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer B { float x[]; };\n\
                  void main() { x[0] = 1.0; }";
    let compile = || Glsl::source("one", source).compile();
    let (refused, asked) = without(Refused::All, compile);
    assert_eq!(asked, 1);
    assert!(
        matches!(&refused, Err(Error::Glsl(GlslError::Compiler(why))) if why.contains("no thread to compile on")),
        "{refused:?}"
    );
    compile().unwrap();
}

/// The pool of the CPU's operations belongs to the process, and is made once.
#[test]
fn the_cpu_works_without_threads() {
    for refused in ["1", "2", "all"] {
        let program = std::env::current_exe().unwrap();
        let test = "threads::in_a_process_without_a_pool";
        let mut again = Command::new(program);
        again.args(["--ignored", "--exact", test, "--test-threads", "1"]).env("REFUSED", refused);
        let output = again.env("RAYON_NUM_THREADS", "3").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{refused}: {told}");
    }
}

#[test]
#[ignore = "run by the_cpu_works_without_threads"]
fn in_a_process_without_a_pool() {
    let refused = match std::env::var("REFUSED").unwrap().parse() {
        Ok(nth) => Refused::Nth(nth),
        Err(_) => Refused::All,
    };
    const SIDE: usize = 512;
    let (x, mut out) = (vec![1.0f32; SIDE * SIDE], vec![0.0f32; SIDE * SIDE]);
    let ((), asked) = without(refused, || {
        cpu::add(&x, &x, &mut out).unwrap();
    });
    assert!(asked > 0);
    assert!(out.iter().all(|x| *x == 2.0));
    // There is no second try: rayon makes its pool once.
    cpu::matmul((&x, [SIDE, SIDE]), (&x, [SIDE, SIDE]), &mut out).unwrap();
    assert!(out.iter().all(|x| *x == SIDE as f32));
    let mut sum = [0.0];
    cpu::dot(&x, &x, &mut sum).unwrap();
    cpu::sum(&x, cpu_axes(), &mut sum).unwrap();
    assert_eq!(sum, [(SIDE * SIDE) as f32]);
    let mut place = [0];
    cpu::argmax(&x, cpu_axes(), &mut place).unwrap();
    assert_eq!(place, [0]);
}

fn cpu_axes() -> tidemill::Axes {
    tidemill::Axes::at(0)
}
