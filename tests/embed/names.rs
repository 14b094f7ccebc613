//! Names of objects on a host's device: only where the host says that the loader is quiet.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use ash::vk;
use tidemill::Accelerator;

use crate::host::{Host, Made, config};

type Function = unsafe extern "system" fn();

static NAMES: AtomicUsize = AtomicUsize::new(0);
static LABELS: AtomicUsize = AtomicUsize::new(0);

fn loader() -> &'static ash::Entry {
    static LOADER: OnceLock<ash::Entry> = OnceLock::new();
    // SAFETY: the loader's initialisation has no preconditions.
    LOADER.get_or_init(|| unsafe { ash::Entry::load() }.expect("the tests need a Vulkan loader"))
}

unsafe extern "system" fn set_name(
    _: vk::Device,
    _: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    NAMES.fetch_add(1, Ordering::Relaxed);
    vk::Result::SUCCESS
}

unsafe extern "system" fn begin_label(_: vk::CommandBuffer, _: *const vk::DebugUtilsLabelEXT<'_>) {
    LABELS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "system" fn end_label(_: vk::CommandBuffer) {}

/// Where the host's device functions come from: the instance, whose functions serve every device of its.
static INSTANCE: Mutex<vk::Instance> = Mutex::new(vk::Instance::null());

unsafe extern "system" fn device_proc(_: vk::Device, name: *const c_char) -> Option<Function> {
    let instance = *INSTANCE.lock().unwrap();
    // SAFETY: a name and a valid instance, both the caller's.
    unsafe { instance_proc(instance, name) }
}

unsafe extern "system" fn instance_proc(instance: vk::Instance, name: *const c_char) -> Option<Function> {
    // SAFETY: the caller gave a string.
    let ours: *const () = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"vkGetDeviceProcAddr" => device_proc as *const (),
        b"vkSetDebugUtilsObjectNameEXT" => set_name as *const (),
        b"vkCmdBeginDebugUtilsLabelEXT" => begin_label as *const (),
        b"vkCmdEndDebugUtilsLabelEXT" => end_label as *const (),
        // SAFETY: the caller's arguments are passed on.
        _ => return unsafe { loader().get_instance_proc_addr(instance, name) },
    };
    // SAFETY: a function pointer, to be called by its own type again.
    Some(unsafe { std::mem::transmute::<*const (), Function>(ours) })
}

/// How many names and labels a little work gives.
fn counted(quiet: bool) -> (usize, usize) {
    let host = Host::new(Made::Full);
    let mut handles = host.handles();
    let raw = handles.instance.handle();
    *INSTANCE.lock().unwrap() = raw;
    let functions = ash::StaticFn { get_instance_proc_addr: instance_proc };
    // SAFETY: the host's own instance, and functions that pass on to it.
    handles.instance = unsafe { ash::Instance::load(&functions, raw) };
    NAMES.store(0, Ordering::Relaxed);
    LABELS.store(0, Ordering::Relaxed);
    let offer = if quiet {
        host.offer(handles, host.lock.clone())
    } else {
        host.offer_unquiet(handles, host.lock.clone())
    };
    let gpu = Accelerator::from_raw(offer, &config()).unwrap();
    let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    assert_eq!(gpu.run(|r| r.add(&x, &x)).unwrap().read::<f32>().unwrap(), [2.0; 64]);
    drop(x);
    gpu.close().unwrap();
    (NAMES.load(Ordering::Relaxed), LABELS.load(Ordering::Relaxed))
}

#[test]
fn objects_have_names_only_where_the_loader_is_quiet() {
    let (names, labels) = counted(false);
    assert_eq!(names, 0, "a name searches the loader's list of devices");
    assert!(labels > 0, "labels search nothing");
    let (names, labels) = counted(true);
    assert!(names > 0 && labels > 0, "{names} names, {labels} labels");
}

#[test]
fn hosts_come_and_go_while_objects_are_named() {
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..8 {
                    let host = Host::new(Made::Needed);
                    let gpu = host.accelerator();
                    for _ in 0..20 {
                        assert_eq!(gpu.zeros::<f32>([4]).unwrap().read::<f32>().unwrap(), [0.0; 4]);
                    }
                    gpu.close().unwrap();
                }
            });
        }
    });
}
