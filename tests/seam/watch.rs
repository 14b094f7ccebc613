//! What is submitted, command by command: hazards are found here, without a layer.
//!
//! While a test watches, every command buffer is noted as it is recorded: the bytes that each command touches, and
//! barriers. Submissions are then gone through in the queue's order. Two commands that touch a byte, one of them
//! writing it, must have a barrier between them, also where they are in different submissions: the engine orders by
//! barriers alone, so it does not count that the host may have waited meanwhile. What a submission writes must be ready
//! for the host at its end: the host waits for a submission, and reads mapped memory then.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ash::vk;
use ash::vk::AllocationCallbacks as Callbacks;
use tidemill::spirv::{Access, Reflection};

use super::table::{array, real};
use super::{enter, state};

/// Bytes of a buffer.
#[derive(Clone, Copy, Debug)]
struct Range {
    buffer: vk::Buffer,
    begin: u64,
    end: u64,
}

impl Range {
    fn new(buffer: vk::Buffer, begin: u64, bytes: u64) -> Range {
        Range { buffer, begin, end: begin.saturating_add(bytes) }
    }
}

#[derive(Clone, Debug)]
struct Touch {
    command: Arc<str>,
    range: Range,
    writes: bool,
}

impl Touch {
    fn conflicts_with(&self, earlier: &Touch) -> bool {
        (self.writes || earlier.writes)
            && self.range.buffer == earlier.range.buffer
            && self.range.begin < earlier.range.end
            && earlier.range.begin < self.range.end
    }
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { buffer, begin, end } = self.range;
        let verb = if self.writes { "write" } else { "read" };
        write!(f, "{verb} by {} of {begin}..{end} in {buffer:?}", self.command)
    }
}

/// What a command buffer does, one after the other.
enum Recorded {
    /// Everything before it, then everything after it.
    Barrier,
    /// Everything before it, then the host.
    HostBarrier,
    Command(Vec<Touch>),
}

#[derive(Default)]
struct Commands {
    pipeline: vk::Pipeline,
    bound: HashMap<u32, Range>,
    steps: Vec<Recorded>,
}

#[derive(Default)]
pub(super) struct Watch {
    modules: HashMap<vk::ShaderModule, Arc<Reflection>>,
    pipelines: HashMap<vk::Pipeline, Arc<Reflection>>,
    views: HashMap<vk::BufferView, Range>,
    recorded: HashMap<vk::CommandBuffer, Commands>,
    /// What was submitted since the last barrier.
    since_barrier: Vec<Touch>,
    /// How many commands were submitted.
    pub(super) commands: usize,
    pub(super) hazards: Vec<String>,
    /// What submissions wrote that was not ready for the host when they ended.
    pub(super) unready: Vec<String>,
}

/// Does this if a test watches.
fn watching(note: impl FnOnce(&mut Watch)) {
    state(|s| s.watch.as_mut().map(note));
}

impl Watch {
    fn push(&mut self, buffer: vk::CommandBuffer, step: Recorded) {
        self.recorded.entry(buffer).or_default().steps.push(step);
    }

    /// Goes through a command buffer. `written` is what its submission wrote, in no order with the host yet.
    fn submit(&mut self, buffer: vk::CommandBuffer, written: &mut Vec<Touch>) {
        let Some(commands) = self.recorded.get(&buffer) else { return };
        for step in &commands.steps {
            let touches = match step {
                Recorded::Barrier => {
                    self.since_barrier.clear();
                    continue;
                }
                Recorded::HostBarrier => {
                    written.clear();
                    continue;
                }
                Recorded::Command(touches) => touches,
            };
            written.extend(touches.iter().filter(|touch| touch.writes).cloned());
            self.commands += 1;
            for touch in touches {
                for earlier in self.since_barrier.iter().filter(|earlier| touch.conflicts_with(earlier)) {
                    self.hazards.push(format!("{touch} after {earlier}"));
                }
            }
            self.since_barrier.extend(touches.iter().cloned());
        }
    }
}

/// Notes a barrier if it orders all that dispatches and copies do, against what follows or against the host.
pub(super) unsafe fn barrier(buffer: vk::CommandBuffer, info: &vk::DependencyInfo<'_>) {
    use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
    let work = Stage::COMPUTE_SHADER | Stage::ALL_TRANSFER;
    let writes = Access::SHADER_WRITE | Access::TRANSFER_WRITE;
    let all = writes | Access::SHADER_READ | Access::TRANSFER_READ;
    let barriers = unsafe { array(info.p_memory_barriers, info.memory_barrier_count) };
    let orders = |stage: Stage, access: Access| {
        barriers.iter().any(|b| {
            b.src_stage_mask.contains(work)
                && b.src_access_mask.contains(writes)
                && b.dst_stage_mask.contains(stage)
                && b.dst_access_mask.contains(access)
        })
    };
    if orders(work, all) {
        watching(|w| w.push(buffer, Recorded::Barrier));
    }
    if orders(Stage::HOST, Access::HOST_READ) {
        watching(|w| w.push(buffer, Recorded::HostBarrier));
    }
}

pub(super) unsafe fn copy(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    regions: &[vk::BufferCopy],
) {
    watching(|w| {
        let command: Arc<str> = "copy".into();
        let touch = |buffer, offset, bytes, writes| Touch {
            command: command.clone(),
            range: Range::new(buffer, offset, bytes),
            writes,
        };
        let both = |r: &vk::BufferCopy| {
            [touch(from, r.src_offset, r.size, false), touch(to, r.dst_offset, r.size, true)]
        };
        w.push(buffer, Recorded::Command(regions.iter().flat_map(both).collect()));
    });
}

/// Notes what is bound. The tests' drivers all have push descriptors.
pub(super) unsafe fn bind(buffer: vk::CommandBuffer, writes: &[vk::WriteDescriptorSet<'_>]) {
    watching(|w| {
        for write in writes {
            let range = if write.descriptor_type == vk::DescriptorType::STORAGE_TEXEL_BUFFER {
                w.views[unsafe { &*write.p_texel_buffer_view }]
            } else {
                let info = unsafe { &*write.p_buffer_info };
                Range::new(info.buffer, info.offset, info.range)
            };
            w.recorded.entry(buffer).or_default().bound.insert(write.dst_binding, range);
        }
    });
}

pub(super) fn dispatch(buffer: vk::CommandBuffer, groups: [u32; 3]) {
    if groups.contains(&0) {
        return;
    }
    watching(|w| {
        let Some(commands) = w.recorded.get(&buffer) else { return };
        let Some(reflection) = w.pipelines.get(&commands.pipeline) else { return };
        let command: Arc<str> = "dispatch".into();
        let touches = reflection.bindings.iter().filter_map(|binding| {
            let range = *commands.bound.get(&binding.binding)?;
            Some(Touch { command: command.clone(), range, writes: binding.access != Access::ReadOnly })
        });
        let touches = touches.collect();
        w.push(buffer, Recorded::Command(touches));
    });
}

/// Goes through what is submitted.
pub(super) unsafe fn submit(infos: &[vk::SubmitInfo2<'_>]) {
    watching(|w| {
        for info in infos {
            let buffers = unsafe { array(info.p_command_buffer_infos, info.command_buffer_info_count) };
            let mut written = Vec::new();
            buffers.iter().for_each(|buffer| w.submit(buffer.command_buffer, &mut written));
            w.unready.extend(written.iter().map(|touch| format!("{touch} not ready for the host")));
        }
    });
}

pub(super) unsafe fn pipelines(infos: &[vk::ComputePipelineCreateInfo<'_>], made: &[vk::Pipeline]) {
    watching(|w| {
        for (info, pipeline) in infos.iter().zip(made) {
            if let Some(reflection) = w.modules.get(&info.stage.module) {
                w.pipelines.insert(*pipeline, reflection.clone());
            }
        }
    });
}

/// Its memory is another buffer's from now on, and so may its handle be.
pub(super) fn forget(buffer: vk::Buffer) {
    watching(|w| w.since_barrier.retain(|touch| touch.range.buffer != buffer));
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkBeginCommandBuffer(
    buffer: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    if let Some(error) = enter("vkBeginCommandBuffer", true) {
        return error;
    }
    watching(|w| {
        w.recorded.insert(buffer, Commands::default());
    });
    unsafe { real::vkBeginCommandBuffer(buffer, info) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCmdBindPipeline(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    watching(|w| w.recorded.entry(buffer).or_default().pipeline = pipeline);
    unsafe { real::vkCmdBindPipeline(buffer, point, pipeline) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCmdFillBuffer(
    buffer: vk::CommandBuffer,
    to: vk::Buffer,
    offset: u64,
    bytes: u64,
    word: u32,
) {
    watching(|w| {
        let touch = Touch { command: "fill".into(), range: Range::new(to, offset, bytes), writes: true };
        w.push(buffer, Recorded::Command(vec![touch]));
    });
    unsafe { real::vkCmdFillBuffer(buffer, to, offset, bytes, word) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCreateBufferView(
    device: vk::Device,
    info: *const vk::BufferViewCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::BufferView,
) -> vk::Result {
    if let Some(error) = enter("vkCreateBufferView", true) {
        return error;
    }
    let result = unsafe { real::vkCreateBufferView(device, info, c, out) };
    if result == vk::Result::SUCCESS {
        let (info, view) = unsafe { (&*info, *out) };
        watching(|w| {
            w.views.insert(view, Range::new(info.buffer, info.offset, info.range));
        });
    }
    result
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCreateShaderModule(
    device: vk::Device,
    info: *const vk::ShaderModuleCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::ShaderModule,
) -> vk::Result {
    if let Some(error) = enter("vkCreateShaderModule", true) {
        return error;
    }
    let result = unsafe { real::vkCreateShaderModule(device, info, c, out) };
    if result == vk::Result::SUCCESS {
        let (info, module) = unsafe { (&*info, *out) };
        let words = unsafe { array(info.p_code, (info.code_size / 4) as u32) };
        watching(|w| {
            let reflection = Reflection::parse(words).expect("a module that the engine has read");
            w.modules.insert(module, Arc::new(reflection));
        });
    }
    result
}
