//! An application with a Vulkan device of its own lets Tidemill compute on it: the host's commands write a buffer, a
//! recording smooths it, the host's commands copy the result, and nothing waits on the CPU in between.
//!
//! cargo run --release --example embed_ash

#![allow(unsafe_code, reason = "the host's side is plain Vulkan")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "the host's side is plain Vulkan")]

use std::error::Error;
use std::sync::{Arc, Mutex};

use ash::vk;
use tidemill::interop::{BUFFER_USAGE, DeviceNeeds, HostBuffer, HostDevice, HostHandles, SemaphorePoint};
use tidemill::{Accelerator, Config, DType, Prewarm};

const N: usize = 1 << 16;
const BYTES: u64 = 4 * N as u64;

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: plain Vulkan: handles are valid, structs point to locals, and everything is destroyed in reverse order.
    unsafe {
        // 1. The host's instance and its choice of a device.
        let entry = ash::Entry::load()?;
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        let instance = entry.create_instance(&info, None)?;
        let physical = instance.enumerate_physical_devices()?[0];
        let families = instance.get_physical_device_queue_family_properties(physical);
        let computes = |f: &vk::QueueFamilyProperties| f.queue_flags.contains(vk::QueueFlags::COMPUTE);
        let family = families.iter().position(computes).ok_or("no queue for compute")? as u32;

        // 2. What Tidemill needs and can use, beside what the host itself wants.
        let needs = DeviceNeeds::of(&instance, physical);
        if !needs.missing().is_empty() {
            return Err(needs.missing().join(", ").into());
        }
        let mut core = vk::PhysicalDeviceFeatures::default();
        let (mut v11, mut v12, mut v13) = Default::default();
        needs.enable(&mut core, &mut v11, &mut v12, &mut v13);
        let extensions: Vec<_> = needs.extensions().iter().map(|name| name.as_ptr()).collect();
        let priorities = [1.0];
        let queues =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priorities)];
        let made_with = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .enabled_features(&core)
            .push_next(&mut v11)
            .push_next(&mut v12)
            .push_next(&mut v13);
        let device = instance.create_device(physical, &made_with, None)?;
        let queue = device.get_device_queue(family, 0);

        // 3. The accelerator on it. Host and engine take turns at the queue by this lock.
        let lock = Arc::new(Mutex::new(()));
        let handles = HostHandles {
            entry: entry.clone(),
            instance: instance.clone(),
            api_version: vk::API_VERSION_1_3,
            physical_device: physical,
            device: device.clone(),
            queue_family: family,
            queue,
        };
        let host = HostDevice::new(handles, &made_with, lock.clone());
        let gpu = Accelerator::from_raw(host, &Config::new().prewarm(Prewarm::Off))?;

        // 4. The host's own objects: a buffer that both use, one to look at, a timeline, commands.
        let shared = Memory::new(&instance, &device, physical, BUFFER_USAGE)?;
        let result = Memory::new(&instance, &device, physical, vk::BufferUsageFlags::TRANSFER_DST)?;
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let timeline =
            device.create_semaphore(&vk::SemaphoreCreateInfo::default().push_next(&mut kind), None)?;
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        let pool = device.create_command_pool(&pool, None)?;
        let commands = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(2);
        let commands = device.allocate_command_buffers(&commands)?;
        let submit = |nth: usize, wait: (vk::Semaphore, u64), value: u64| {
            let point = |(semaphore, value)| {
                let stage = vk::PipelineStageFlags2::ALL_COMMANDS;
                [vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(value).stage_mask(stage)]
            };
            let (waits, signals) = (point(wait), point((timeline, value)));
            let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands[nth])];
            let info = vk::SubmitInfo2::default()
                .wait_semaphore_infos(&waits)
                .command_buffer_infos(&buffers)
                .signal_semaphore_infos(&signals);
            let _guard = lock.lock();
            device.queue_submit2(queue, &[info], vk::Fence::null())
        };

        // 5. The host writes: a step, low on the left and high on the right. Signals 1.
        let begin = vk::CommandBufferBeginInfo::default();
        device.begin_command_buffer(commands[0], &begin)?;
        device.cmd_fill_buffer(commands[0], shared.buffer, 0, BYTES / 2, 0.0f32.to_bits());
        device.cmd_fill_buffer(commands[0], shared.buffer, BYTES / 2, BYTES / 2, 1.0f32.to_bits());
        device.end_command_buffer(commands[0])?;
        submit(0, (timeline, 0), 1)?;

        // 6. Tidemill waits for 1, and reads the host's buffer as a tensor.
        let x = gpu.wrap(HostBuffer::new(shared.buffer, BUFFER_USAGE, 0, BYTES), [N], DType::F32)?;
        let r = gpu.begin_recording()?;
        let left = r.slice(&x, 0..N - 2)?;
        let middle = r.slice(&x, 1..N - 1)?;
        let right = r.slice(&x, 2..N)?;
        let sum = r.add(left, middle)?;
        let sum = r.add(sum, right)?;
        let smooth = r.div_scalar(sum, 3.0)?;
        let smooth = r.keep(smooth)?;
        r.wait_for(SemaphorePoint::new(timeline, 1));
        drop(r.end_recording()?);

        // 7. The host waits for the result where it lies, and copies it. Signals 2.
        let memory = smooth.raw_buffer()?;
        let ready = memory.ready.ok_or("results have a point when they are ready")?;
        device.begin_command_buffer(commands[1], &begin)?;
        let region =
            vk::BufferCopy { src_offset: memory.offset_bytes, dst_offset: 0, size: memory.size_bytes };
        device.cmd_copy_buffer(commands[1], memory.buffer, result.buffer, &[region]);
        device.end_command_buffer(commands[1])?;
        submit(1, ready, 2)?;

        // 8. The only wait of the program, and what came out.
        let (semaphores, values) = ([timeline], [2]);
        let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        device.wait_semaphores(&wait, u64::MAX)?;
        let got = std::slice::from_raw_parts(result.mapped, N - 2);
        let expected = |i: usize| match i + 2 {
            end if end < N / 2 => 0.0,
            end if end == N / 2 => 1.0 / 3.0,
            end if end == N / 2 + 1 => 2.0 / 3.0,
            _ => 1.0,
        };
        assert!(got.iter().enumerate().all(|(i, x)| (x - expected(i)).abs() < 1e-6), "a smooth step");

        // 9. Tidemill goes first; its `Ok` says that nothing of it is left on the host's device.
        let name = gpu.device().name.clone();
        drop((memory, smooth, x));
        gpu.close()?;
        device.destroy_command_pool(pool, None);
        device.destroy_semaphore(timeline, None);
        for memory in [shared, result] {
            device.destroy_buffer(memory.buffer, None);
            device.free_memory(memory.memory, None);
        }
        device.destroy_device(None);
        instance.destroy_instance(None);
        println!("smoothed {N} elements on the host's own device, {name}: correct, with one wait");
    }
    Ok(())
}

/// A buffer in memory that the CPU sees.
struct Memory {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    mapped: *const f32,
}

impl Memory {
    /// # Safety
    ///
    /// The handles are valid and belong together.
    unsafe fn new(
        instance: &ash::Instance,
        device: &ash::Device,
        physical: vk::PhysicalDevice,
        usage: vk::BufferUsageFlags,
    ) -> Result<Memory, Box<dyn Error>> {
        // SAFETY: the caller vouches for the handles.
        unsafe {
            let buffer =
                device.create_buffer(&vk::BufferCreateInfo::default().size(BYTES).usage(usage), None)?;
            let requirements = device.get_buffer_memory_requirements(buffer);
            let types = instance.get_physical_device_memory_properties(physical);
            let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let fits = |i: &u32| {
                requirements.memory_type_bits & (1 << i) != 0
                    && types.memory_types[*i as usize].property_flags.contains(wanted)
            };
            let index = (0..types.memory_type_count).find(fits).ok_or("no memory that the CPU sees")?;
            let info = vk::MemoryAllocateInfo::default();
            let info = info.allocation_size(requirements.size).memory_type_index(index);
            let memory = device.allocate_memory(&info, None)?;
            device.bind_buffer_memory(buffer, memory, 0)?;
            let mapped = device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            Ok(Memory { buffer, memory, mapped: mapped.cast_const().cast() })
        }
    }
}
