//! A process may end while the background thread is inside the driver's compiler, and it may fork. Its own `main`, so
//! that it is the main thread that leaves: it starts itself again and again, each time to leave at another moment, or
//! to fork.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test with a main of its own")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a host's side is plain Vulkan")]
#![allow(unsafe_code, reason = "fork, and what belongs to it, are C's, and a host's side is plain Vulkan")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "embed/host.rs"]
#[allow(dead_code, reason = "a host does more than this needs")]
mod host;

use std::io::Read;
use std::ops::ControlFlow;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidemill::hybrid::{Hybrid, Policy};
use tidemill::profile::Profiling;
use tidemill::{Accelerator, Config, DType, Error, Result};

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// A process leaves within this time, whatever its driver does: it waits two seconds for a pipeline.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// One result, so that the compiler has been at work.
fn add() {
    let gpu = Accelerator::global().expect("the tests need a Vulkan device");
    let a = gpu.upload(&[1.0f32; 1024], [1024]).expect("room for a tensor");
    let sum = gpu.run(|r| r.add(&a, &a)).expect("an add");
    assert_eq!(sum.read::<f32>().expect("a result")[0], 2.0);
}

fn child(how: &str, linger: Duration) {
    match how {
        "before-any-work" => drop(Accelerator::global().expect("the tests need a Vulkan device")),
        "after-a-result" => add(),
        _ => std::thread::spawn(add).join().expect("the thread ends well"),
    }
    std::thread::sleep(linger);
}

unsafe extern "C" {
    safe fn fork() -> i32;
    #[cfg(target_os = "linux")]
    fn syscall(number: std::ffi::c_long, ...) -> std::ffi::c_long;
    safe fn kill(process: i32, signal: i32) -> i32;
    #[link_name = "_exit"]
    safe fn leave_at_once(status: i32) -> !;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

/// How a child is made.
type Fork = extern "C" fn() -> i32;

/// By the system call itself: no library's handler hears of it.
#[cfg(target_os = "linux")]
extern "C" fn clone_process() -> i32 {
    const NUMBER: std::ffi::c_long = if cfg!(target_arch = "x86_64") { 56 } else { 220 };
    const CHILD_SIGNAL: std::ffi::c_long = 17;
    let none = std::ptr::null::<u8>();
    // SAFETY: a copy of the process with a copy of the stack, as `fork` makes it.
    unsafe { syscall(NUMBER, CHILD_SIGNAL, none, none, none, none) as i32 }
}

#[cfg(not(target_os = "linux"))]
extern "C" fn clone_process() -> i32 {
    fork()
}

/// Runs the closure in a child, which leaves by `exit` with what it returns; gives what `waitpid` says of it.
fn in_a_fork(make: Fork, work: impl FnOnce() -> i32) -> i32 {
    const NO_HANG: i32 = 1;
    let process = make();
    if process == 0 {
        std::process::exit(work());
    }
    assert!(process > 0, "fork");
    let began = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: a plain C function that writes one number.
        if unsafe { waitpid(process, &mut status, NO_HANG) } == process {
            return status;
        }
        if began.elapsed() > PATIENCE {
            println!("the child hangs");
            kill(process, 9);
            return -1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a call says that the process was forked.
fn refused<T>(call: &str, result: Result<T>) -> i32 {
    match result {
        Err(Error::Forked { owner, process }) if owner != process && process == std::process::id() => 0,
        Err(other) => {
            println!("{call}: {other}");
            1
        }
        Ok(_) => {
            println!("{call}: not refused");
            1
        }
    }
}

/// Forks a process in which there is a bit of everything; every call in the child is an error, and all of it is
/// dropped.
fn calls() -> Result<i32> {
    let gpu = Accelerator::global()?;
    let x = gpu.upload(&[1.0f32; 64], [64])?;
    let open = gpu.begin_recording()?;
    let value = open.neg(&x)?;
    let r = gpu.begin_recording()?;
    let doubled = r.add(&x, &x)?;
    let doubled = r.keep(doubled)?;
    let mut plan = r.into_plan()?;
    let submission = plan.submit()?;
    let mut stream = gpu.stream().input::<f32>([64]).record(|r, x| Ok([r.neg(&x[0])?]))?;
    stream.push(|slot| slot.write(0, &[1.0f32; 64]))?;
    stream.push(|slot| slot.write(0, &[2.0f32; 64]))?;
    let batch = stream.pop()?.expect("a batch");
    let control = stream.control();
    let weights = gpu.upload(&[1.0f32; 9], [1, 1, 3, 3])?;
    let hybrid = Hybrid::with_accelerator(gpu.clone(), Policy::Auto)?;
    let session = gpu.begin_profiling("forked", Profiling::Timeline)?;
    let status = in_a_fork(fork, || {
        let mut out = [0.0; 64];
        let mut wrong = refused("global", Accelerator::global())
            + refused("new", Accelerator::new(&Config::new()))
            + refused("devices", Accelerator::devices())
            + refused("upload", gpu.upload(&[1.0f32], [1]))
            + refused("upload_with", gpu.upload_with([1], |f| f.extend([1.0f32])))
            + refused("zeros", gpu.zeros::<f32>([4]))
            + refused("empty", gpu.empty([4], DType::F32))
            + refused("begin_recording", gpu.begin_recording())
            + refused("run", gpu.run(|r| r.neg(&x)))
            + refused("synchronize", gpu.synchronize())
            + refused("flush", gpu.flush())
            + refused("peaks", gpu.peaks())
            + refused(
                "tune",
                gpu.tune(&tidemill::tune::TuneOptions::default(), |_| ControlFlow::Continue(())),
            )
            + refused("begin_profiling", gpu.begin_profiling("again", Profiling::Timeline))
            + refused("measure", gpu.measure("a call").run(1, tidemill::profile::RoundMode::Sync, || Ok(())))
            + refused("read", x.read::<f32>())
            + refused("write", x.write(&[2.0f32; 64]))
            + refused("write_with", x.write_with(|f| f.extend([2.0f32; 64])))
            + refused("capture", gpu.capture("a call", || Ok(())))
            + refused("prepare_weights", gpu.prepare_weights(&weights, 1))
            + refused("Batch::read", batch.read::<f32>(0))
            + refused("Batch::read_into", batch.read_into(0, &mut out))
            + refused("raw_buffer", x.raw_buffer())
            + refused("op on a value", open.neg(value))
            + refused("op on a tensor", open.neg(&x))
            + refused("fill", open.fill([4], 1.0f32))
            + refused("keep", open.keep(value))
            + refused("explain", open.explain())
            + refused("bind", plan.bind(&x, &x))
            + refused("submit", plan.submit())
            + refused("wait", submission.wait())
            + refused("is_complete", submission.is_complete())
            + refused("stream", gpu.stream().input::<f32>([4]).record(|r, x| Ok([r.neg(&x[0])?])))
            + refused("push", stream.push(|slot| slot.write(0, &[1.0f32; 64])))
            + refused("try_pop", stream.try_pop())
            + refused("hybrid", hybrid.add(&[1.0; 64], &[1.0; 64], &mut out))
            + refused("check_process", tidemill::check_process())
            + refused("end_recording", open.end_recording())
            + refused("finish", session.finish())
            + refused("close", gpu.clone().close());
        // These give no error, and nothing that is true only in the parent.
        wrong += i32::from(gpu.stats() != tidemill::stats::Stats::default());
        wrong += i32::from(gpu.trim() != 0);
        wrong += i32::from(gpu.wait_prewarmed() != gpu.prewarm_status());
        wrong += i32::from(stream.is_full() || stream.in_flight() != 0 || stream.slots() != 3);
        wrong += i32::from(!gpu.validation_messages().is_empty());
        wrong += i32::from(tidemill::interop::alone_at_the_loader(|| 1) != 1);
        control.finish();
        control.cancel();
        let (mut producer, mut consumer) = stream.split();
        wrong += refused("Consumer::pop", consumer.pop());
        wrong += refused("Consumer::pop_timeout", consumer.pop_timeout(PATIENCE));
        wrong += refused("Consumer::try_pop", consumer.try_pop());
        wrong += refused("Producer::push", producer.push(|slot| slot.write(0, &[1.0f32; 64])));
        wrong += refused("Producer::try_push", producer.try_push(|slot| slot.write(0, &[1.0f32; 64])));
        drop((producer, consumer, control, batch, hybrid, submission, plan, doubled, weights, x, gpu));
        wrong
    });
    Ok(status)
}

/// The same for what a host has: a device of its own, and a function that hears messages.
fn calls_of_a_host() -> Result<i32> {
    let host = host::Host::with(host::Made::Needed, false);
    let own = host.accelerator();
    let heard = Arc::new(AtomicBool::new(false));
    let hears = heard.clone();
    let config = Config::new().validation(true).on_message(move |_| hears.store(true, Ordering::Relaxed));
    let told = Accelerator::new(&config)?;
    let status = in_a_fork(fork, || {
        let offer = host.offer(host.handles(), host.lock.clone());
        let wrong = refused("from_raw", Accelerator::from_raw(offer, &Config::new()))
            + refused("upload", own.upload(&[1.0f32], [1]))
            // The thread that would hear them is not there.
            + i32::from(!told.validation_messages().is_empty() || heard.load(Ordering::Relaxed));
        drop((own, told));
        wrong
    });
    Ok(status)
}

/// A number of threads that keep the accelerator's locks busy, so that a fork finds some of them held.
fn busy<T>(work: impl FnOnce() -> T) -> T {
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    add();
                    let _ = Accelerator::global().map(|gpu| gpu.stats());
                }
            })
        })
        .collect();
    let done = work();
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
    done
}

/// Forks in one way; `true` if the child ended well, and the parent still works.
fn forks(how: &str) -> bool {
    let status = match how {
        "before-the-first-use" => in_a_fork(fork, || {
            add();
            0
        }),
        "and-leaves" => {
            add();
            in_a_fork(fork, || 0)
        }
        "and-drops-it" => {
            let gpu = Accelerator::new(&Config::new()).expect("the tests need a Vulkan device");
            in_a_fork(fork, || {
                drop(gpu);
                0
            })
        }
        "and-calls" => calls().expect("all is well in the parent"),
        "past-all-handlers" => {
            add();
            // No handler of the C library has put its locks in order, so the child may not even allocate.
            in_a_fork(clone_process, || leave_at_once(i32::from(tidemill::check_process().is_ok())))
        }
        "as-a-host" => calls_of_a_host().expect("all is well in the parent"),
        _ => {
            add();
            (0..20)
                .map(|_| busy(|| calls().expect("all is well in the parent")))
                .find(|s| *s != 0)
                .unwrap_or(0)
        }
    };
    add();
    status == 0
}

/// A driver whose compiler does not come back, on the thread that makes pipelines ahead.
mod stuck {
    use std::ffi::{CStr, c_char};
    use std::sync::OnceLock;

    use ash::vk;

    fn loader() -> &'static ash::Entry {
        static LOADER: OnceLock<ash::Entry> = OnceLock::new();
        // SAFETY: the loader's initialisation has no preconditions.
        LOADER.get_or_init(|| unsafe { ash::Entry::load() }.expect("the tests need a Vulkan loader"))
    }

    pub(super) fn entry() -> tidemill::interop::Entry {
        let table = ash::StaticFn { get_instance_proc_addr: instance_address };
        // SAFETY: the loader's own functions, but for one that may take long.
        let entry = unsafe { ash::Entry::from_static_fn(table) };
        // SAFETY: likewise.
        unsafe { tidemill::interop::Entry::new(entry) }
    }

    static REAL: OnceLock<vk::PFN_vkCreateComputePipelines> = OnceLock::new();
    static DEVICE_ADDRESS: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();

    unsafe extern "system" fn instance_address(
        instance: vk::Instance,
        name: *const c_char,
    ) -> vk::PFN_vkVoidFunction {
        // SAFETY: the caller's own arguments.
        let real = unsafe { (loader().static_fn().get_instance_proc_addr)(instance, name) };
        // SAFETY: the caller passes a string.
        if unsafe { CStr::from_ptr(name) } != c"vkGetDeviceProcAddr" {
            return real;
        }
        // SAFETY: the function of that name has this type.
        let real =
            unsafe { std::mem::transmute::<vk::PFN_vkVoidFunction, vk::PFN_vkGetDeviceProcAddr>(real) };
        let _ = DEVICE_ADDRESS.set(real);
        // SAFETY: a function pointer stands for any.
        unsafe { std::mem::transmute(device_address as vk::PFN_vkGetDeviceProcAddr) }
    }

    unsafe extern "system" fn device_address(
        device: vk::Device,
        name: *const c_char,
    ) -> vk::PFN_vkVoidFunction {
        let real = DEVICE_ADDRESS.get().expect("asked for before");
        // SAFETY: the caller's own arguments.
        let real = unsafe { real(device, name) };
        // SAFETY: the caller passes a string.
        if unsafe { CStr::from_ptr(name) } != c"vkCreateComputePipelines" {
            return real;
        }
        // SAFETY: the function of that name has this type.
        let real =
            unsafe { std::mem::transmute::<vk::PFN_vkVoidFunction, vk::PFN_vkCreateComputePipelines>(real) };
        let _ = REAL.set(real);
        // SAFETY: a function pointer stands for any.
        unsafe { std::mem::transmute(create as vk::PFN_vkCreateComputePipelines) }
    }

    unsafe extern "system" fn create(
        device: vk::Device,
        cache: vk::PipelineCache,
        count: u32,
        infos: *const vk::ComputePipelineCreateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        pipelines: *mut vk::Pipeline,
    ) -> vk::Result {
        if std::thread::current().name() == Some("tidemill background") {
            super::STUCK.store(true, super::Ordering::Release);
            loop {
                std::thread::park();
            }
        }
        let real = REAL.get().expect("asked for before");
        // SAFETY: the caller's own arguments.
        unsafe { real(device, cache, count, infos, allocator, pipelines) }
    }
}

static STUCK: AtomicBool = AtomicBool::new(false);

/// Leaves while a pipeline is being made that never will be.
fn leave_while_stuck() {
    let gpu = Accelerator::new(&Config::new().no_cache().entry(stuck::entry())).expect("a Vulkan device");
    while !STUCK.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Nothing else waits for it, either.
    let a = gpu.upload(&[1.0f32; 8], [8]).expect("room for a tensor");
    let sum = gpu.run(|r| r.div(&a, &a)).expect("a division");
    assert_eq!(sum.read::<f32>().expect("a result"), [1.0; 8]);
    println!("leaving");
}

/// Starts this program again; kills it if it hangs.
fn again(arguments: &[&str]) -> Option<ExitStatus> {
    ended(&mut start(arguments, Stdio::inherit()), 4 * PATIENCE)
}

/// Says whether a process whose driver is stuck leaves in time, from the moment on at which it wants to.
fn leaves_in_time() -> bool {
    let mut started = start(&["--stuck"], Stdio::piped());
    let mut told = [0];
    let output = started.stdout.as_mut().expect("it is piped");
    if output.read_exact(&mut told).is_err() {
        let _ = started.wait();
        return false;
    }
    ended(&mut started, LEAVES_WITHIN).is_some_and(|status| status.success())
}

fn start(arguments: &[&str], output: Stdio) -> Child {
    Command::new(std::env::current_exe().expect("our own path"))
        .args(arguments)
        .stdout(output)
        // Compile for real each time: a hit in the driver's cache is over too soon.
        .env("MESA_SHADER_CACHE_DISABLE", "true")
        .spawn()
        .expect("we can start ourselves")
}

/// Waits for its end; kills it if that takes longer.
fn ended(started: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = started.try_wait().expect("we can wait for it") {
            return Some(status);
        }
        if began.elapsed() > patience {
            let _ = started.kill();
            let _ = started.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "--leave", how, linger] => {
            child(how, Duration::from_millis(linger.parse().expect("a number")));
            return ExitCode::SUCCESS;
        }
        [_, "--stuck"] => {
            leave_while_stuck();
            return ExitCode::SUCCESS;
        }
        [_, "--fork", how] => return if forks(how) { ExitCode::SUCCESS } else { ExitCode::FAILURE },
        _ => {}
    }
    let began = Instant::now();
    let (mut passed, mut failed) = (0, 0);
    let mut check = |what: String, arguments: &[&str]| match again(arguments) {
        Some(status) if status.success() => passed += 1,
        Some(status) => {
            println!("{what}: {status}");
            failed += 1;
        }
        None => {
            println!("{what}: it hangs");
            failed += 1;
        }
    };
    for how in ["before-any-work", "after-a-result", "from-a-thread"] {
        for linger in (26..80).step_by(6) {
            check(format!("leaving {linger} ms {how}"), &["--leave", how, &linger.to_string()]);
        }
    }
    for how in [
        "before-the-first-use",
        "and-leaves",
        "and-drops-it",
        "and-calls",
        "past-all-handlers",
        "as-a-host",
        "while-others-work",
    ] {
        check(format!("forks {how}"), &["--fork", how]);
    }
    if !leaves_in_time() {
        println!("leaving while a compiler is stuck: not within {LEAVES_WITHIN:?}");
        failed += 1;
    }
    // As other test binaries say it, for what counts and times them.
    println!(
        "test result: {}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s",
        if failed == 0 { "ok" } else { "FAILED" },
        began.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
