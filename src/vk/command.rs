//! Command buffers and the descriptors they use. Both are recycled as one: a slot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ash::vk;
use smallvec::SmallVec;

use super::buffer::Buffer;
use super::check;
use super::debug::c_name;
use super::device::Device;
use super::pipeline::{Pipeline, SlotKind};
use super::process;
use super::query::{Stamp, TimestampStore};
use super::raw::HostCommands;
use crate::error::Result;

/// A command buffer with its pool and the descriptor sets it uses. `reset` makes it new without giving memory back.
#[derive(Debug)]
pub(crate) struct CommandSlot {
    raw: vk::CommandBuffer,
    /// Null if the command buffer is the host's.
    pool: vk::CommandPool,
    descriptors: DescriptorStore,
    timestamps: TimestampStore,
    /// Bound resources, which are kept until the commands are done.
    pipelines: Vec<Arc<Pipeline>>,
    device: Arc<Device>,
}

/// The two sides of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// Dispatches and copies before it, and dispatches and copies after it.
    Device,
    /// Dispatches and copies before it, and the host after the submission.
    Host,
    /// Whatever the host recorded before it, and dispatches and copies after it.
    Enter,
    /// Dispatches and copies before it, and whatever the host records after it, and the host after the submission.
    Leave,
}

/// An argument of a dispatch: a range of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl CommandSlot {
    pub(crate) fn new(device: &Arc<Device>) -> Result<CommandSlot> {
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(device.info.queue_family);
        // SAFETY: contracts 1 and 6.
        let pool = unsafe { device.raw.create_command_pool(&info, None) };
        let pool = check("vkCreateCommandPool", pool)?;
        device.grown.command_pools.fetch_add(1, Ordering::Relaxed);
        let mut slot = CommandSlot {
            raw: vk::CommandBuffer::null(),
            pool,
            descriptors: DescriptorStore::default(),
            timestamps: TimestampStore::default(),
            pipelines: Vec::new(),
            device: device.clone(),
        };
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        // SAFETY: contracts 1, 3 and 6.
        let raw = unsafe { device.raw.allocate_command_buffers(&info) };
        slot.raw = check("vkAllocateCommandBuffers", raw)?[0];
        Ok(slot)
    }

    /// Records into a command buffer of the host's, which begins, ends and submits it. What else is used is ours.
    pub(crate) fn adopt(device: &Arc<Device>, commands: HostCommands) -> CommandSlot {
        CommandSlot {
            raw: commands.buffer,
            pool: vk::CommandPool::null(),
            descriptors: DescriptorStore::default(),
            timestamps: TimestampStore::default(),
            pipelines: Vec::new(),
            device: device.clone(),
        }
    }

    pub(crate) fn raw(&self) -> vk::CommandBuffer {
        self.raw
    }

    /// Names the command buffer for tools.
    pub(crate) fn name(&self, name: &str) {
        self.device.name_object(self.raw, name);
    }

    /// Makes the slot ready to be recorded anew. Contract 4: nothing of it may be pending.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.let_go_of_pipelines();
        self.descriptors.reset(&self.device)?;
        self.timestamps.reset(&self.device);
        // SAFETY: contracts 3 and 4.
        let reset =
            unsafe { self.device.raw.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty()) };
        check("vkResetCommandPool", reset)
    }

    /// Pipelines may go from now on. Contract 4: nothing of it may be pending, and it is reset before it is recorded or
    /// submitted again.
    pub(crate) fn let_go_of_pipelines(&mut self) {
        self.pipelines.clear();
    }

    /// Begins a command buffer that is submitted once.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.begin_with(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)
    }

    /// Begins a command buffer that may be pending several times at once.
    pub(crate) fn begin_reusable(&mut self) -> Result<()> {
        self.begin_with(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
    }

    /// Begins a command buffer that is submitted again and again, one submission after the other.
    pub(crate) fn begin_replayed(&mut self) -> Result<()> {
        self.begin_with(vk::CommandBufferUsageFlags::empty())
    }

    fn begin_with(&mut self, flags: vk::CommandBufferUsageFlags) -> Result<()> {
        let info = vk::CommandBufferBeginInfo::default().flags(flags);
        // SAFETY: contracts 3, 4 and 6.
        check("vkBeginCommandBuffer", unsafe { self.device.raw.begin_command_buffer(self.raw, &info) })
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        // SAFETY: contract 3.
        check("vkEndCommandBuffer", unsafe { self.device.raw.end_command_buffer(self.raw) })
    }

    /// Orders everything before against everything after.
    pub(crate) fn barrier(&mut self, kind: Barrier) {
        use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
        let work = Stage::COMPUTE_SHADER | Stage::ALL_TRANSFER;
        let reads = Access::SHADER_READ | Access::TRANSFER_READ | Access::UNIFORM_READ;
        let writes = Access::SHADER_WRITE | Access::TRANSFER_WRITE;
        let anything = Access::MEMORY_READ | Access::MEMORY_WRITE;
        let ours = (work, writes);
        let (before, after) = match kind {
            Barrier::Device => (ours, (work, reads | writes)),
            Barrier::Host => (ours, (Stage::HOST, Access::HOST_READ | Access::HOST_WRITE)),
            Barrier::Enter => ((Stage::ALL_COMMANDS, anything), (work, reads | writes)),
            Barrier::Leave => (ours, (Stage::ALL_COMMANDS | Stage::HOST, anything)),
        };
        let barrier = [vk::MemoryBarrier2::default()
            .src_stage_mask(before.0)
            .src_access_mask(before.1)
            .dst_stage_mask(after.0)
            .dst_access_mask(after.1)];
        let info = vk::DependencyInfo::default().memory_barriers(&barrier);
        self.device.pipeline_barrier(self.raw, &info);
    }

    pub(crate) fn bind_pipeline(&mut self, pipeline: &Arc<Pipeline>) {
        self.pipelines.push(pipeline.clone());
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: contracts 2, 3 and 4.
        unsafe { self.device.raw.cmd_bind_pipeline(self.raw, point, pipeline.raw()) };
    }

    /// Binds the arguments, in the order of the pipeline's bindings.
    pub(crate) fn bind_arguments(&mut self, pipeline: &Pipeline, arguments: &[Bound<'_>]) -> Result<()> {
        const INLINE: usize = 8;
        if pipeline.slots().is_empty() {
            return Ok(());
        }
        let mut buffers: SmallVec<[vk::DescriptorBufferInfo; INLINE]> = SmallVec::new();
        let mut views: SmallVec<[vk::BufferView; INLINE]> = SmallVec::new();
        let masks_tails = pipeline.masks_tails();
        for (slot, argument) in pipeline.slots().iter().zip(arguments) {
            let Bound { buffer, offset, bytes } = *argument;
            let range = slot.kind.range_bytes(bytes, masks_tails);
            buffers.push(vk::DescriptorBufferInfo { buffer: buffer.raw(), offset: buffer.at(offset), range });
            views.push(match slot.kind {
                SlotKind::Texel(format) => buffer.texel_view(format, offset, range, masks_tails)?,
                SlotKind::Storage | SlotKind::Uniform => vk::BufferView::null(),
            });
        }
        let set = match self.device.push_descriptor {
            Some(_) => vk::DescriptorSet::null(),
            None => self.descriptors.allocate(&self.device, pipeline.set_layout())?,
        };
        let writes: SmallVec<[vk::WriteDescriptorSet<'_>; INLINE]> = pipeline
            .slots()
            .iter()
            .zip(buffers.iter().zip(&views))
            .map(|(slot, (buffer, view))| {
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(slot.binding)
                    .descriptor_type(slot.kind.descriptor_type());
                match slot.kind {
                    SlotKind::Texel(_) => write.texel_buffer_view(std::slice::from_ref(view)),
                    SlotKind::Storage | SlotKind::Uniform => write.buffer_info(std::slice::from_ref(buffer)),
                }
            })
            .collect();
        let (point, layout) = (vk::PipelineBindPoint::COMPUTE, pipeline.layout());
        if let Some(push) = &self.device.push_descriptor {
            // SAFETY: contracts 2, 3, 4 and 6.
            unsafe { push.cmd_push_descriptor_set(self.raw, point, layout, 0, &writes) };
        } else {
            // SAFETY: contracts 2 and 6; the set is fresh.
            unsafe { self.device.raw.update_descriptor_sets(&writes, &[]) };
            // SAFETY: contracts 2, 3 and 4.
            unsafe { self.device.raw.cmd_bind_descriptor_sets(self.raw, point, layout, 0, &[set], &[]) };
        }
        Ok(())
    }

    pub(crate) fn push_constants(&mut self, pipeline: &Pipeline, bytes: &[u8]) {
        if !bytes.is_empty() {
            let stage = vk::ShaderStageFlags::COMPUTE;
            // SAFETY: contracts 2, 3 and 7: the length was checked against the pipeline's range.
            unsafe { self.device.raw.cmd_push_constants(self.raw, pipeline.layout(), stage, 0, bytes) };
        }
    }

    pub(crate) fn dispatch(&mut self, groups: [u32; 3]) {
        let [x, y, z] = groups;
        // SAFETY: contracts 3, 7 and 8.
        unsafe { self.device.raw.cmd_dispatch(self.raw, x, y, z) };
    }

    pub(crate) fn copy(&mut self, from: Bound<'_>, to: Bound<'_>) {
        let region = vk::BufferCopy {
            src_offset: from.buffer.at(from.offset),
            dst_offset: to.buffer.at(to.offset),
            size: from.bytes.min(to.bytes),
        };
        if region.size > 0 {
            let (from, to) = (from.buffer.raw(), to.buffer.raw());
            // SAFETY: contracts 2, 3 and 4.
            unsafe { self.device.raw.cmd_copy_buffer(self.raw, from, to, &[region]) };
        }
    }

    /// Fills whole 4-byte words.
    pub(crate) fn fill(&mut self, to: Bound<'_>, word: u32) {
        if to.bytes > 0 {
            let (buffer, offset) = (to.buffer.raw(), to.buffer.at(to.offset));
            // SAFETY: contracts 2, 3 and 4; offsets and sizes are multiples of 4.
            unsafe { self.device.raw.cmd_fill_buffer(self.raw, buffer, offset, to.bytes, word) };
        }
    }

    /// Has the device write the time.
    pub(crate) fn timestamp(&mut self, stamp: Stamp) -> Result<()> {
        self.timestamps.write(&self.device, self.raw, stamp)
    }

    /// Makes the timestamps new before the same commands are submitted again. Contract 4: nothing of it may be pending.
    pub(crate) fn rearm(&self) {
        self.timestamps.rearm(&self.device);
    }

    /// The timestamps of this recording, in order. Contract 4: the slot's submission must be complete.
    pub(crate) fn read_timestamps(&self) -> Result<Vec<u64>> {
        self.timestamps.read(&self.device)
    }

    /// Whether anybody reads labels; they cost a string each.
    pub(crate) fn wants_labels(&self) -> bool {
        self.device.debug_utils().is_some()
    }

    /// Whether anybody reads the name of the command buffer.
    pub(crate) fn wants_name(&self) -> bool {
        self.wants_labels() && self.device.names_objects
    }

    pub(crate) fn begin_label(&mut self, text: &str) {
        if let Some(utils) = self.device.debug_utils() {
            let name = c_name(text);
            let label = vk::DebugUtilsLabelEXT::default().label_name(&name);
            // SAFETY: contracts 3 and 6.
            unsafe { utils.cmd_begin_debug_utils_label(self.raw, &label) };
        }
    }

    pub(crate) fn end_label(&mut self) {
        if let Some(utils) = self.device.debug_utils() {
            // SAFETY: contract 3; every begin has its end.
            unsafe { utils.cmd_end_debug_utils_label(self.raw) };
        }
    }
}

impl Drop for CommandSlot {
    fn drop(&mut self) {
        if process::is_forked() {
            return;
        }
        self.descriptors.destroy(&self.device);
        self.timestamps.destroy(&self.device);
        // SAFETY: contracts 1 and 4; frees its command buffer too. A null pool is none.
        unsafe { self.device.raw.destroy_command_pool(self.pool, None) };
    }
}

/// Descriptor sets for devices without push descriptors: pools that are added when the last one is full.
#[derive(Debug, Default)]
struct DescriptorStore {
    pools: Vec<vk::DescriptorPool>,
    current: usize,
}

impl DescriptorStore {
    fn allocate(&mut self, device: &Device, layout: vk::DescriptorSetLayout) -> Result<vk::DescriptorSet> {
        let layouts = [layout];
        loop {
            let fresh = self.current == self.pools.len();
            if fresh {
                self.pools.push(Self::make_pool(device, self.pools.len())?);
            }
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pools[self.current])
                .set_layouts(&layouts);
            // SAFETY: contracts 2, 3 and 6.
            match unsafe { device.raw.allocate_descriptor_sets(&info) } {
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) if !fresh => {
                    self.current += 1;
                }
                other => return Ok(check("vkAllocateDescriptorSets", other)?[0]),
            }
        }
    }

    /// The first pool is small, each further one twice as large, up to 4,096 sets.
    fn make_pool(device: &Device, nth: usize) -> Result<vk::DescriptorPool> {
        let sets = 64u32 << nth.min(6);
        let size = |ty| vk::DescriptorPoolSize { ty, descriptor_count: sets * 4 };
        let sizes = [
            size(vk::DescriptorType::STORAGE_BUFFER),
            size(vk::DescriptorType::STORAGE_TEXEL_BUFFER),
            size(vk::DescriptorType::UNIFORM_BUFFER),
        ];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes);
        // SAFETY: contracts 1 and 6.
        let pool = unsafe { device.raw.create_descriptor_pool(&info, None) };
        device.grown.descriptor_pools.fetch_add(1, Ordering::Relaxed);
        check("vkCreateDescriptorPool", pool)
    }

    fn reset(&mut self, device: &Device) -> Result<()> {
        for &pool in &self.pools {
            let flags = vk::DescriptorPoolResetFlags::empty();
            // SAFETY: contracts 3 and 4.
            check("vkResetDescriptorPool", unsafe { device.raw.reset_descriptor_pool(pool, flags) })?;
        }
        self.current = 0;
        Ok(())
    }

    fn destroy(&mut self, device: &Device) {
        for pool in self.pools.drain(..) {
            // SAFETY: contracts 1 and 4.
            unsafe { device.raw.destroy_descriptor_pool(pool, None) };
        }
    }
}
