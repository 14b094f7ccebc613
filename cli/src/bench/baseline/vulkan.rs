//! Vulkan driven bare: everything made and recorded ahead, so that a run is a submit and a wait.
//!
//! # The contract
//!
//! Every `// SAFETY:` comment below cites one of these.
//!
//! 1. Handles are made in `new` from the one device here and destroyed in `drop`, children first; `drop` waits for
//!    the queue before.
//! 2. Create-info structs point to locals that live to the end of the call.
//! 3. `run` takes `&mut self` and waits for its submission, so outside of it nothing is pending: the mapping is the
//!    host's then, and the queue and the command buffer are used by one thread at a time.
//! 4. Vulkan 1.0 and a storage texel buffer of rgba32f are all that is used, and every device has them.

#![allow(unsafe_code, reason = "bare Vulkan is what this measures; the contract is above")]

use std::error::Error;

use ash::vk;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The shader of `add.comp`.
static ADD: &[u8] = include_bytes!("add.spv");
/// Elements that one workgroup of it adds.
const PER_GROUP: usize = 64 * 4;
/// Two operands, and two results in turns.
const BUFFERS: usize = 4;

/// A chain of adds in one command buffer: `a + b`, and then `+ b` on each result.
pub(crate) struct Bare {
    device: ash::Device,
    instance: ash::Instance,
    queue: vk::Queue,
    fence: vk::Fence,
    commands: vk::CommandBuffer,
    pool: vk::CommandPool,
    descriptors: vk::DescriptorPool,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    buffers: Vec<vk::Buffer>,
    views: Vec<vk::BufferView>,
    memory: vk::DeviceMemory,
    mapped: *mut f32,
    /// Elements from the start of one buffer to the start of the next.
    stride: usize,
    elements: usize,
    chain: usize,
    /// Holds the loader's library: dropped last.
    _entry: ash::Entry,
}

impl Bare {
    /// Makes everything on the device with this index. `a` and `b` are of equal length, a multiple of 256.
    pub(crate) fn new(device_index: usize, a: &[f32], b: &[f32], chain: usize) -> Result<Bare> {
        if a.len() != b.len() || !a.len().is_multiple_of(PER_GROUP) || a.is_empty() || chain == 0 {
            return Err(format!("the bare baseline can't add {} and {} elements", a.len(), b.len()).into());
        }
        // SAFETY: the loader's initialisation has no preconditions.
        let entry = unsafe { ash::Entry::load() }?;
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        // SAFETY: contracts 1 and 2.
        let instance = unsafe { entry.create_instance(&info, None) }?;
        // SAFETY: contract 1.
        let devices = unsafe { instance.enumerate_physical_devices() }?;
        let physical = *devices.get(device_index).ok_or("the device is gone")?;
        // SAFETY: contract 1.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let family = families.iter().position(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE));
        let family = family.ok_or("the device has no queue for compute")? as u32;
        let queues =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        // SAFETY: contracts 1, 2 and 4.
        let device = unsafe { instance.create_device(physical, &info, None) }?;
        // SAFETY: contract 1; the device was made with this queue.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let mut bare = Bare {
            device,
            instance,
            queue,
            fence: vk::Fence::null(),
            commands: vk::CommandBuffer::null(),
            pool: vk::CommandPool::null(),
            descriptors: vk::DescriptorPool::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            buffers: Vec::new(),
            views: Vec::new(),
            memory: vk::DeviceMemory::null(),
            mapped: std::ptr::null_mut(),
            stride: 0,
            elements: a.len(),
            chain,
            _entry: entry,
        };
        bare.make_memory(physical)?;
        bare.slice_mut(0).copy_from_slice(a);
        bare.slice_mut(1).copy_from_slice(b);
        bare.make_pipeline()?;
        let sets = bare.make_descriptors()?;
        bare.record(family, &sets)?;
        Ok(bare)
    }

    fn make_memory(&mut self, physical: vk::PhysicalDevice) -> Result<()> {
        let bytes = (4 * self.elements) as u64;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        for _ in 0..BUFFERS {
            // SAFETY: contracts 1 and 2.
            self.buffers.push(unsafe { self.device.create_buffer(&info, None) }?);
        }
        // SAFETY: contract 1. Equal buffers have equal requirements.
        let needs = unsafe { self.device.get_buffer_memory_requirements(self.buffers[0]) };
        // SAFETY: contract 1.
        let memory = unsafe { self.instance.get_physical_device_memory_properties(physical) };
        let required = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let allowed = |i: &usize| needs.memory_type_bits & (1 << i) != 0;
        let flags = |i: usize| memory.memory_types[i].property_flags;
        let local = |i: &usize| flags(*i).contains(vk::MemoryPropertyFlags::DEVICE_LOCAL);
        let index = (0..memory.memory_type_count as usize)
            .filter(|i| allowed(i) && flags(*i).contains(required))
            .max_by_key(|i| (local(i), std::cmp::Reverse(*i)))
            .ok_or("no memory for the host and the device")?;
        let stride = needs.size.next_multiple_of(needs.alignment);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(stride * BUFFERS as u64)
            .memory_type_index(index as u32);
        // SAFETY: contracts 1 and 2.
        self.memory = unsafe { self.device.allocate_memory(&info, None) }?;
        self.stride = stride as usize / 4;
        let map = vk::MemoryMapFlags::empty();
        // SAFETY: contract 1; the memory is host-visible and not mapped yet.
        let mapped = unsafe { self.device.map_memory(self.memory, 0, vk::WHOLE_SIZE, map) }?;
        self.mapped = mapped.cast();
        for (i, &buffer) in self.buffers.iter().enumerate() {
            // SAFETY: contract 1; the memory has room for it at this offset.
            unsafe { self.device.bind_buffer_memory(buffer, self.memory, stride * i as u64) }?;
            let info = vk::BufferViewCreateInfo::default()
                .buffer(buffer)
                .format(vk::Format::R32G32B32A32_SFLOAT)
                .range(bytes);
            // SAFETY: contracts 1, 2 and 4.
            self.views.push(unsafe { self.device.create_buffer_view(&info, None) }?);
        }
        Ok(())
    }

    fn slice_mut(&mut self, buffer: usize) -> &mut [f32] {
        // SAFETY: the mapping spans all buffers.
        let start = unsafe { self.mapped.add(buffer * self.stride) };
        // SAFETY: contract 3; the mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts_mut(start, self.elements) }
    }

    fn make_pipeline(&mut self) -> Result<()> {
        let binding = |i: u32, kind| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(i)
                .descriptor_type(kind)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let (texel, storage) = (vk::DescriptorType::STORAGE_TEXEL_BUFFER, vk::DescriptorType::STORAGE_BUFFER);
        let bindings = [binding(0, texel), binding(1, texel), binding(2, storage)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: contracts 1 and 2.
        self.set_layout = unsafe { self.device.create_descriptor_set_layout(&info, None) }?;
        let layouts = [self.set_layout];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        // SAFETY: contracts 1 and 2.
        self.layout = unsafe { self.device.create_pipeline_layout(&info, None) }?;
        let words = ash::util::read_spv(&mut std::io::Cursor::new(ADD))?;
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: contracts 1 and 2; `add.spv` is valid and stays inside its bindings.
        let module = unsafe { self.device.create_shader_module(&info, None) }?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
        let cache = vk::PipelineCache::null();
        // SAFETY: contracts 1, 2 and 4.
        let made = unsafe { self.device.create_compute_pipelines(cache, &infos, None) };
        // SAFETY: contract 1: a pipeline does not need its module once it is made.
        unsafe { self.device.destroy_shader_module(module, None) };
        self.pipeline = made.map_err(|(_, code)| code)?[0];
        Ok(())
    }

    /// Sets for the first add, and for the two directions of those that follow.
    fn make_descriptors(&mut self) -> Result<Vec<vk::DescriptorSet>> {
        // Which buffers are read, beside `b`, and which is written.
        const ROLES: [(usize, usize); 3] = [(0, 2), (2, 3), (3, 2)];
        let sets = ROLES.len() as u32;
        let size = |ty, each: u32| vk::DescriptorPoolSize { ty, descriptor_count: each * sets };
        let sizes =
            [size(vk::DescriptorType::STORAGE_TEXEL_BUFFER, 2), size(vk::DescriptorType::STORAGE_BUFFER, 1)];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes);
        // SAFETY: contracts 1 and 2.
        self.descriptors = unsafe { self.device.create_descriptor_pool(&info, None) }?;
        let layouts = [self.set_layout; ROLES.len()];
        let info =
            vk::DescriptorSetAllocateInfo::default().descriptor_pool(self.descriptors).set_layouts(&layouts);
        // SAFETY: contracts 1 and 2.
        let sets = unsafe { self.device.allocate_descriptor_sets(&info) }?;
        for (&set, (read, written)) in sets.iter().zip(ROLES) {
            let views = [self.views[read], self.views[1]];
            let range = [vk::DescriptorBufferInfo {
                buffer: self.buffers[written],
                offset: 0,
                range: vk::WHOLE_SIZE,
            }];
            let texels = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(0)
                .descriptor_type(vk::DescriptorType::STORAGE_TEXEL_BUFFER);
            let writes = [
                texels.texel_buffer_view(&views[..1]),
                texels.dst_binding(1).texel_buffer_view(&views[1..]),
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(2)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(&range),
            ];
            // SAFETY: contracts 1 and 2.
            unsafe { self.device.update_descriptor_sets(&writes, &[]) };
        }
        Ok(sets)
    }

    fn record(&mut self, family: u32, sets: &[vk::DescriptorSet]) -> Result<()> {
        // SAFETY: contract 1.
        self.fence = unsafe { self.device.create_fence(&vk::FenceCreateInfo::default(), None) }?;
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: contracts 1 and 2.
        self.pool = unsafe { self.device.create_command_pool(&info, None) }?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: contracts 1 and 2.
        self.commands = unsafe { self.device.allocate_command_buffers(&info) }?[0];
        let (device, commands, point) = (&self.device, self.commands, vk::PipelineBindPoint::COMPUTE);
        // SAFETY: contracts 2 and 3.
        unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }?;
        // SAFETY: contracts 1 and 3.
        unsafe { device.cmd_bind_pipeline(commands, point, self.pipeline) };
        let work = vk::PipelineStageFlags::COMPUTE_SHADER;
        let between = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE)];
        let none = vk::DependencyFlags::empty();
        for step in 0..self.chain {
            let set = [sets[if step == 0 { 0 } else { 2 - step % 2 }]];
            if step > 0 {
                // SAFETY: contracts 2 and 3.
                unsafe { device.cmd_pipeline_barrier(commands, work, work, none, &between, &[], &[]) };
            }
            // SAFETY: contracts 1 and 3.
            unsafe { device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &set, &[]) };
            // SAFETY: contract 3; the groups cover the buffers exactly.
            unsafe { device.cmd_dispatch(commands, (self.elements / PER_GROUP) as u32, 1, 1) };
        }
        let to_host = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let host = vk::PipelineStageFlags::HOST;
        // SAFETY: contracts 2 and 3.
        unsafe { device.cmd_pipeline_barrier(commands, work, host, none, &to_host, &[], &[]) };
        // SAFETY: contract 3.
        unsafe { device.end_command_buffer(commands) }?;
        Ok(())
    }

    /// Submits the command buffer and waits until it is done.
    pub(crate) fn run(&mut self) -> Result<()> {
        let commands = [self.commands];
        let info = [vk::SubmitInfo::default().command_buffers(&commands)];
        // SAFETY: contracts 2 and 3.
        unsafe { self.device.queue_submit(self.queue, &info, self.fence) }?;
        // SAFETY: contract 1.
        unsafe { self.device.wait_for_fences(&[self.fence], true, u64::MAX) }?;
        // SAFETY: contracts 1 and 3: nothing is pending now.
        unsafe { self.device.reset_fences(&[self.fence]) }?;
        Ok(())
    }

    /// What the last run gave.
    pub(crate) fn result(&mut self) -> &[f32] {
        let last = 3 - self.chain % 2;
        self.slice_mut(last)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let device = &self.device;
        // SAFETY: contracts 1 and 3.
        let _ = unsafe { device.device_wait_idle() };
        for &view in &self.views {
            // SAFETY: contract 1.
            unsafe { device.destroy_buffer_view(view, None) };
        }
        for &buffer in &self.buffers {
            // SAFETY: contract 1.
            unsafe { device.destroy_buffer(buffer, None) };
        }
        // SAFETY: contract 1, here and below; null handles are ignored.
        unsafe { device.free_memory(self.memory, None) };
        // SAFETY: as above.
        unsafe { device.destroy_pipeline(self.pipeline, None) };
        // SAFETY: as above.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_pool(self.descriptors, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) };
        // SAFETY: as above.
        unsafe { device.destroy_command_pool(self.pool, None) };
        // SAFETY: as above.
        unsafe { device.destroy_fence(self.fence, None) };
        // SAFETY: as above.
        unsafe { device.destroy_device(None) };
        // SAFETY: as above.
        unsafe { self.instance.destroy_instance(None) };
    }
}
