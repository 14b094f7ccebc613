//! The host: instance, device, swapchain, and frames that are drawn from a tensor's memory.

use std::error::Error;
use std::sync::{Arc, Mutex};

use ash::vk;
use tidemill::interop::{DeviceNeeds, HostDevice, HostHandles, TensorBuffer};
use winit::raw_window_handle::{HasDisplayHandle, HasWindowHandle};
use winit::window::Window;

/// Frames that may be on their way at once.
const FRAMES: usize = 2;

/// A frame on its way.
#[derive(Default)]
struct Frame {
    commands: vk::CommandBuffer,
    acquired: vk::Semaphore,
    /// What the timeline reaches when it is drawn.
    done: u64,
    /// The picture that it draws from, kept until then.
    memory: Option<TensorBuffer>,
}

/// A device with a window to draw in.
pub(crate) struct Screen {
    frames: [Frame; FRAMES],
    /// The picture as an image: pixels are copied to it and stretched from it to the window.
    image: vk::Image,
    image_memory: vk::DeviceMemory,
    side: u32,
    timeline: vk::Semaphore,
    drawn: u64,
    pool: vk::CommandPool,
    swapchain: vk::SwapchainKHR,
    images: Vec<vk::Image>,
    /// By the swapchain's image: presenting waits for it.
    drawn_to: Vec<vk::Semaphore>,
    extent: vk::Extent2D,
    stale: bool,
    swapchains: ash::khr::swapchain::Device,
    queue: vk::Queue,
    lock: Arc<Mutex<()>>,
    device: ash::Device,
    physical: vk::PhysicalDevice,
    surface: vk::SurfaceKHR,
    surfaces: ash::khr::surface::Instance,
    instance: ash::Instance,
    _entry: ash::Entry,
}

impl Screen {
    /// Makes everything; the second is what Tidemill needs of it.
    pub(crate) fn new(window: &Window, side: u32) -> Result<(Screen, HostDevice), Box<dyn Error>> {
        let (display, handle) = (window.display_handle()?.as_raw(), window.window_handle()?.as_raw());
        // SAFETY: plain Vulkan: handles are valid, structs point to locals.
        unsafe {
            let entry = ash::Entry::load()?;
            let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let extensions = ash_window::enumerate_required_extensions(display)?;
            let info =
                vk::InstanceCreateInfo::default().application_info(&app).enabled_extension_names(extensions);
            let instance = entry.create_instance(&info, None)?;
            let surface = ash_window::create_surface(&entry, &instance, display, handle, None)?;
            let surfaces = ash::khr::surface::Instance::new(&entry, &instance);

            // A device that can draw, show and compute on one queue.
            let wanted = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE;
            let mut found = None;
            for physical in instance.enumerate_physical_devices()? {
                let families = instance.get_physical_device_queue_family_properties(physical);
                for (family, properties) in (0u32..).zip(&families) {
                    let shows = surfaces.get_physical_device_surface_support(physical, family, surface);
                    if properties.queue_flags.contains(wanted) && shows.unwrap_or(false) {
                        found = found.or(Some((physical, family)));
                    }
                }
            }
            let (physical, family) = found.ok_or("no device can draw to this window")?;

            // What the host wants (a swapchain), and what Tidemill needs and can use.
            let needs = DeviceNeeds::of(&instance, physical);
            if !needs.missing().is_empty() {
                return Err(needs.missing().join(", ").into());
            }
            let mut core = vk::PhysicalDeviceFeatures::default();
            let (mut v11, mut v12, mut v13) = Default::default();
            needs.enable(&mut core, &mut v11, &mut v12, &mut v13);
            let mut extensions = vec![ash::khr::swapchain::NAME.as_ptr()];
            extensions.extend(needs.extensions().iter().map(|name| name.as_ptr()));
            let priorities = [1.0];
            let queues = vk::DeviceQueueCreateInfo::default().queue_family_index(family);
            let queues = [queues.queue_priorities(&priorities)];
            let made_with = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&extensions)
                .enabled_features(&core)
                .push_next(&mut v11)
                .push_next(&mut v12)
                .push_next(&mut v13);
            let device = instance.create_device(physical, &made_with, None)?;
            let queue = device.get_device_queue(family, 0);
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

            let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
            let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family).flags(flags);
            let pool = device.create_command_pool(&pool, None)?;
            let buffers = vk::CommandBufferAllocateInfo::default().command_pool(pool);
            let buffers = device.allocate_command_buffers(&buffers.command_buffer_count(FRAMES as u32))?;
            let mut frames: [Frame; FRAMES] = Default::default();
            for (frame, commands) in frames.iter_mut().zip(buffers) {
                frame.commands = commands;
                frame.acquired = device.create_semaphore(&vk::SemaphoreCreateInfo::default(), None)?;
            }
            let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
            let timeline = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
            let timeline = device.create_semaphore(&timeline, None)?;
            let (image, image_memory) = make_image(&instance, &device, physical, side)?;
            let screen = Screen {
                frames,
                image,
                image_memory,
                side,
                timeline,
                drawn: 0,
                pool,
                swapchain: vk::SwapchainKHR::null(),
                images: Vec::new(),
                drawn_to: Vec::new(),
                extent: vk::Extent2D::default(),
                stale: true,
                swapchains: ash::khr::swapchain::Device::new(&instance, &device),
                queue,
                lock,
                device,
                physical,
                surface,
                surfaces,
                instance,
                _entry: entry,
            };
            Ok((screen, host))
        }
    }

    /// Draws a picture of 0xRRGGBB pixels, stretched to the window, when it is ready. Waits for the frame before the
    /// last.
    pub(crate) fn draw(&mut self, memory: TensorBuffer, size: [u32; 2]) -> Result<(), Box<dyn Error>> {
        if size.contains(&0) {
            // Minimised: there is nothing to draw to.
            return Ok(());
        }
        if self.stale || [self.extent.width, self.extent.height] != size {
            self.make_swapchain(size)?;
        }
        let nth = self.drawn as usize % FRAMES;
        self.wait(self.frames[nth].done)?;
        // Its memory may serve another picture from now on.
        self.frames[nth].memory = None;
        let (commands, acquired) = (self.frames[nth].commands, self.frames[nth].acquired);
        // SAFETY: plain Vulkan: handles are valid, and this frame's objects are no longer in use.
        unsafe {
            let next =
                self.swapchains.acquire_next_image(self.swapchain, u64::MAX, acquired, vk::Fence::null());
            let index = match next {
                Ok((index, suboptimal)) => {
                    self.stale = suboptimal;
                    index
                }
                Err(vk::Result::ERROR_OUT_OF_DATE_KHR) => {
                    self.stale = true;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let begin = vk::CommandBufferBeginInfo::default();
            let begin = begin.flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            self.device.begin_command_buffer(commands, &begin)?;
            self.record(commands, &memory, self.images[index as usize]);
            self.device.end_command_buffer(commands)?;

            let done = self.drawn + 1;
            let stage = vk::PipelineStageFlags2::ALL_COMMANDS;
            let point = |semaphore, value| {
                vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(value).stage_mask(stage)
            };
            let mut waits = vec![point(acquired, 0)];
            // The device waits for the simulation; the CPU does not.
            waits.extend(memory.ready.map(|(semaphore, value)| point(semaphore, value)));
            let drawn_to = self.drawn_to[index as usize];
            let signals = [point(drawn_to, 0), point(self.timeline, done)];
            let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
            let submit = vk::SubmitInfo2::default()
                .wait_semaphore_infos(&waits)
                .command_buffer_infos(&buffers)
                .signal_semaphore_infos(&signals);
            let (semaphores, swapchains, indices) = ([drawn_to], [self.swapchain], [index]);
            let present = vk::PresentInfoKHR::default()
                .wait_semaphores(&semaphores)
                .swapchains(&swapchains)
                .image_indices(&indices);
            // Tidemill's threads use the queue, too.
            let guard = self.lock.lock();
            self.device.queue_submit2(self.queue, &[submit], vk::Fence::null())?;
            self.drawn = done;
            self.frames[nth].done = done;
            self.frames[nth].memory = Some(memory);
            let presented = self.swapchains.queue_present(self.queue, &present);
            drop(guard);
            match presented {
                Ok(suboptimal) => self.stale |= suboptimal,
                Err(vk::Result::ERROR_OUT_OF_DATE_KHR) => self.stale = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The tensor's bytes to the image, the image to the window.
    ///
    /// # Safety
    ///
    /// The command buffer is being recorded.
    unsafe fn record(&self, commands: vk::CommandBuffer, memory: &TensorBuffer, target: vk::Image) {
        use vk::{AccessFlags2 as Access, ImageLayout as Layout};
        let layers =
            vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1);
        let barrier = |image, (from, before), (to, after)| {
            let range = vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR);
            vk::ImageMemoryBarrier2::default()
                .image(image)
                .old_layout(from)
                .new_layout(to)
                .src_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
                .src_access_mask(before)
                .dst_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
                .dst_access_mask(after)
                .subresource_range(range.level_count(1).layer_count(1))
        };
        let (undefined, none) = ((Layout::UNDEFINED, Access::TRANSFER_READ), Access::NONE);
        let written = (Layout::TRANSFER_DST_OPTIMAL, Access::TRANSFER_WRITE);
        let read = (Layout::TRANSFER_SRC_OPTIMAL, Access::TRANSFER_READ);
        let shown = (Layout::PRESENT_SRC_KHR, none);
        let corner = |width: u32, height: u32| vk::Offset3D { x: width as i32, y: height as i32, z: 1 };
        // SAFETY: valid handles; the caller vouches for the command buffer.
        unsafe {
            let place = |barriers: &[vk::ImageMemoryBarrier2<'_>]| {
                let info = vk::DependencyInfo::default().image_memory_barriers(barriers);
                self.device.cmd_pipeline_barrier2(commands, &info);
            };
            place(&[barrier(self.image, undefined, written), barrier(target, undefined, written)]);
            let extent = vk::Extent3D { width: self.side, height: self.side, depth: 1 };
            let copy = vk::BufferImageCopy::default()
                .buffer_offset(memory.offset_bytes)
                .image_subresource(layers)
                .image_extent(extent);
            self.device.cmd_copy_buffer_to_image(commands, memory.buffer, self.image, written.0, &[copy]);
            place(&[barrier(self.image, written, read)]);
            let blit = vk::ImageBlit::default()
                .src_subresource(layers)
                .src_offsets([vk::Offset3D::default(), corner(self.side, self.side)])
                .dst_subresource(layers)
                .dst_offsets([vk::Offset3D::default(), corner(self.extent.width, self.extent.height)]);
            let filter = vk::Filter::NEAREST;
            self.device.cmd_blit_image(commands, self.image, read.0, target, written.0, &[blit], filter);
            place(&[barrier(target, written, shown)]);
        }
    }

    fn wait(&self, value: u64) -> Result<(), vk::Result> {
        let (semaphores, values) = ([self.timeline], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: a valid timeline semaphore.
        unsafe { self.device.wait_semaphores(&info, u64::MAX) }
    }

    /// Waits for all frames, and gives the pictures' memory back to Tidemill.
    pub(crate) fn let_go(&mut self) -> Result<(), vk::Result> {
        self.wait(self.drawn)?;
        self.frames.iter_mut().for_each(|frame| frame.memory = None);
        Ok(())
    }

    /// A swapchain for the window as it is now.
    fn make_swapchain(&mut self, size: [u32; 2]) -> Result<(), Box<dyn Error>> {
        self.drop_swapchain_semaphores()?;
        // SAFETY: plain Vulkan: handles are valid, and nothing of the old swapchain is in use.
        unsafe {
            let (physical, surface) = (self.physical, self.surface);
            let abilities = self.surfaces.get_physical_device_surface_capabilities(physical, surface)?;
            let formats = self.surfaces.get_physical_device_surface_formats(physical, surface)?;
            let linear = |f: &&vk::SurfaceFormatKHR| f.format == vk::Format::B8G8R8A8_UNORM;
            let format = formats.iter().find(linear).or(formats.first()).ok_or("no format")?;
            self.extent = match abilities.current_extent {
                vk::Extent2D { width: u32::MAX, .. } => vk::Extent2D { width: size[0], height: size[1] },
                current => current,
            };
            let most = if abilities.max_image_count == 0 { u32::MAX } else { abilities.max_image_count };
            let old = self.swapchain;
            let info = vk::SwapchainCreateInfoKHR::default()
                .surface(surface)
                .min_image_count((abilities.min_image_count + 1).min(most))
                .image_format(format.format)
                .image_color_space(format.color_space)
                .image_extent(self.extent)
                .image_array_layers(1)
                .image_usage(vk::ImageUsageFlags::TRANSFER_DST)
                .pre_transform(abilities.current_transform)
                .composite_alpha(vk::CompositeAlphaFlagsKHR::OPAQUE)
                .present_mode(vk::PresentModeKHR::FIFO)
                .clipped(true)
                .old_swapchain(old);
            self.swapchain = self.swapchains.create_swapchain(&info, None)?;
            self.swapchains.destroy_swapchain(old, None);
            self.images = self.swapchains.get_swapchain_images(self.swapchain)?;
            for _ in &self.images {
                let semaphore = vk::SemaphoreCreateInfo::default();
                self.drawn_to.push(self.device.create_semaphore(&semaphore, None)?);
            }
            self.stale = false;
        }
        Ok(())
    }

    fn drop_swapchain_semaphores(&mut self) -> Result<(), vk::Result> {
        let _guard = self.lock.lock();
        // SAFETY: the queue is ours under the lock; after the wait nothing uses the semaphores.
        unsafe {
            self.device.queue_wait_idle(self.queue)?;
            for semaphore in self.drawn_to.drain(..) {
                self.device.destroy_semaphore(semaphore, None);
            }
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.drop_swapchain_semaphores();
        // The last of Tidemill's memory, if the application ended by an error.
        self.frames.iter_mut().for_each(|frame| frame.memory = None);
        // SAFETY: nothing is in use any more, and Tidemill has closed.
        unsafe {
            self.swapchains.destroy_swapchain(self.swapchain, None);
            for frame in &self.frames {
                self.device.destroy_semaphore(frame.acquired, None);
            }
            self.device.destroy_semaphore(self.timeline, None);
            self.device.destroy_image(self.image, None);
            self.device.free_memory(self.image_memory, None);
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
            self.surfaces.destroy_surface(self.surface, None);
            self.instance.destroy_instance(None);
        }
    }
}

/// An image that is copied to and from, with its memory.
///
/// # Safety
///
/// The handles are valid and belong together.
unsafe fn make_image(
    instance: &ash::Instance,
    device: &ash::Device,
    physical: vk::PhysicalDevice,
    side: u32,
) -> Result<(vk::Image, vk::DeviceMemory), Box<dyn Error>> {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::B8G8R8A8_UNORM)
        .extent(vk::Extent3D { width: side, height: side, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::TRANSFER_DST | vk::ImageUsageFlags::TRANSFER_SRC);
    // SAFETY: the caller vouches for the handles.
    unsafe {
        let image = device.create_image(&info, None)?;
        let requirements = device.get_image_memory_requirements(image);
        let types = instance.get_physical_device_memory_properties(physical);
        let local = vk::MemoryPropertyFlags::DEVICE_LOCAL;
        let fits = |i: &u32| {
            requirements.memory_type_bits & (1 << i) != 0
                && types.memory_types[*i as usize].property_flags.contains(local)
        };
        let index = (0..types.memory_type_count).find(fits).ok_or("no memory for the image")?;
        let memory = vk::MemoryAllocateInfo::default();
        let memory = memory.allocation_size(requirements.size).memory_type_index(index);
        let memory = device.allocate_memory(&memory, None)?;
        device.bind_image_memory(image, memory, 0)?;
        Ok((image, memory))
    }
}
