//! Compute pipelines, and their cache on disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;

use super::device::Device;
use super::kernel::Kernel;
use super::physical::{DeviceInfo, Limits};
use super::{check, process};
use crate::disk::{self, fnv1a};
use crate::error::Result;
use crate::spirv::{TexelFormat, denormals};

/// The resource behind a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Storage,
    Uniform,
    Texel(vk::Format),
}

impl SlotKind {
    /// A texel view in the shader's format; `None` for formats that no tensor has.
    pub(crate) fn texel(format: TexelFormat) -> Option<SlotKind> {
        Some(SlotKind::Texel(match format {
            TexelFormat::Rgba32f => vk::Format::R32G32B32A32_SFLOAT,
            TexelFormat::Rgba32i => vk::Format::R32G32B32A32_SINT,
            TexelFormat::Rgba32ui => vk::Format::R32G32B32A32_UINT,
            TexelFormat::Rg32f => vk::Format::R32G32_SFLOAT,
            TexelFormat::Rg32ui => vk::Format::R32G32_UINT,
            TexelFormat::R32f => vk::Format::R32_SFLOAT,
            TexelFormat::R32i => vk::Format::R32_SINT,
            TexelFormat::R32ui => vk::Format::R32_UINT,
            _ => return None,
        }))
    }

    /// The bytes that come at a time: a texel, or what the shader makes of a buffer.
    pub(crate) fn grain_bytes(self) -> u64 {
        match self {
            SlotKind::Storage | SlotKind::Uniform => 1,
            SlotKind::Texel(vk::Format::R32_SFLOAT | vk::Format::R32_SINT | vk::Format::R32_UINT) => 4,
            SlotKind::Texel(vk::Format::R32G32_SFLOAT | vk::Format::R32G32_UINT) => 8,
            SlotKind::Texel(_) => 16,
        }
    }

    /// How many bytes a binding spans for a tensor of this many. Vulkan has no empty ones.
    pub(crate) fn range_bytes(self, tensor_bytes: u64, masks_tails: bool) -> u64 {
        let grain = if masks_tails { 16 } else { self.grain_bytes() };
        tensor_bytes.max(1).next_multiple_of(grain)
    }

    pub(crate) fn descriptor_type(self) -> vk::DescriptorType {
        match self {
            SlotKind::Storage => vk::DescriptorType::STORAGE_BUFFER,
            SlotKind::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
            SlotKind::Texel(_) => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
        }
    }
}

/// A binding of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) binding: u32,
    pub(crate) kind: SlotKind,
}

/// A compute pipeline with the layout that its shader asks for.
#[derive(Debug)]
pub(crate) struct Pipeline {
    raw: vk::Pipeline,
    layout: vk::PipelineLayout,
    set_layout: vk::DescriptorSetLayout,
    slots: Vec<Slot>,
    masks_tails: bool,
    device: Arc<Device>,
}

impl Pipeline {
    /// Makes a pipeline; `specialization` is (id, bits) for each constant that differs from the shader's default.
    pub(crate) fn new(
        device: &Arc<Device>,
        cache: &PipelineCache,
        kernel: &Kernel,
        slots: Vec<Slot>,
        specialization: &[(u32, u32)],
    ) -> Result<Pipeline> {
        let mut pipeline = Pipeline {
            raw: vk::Pipeline::null(),
            layout: vk::PipelineLayout::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            slots,
            masks_tails: kernel.is_embedded(),
            device: device.clone(),
        };
        pipeline.set_layout = create_set_layout(device, &pipeline.slots)?;
        pipeline.layout =
            create_layout(device, pipeline.set_layout, kernel.reflection().push_constant_bytes)?;
        let code = code_of(kernel, &device.info);
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        // SAFETY: contracts 1, 6 and 8.
        let module = unsafe { device.raw.create_shader_module(&info, None) };
        let module = check("vkCreateShaderModule", module)?;
        let entries: Vec<_> = specialization
            .iter()
            .enumerate()
            .map(|(i, &(id, _))| vk::SpecializationMapEntry {
                constant_id: id,
                offset: 4 * i as u32,
                size: 4,
            })
            .collect();
        let subgroups = Subgroups::of(kernel, specialization, &device.info);
        let data: Vec<u8> = specialization.iter().flat_map(|(_, bits)| bits.to_ne_bytes()).collect();
        let specialization = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let entry_point = super::debug::c_name(&kernel.reflection().entry_point);
        let mut required = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default();
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(&entry_point)
            .specialization_info(&specialization);
        if let Some(subgroups) = subgroups {
            required.required_subgroup_size = subgroups.size;
            stage = stage.flags(subgroups.flags()).push_next(&mut required);
        }
        let flags = match device.executables {
            Some(_) => {
                vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
                    | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR
            }
            None => vk::PipelineCreateFlags::empty(),
        };
        let infos =
            [vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(pipeline.layout)];
        // SAFETY: contracts 1, 2, 6, 7 and 8. The cache needs no external synchronization.
        let made = unsafe { device.raw.create_compute_pipelines(cache.raw, &infos, None) };
        // SAFETY: contract 1: a pipeline does not need its module once it is made.
        unsafe { device.raw.destroy_shader_module(module, None) };
        pipeline.raw = check("vkCreateComputePipelines", made.map_err(|(_, code)| code))?[0];
        device.name_object(pipeline.raw, kernel.name());
        cache.dirty.store(true, Ordering::Release);
        Ok(pipeline)
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn raw(&self) -> vk::Pipeline {
        self.raw
    }

    pub(crate) fn layout(&self) -> vk::PipelineLayout {
        self.layout
    }

    pub(crate) fn set_layout(&self) -> vk::DescriptorSetLayout {
        self.set_layout
    }

    /// Whether bindings may reach past a tensor's end, up to whole 16 bytes. A user's kernel may not see that: its
    /// `length()` must be the tensor's.
    pub(crate) fn masks_tails(&self) -> bool {
        self.masks_tails
    }

    /// Its bindings, in the order in which arguments are given.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

/// The engine's own modules ask for denormals where they can; what a user's kernel asks for is the user's.
fn code_of<'a>(kernel: &'a Kernel, info: &DeviceInfo) -> Cow<'a, [u32]> {
    match kernel.is_embedded() && info.features.preserves_denormals {
        true => Cow::Owned(denormals::preserving(kernel.words())),
        false => Cow::Borrowed(kernel.words()),
    }
}

fn create_set_layout(device: &Device, slots: &[Slot]) -> Result<vk::DescriptorSetLayout> {
    let bindings: Vec<_> = slots
        .iter()
        .map(|slot| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(slot.binding)
                .descriptor_type(slot.kind.descriptor_type())
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    let flags = match device.push_descriptor {
        Some(_) => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
        None => vk::DescriptorSetLayoutCreateFlags::empty(),
    };
    let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
    // SAFETY: contracts 1, 6 and 7.
    let set_layout = unsafe { device.raw.create_descriptor_set_layout(&info, None) };
    check("vkCreateDescriptorSetLayout", set_layout)
}

fn create_layout(
    device: &Device,
    set_layout: vk::DescriptorSetLayout,
    push_bytes: u32,
) -> Result<vk::PipelineLayout> {
    let ranges =
        [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: push_bytes }];
    let set_layouts = [set_layout];
    let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&set_layouts);
    if push_bytes > 0 {
        info = info.push_constant_ranges(&ranges);
    }
    // SAFETY: contracts 1, 6 and 7.
    let layout = unsafe { device.raw.create_pipeline_layout(&info, None) };
    check("vkCreatePipelineLayout", layout)
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if process::is_forked() {
            return;
        }
        // SAFETY: contracts 1 and 4; null handles are ignored.
        unsafe { self.device.raw.destroy_pipeline(self.raw, None) };
        // SAFETY: as above.
        unsafe { self.device.raw.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: as above.
        unsafe { self.device.raw.destroy_descriptor_set_layout(self.set_layout, None) };
    }
}

/// The subgroups that a pipeline asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subgroups {
    size: u32,
    full: bool,
}

impl Subgroups {
    /// What a kernel counts on is asked for wherever it can be: modules of SPIR-V 1.6 do not get it unasked where a
    /// device has several sizes. A workgroup that is less than a subgroup gets the smallest that holds it.
    fn of(kernel: &Kernel, specialization: &[(u32, u32)], info: &DeviceInfo) -> Option<Subgroups> {
        let Limits { subgroup_sizes: [least, _], subgroups, .. } = info.limits;
        let subgroup_size = info.architecture().lanes;
        let [x, y, z] = kernel.reflection().local_size_with(specialization);
        let size = (x * y * z).next_power_of_two().max(least).min(subgroup_size);
        let possible = info.features.subgroup_size_control && x * y * z <= size.saturating_mul(subgroups);
        let full = info.features.full_subgroups && x.is_multiple_of(size);
        (kernel.counts_on_subgroup_size() && possible).then_some(Subgroups { size, full })
    }

    fn flags(self) -> vk::PipelineShaderStageCreateFlags {
        match self.full {
            true => vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS,
            false => vk::PipelineShaderStageCreateFlags::empty(),
        }
    }
}

/// The driver's pipeline cache, kept in a file of its own per device and driver.
#[derive(Debug)]
pub(crate) struct PipelineCache {
    raw: vk::PipelineCache,
    file: Option<PathBuf>,
    /// Whether the file was there, meant for this device and whole.
    loaded: bool,
    dirty: AtomicBool,
    device: Arc<Device>,
}

/// Before the driver's own data: our mark, and the key of device and driver (the driver's own header can't tell two
/// versions of a software driver apart).
const MAGIC: &[u8; 8] = b"TIDEMPC1";

impl PipelineCache {
    /// Opens the cache; a file that is missing, foreign or corrupt is a miss.
    pub(crate) fn new(device: &Arc<Device>, folder: Option<&Path>) -> Result<PipelineCache> {
        let key = &device.info.cache_key;
        let file = folder.map(|folder| folder.join(format!("pipelines-{:016x}.bin", fnv1a(key.as_bytes()))));
        let stored = file.as_ref().and_then(|file| disk::read(file, disk::MOST_CACHE_BYTES));
        let data = stored.as_deref().and_then(|bytes| unwrap_file(bytes, key)).unwrap_or_default();
        let make = |data: &[u8]| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: contracts 1 and 6; the data was written by this driver: key and checksum say so.
            unsafe { device.raw.create_pipeline_cache(&info, None) }
        };
        let (raw, loaded) = match make(data) {
            // A driver that dislikes its own old data gets none.
            Err(_) if !data.is_empty() => (make(&[]), false),
            made => (made, !data.is_empty()),
        };
        let raw = check("vkCreatePipelineCache", raw)?;
        device.name_object(raw, "tidemill pipeline cache");
        Ok(PipelineCache { raw, file, loaded, dirty: AtomicBool::new(false), device: device.clone() })
    }

    /// The file it is kept in.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether an earlier process's file was taken up.
    pub(crate) fn was_loaded(&self) -> bool {
        self.loaded
    }

    /// Writes the file if pipelines were made since the last time. A disk that refuses costs the next start some
    /// time and nothing else, so it is not an error.
    pub(crate) fn save(&self) {
        let Some(file) = &self.file else { return };
        if !self.dirty.swap(false, Ordering::AcqRel) {
            return;
        }
        // SAFETY: contract 1.
        let Ok(data) = (unsafe { self.device.raw.get_pipeline_cache_data(self.raw) }) else { return };
        let bytes = wrap_file(&data, &self.device.info.cache_key);
        if bytes.len() as u64 <= disk::MOST_CACHE_BYTES {
            disk::write(file, &bytes);
        }
    }
}

impl Drop for PipelineCache {
    fn drop(&mut self) {
        self.save();
        // SAFETY: contract 1.
        unsafe { self.device.raw.destroy_pipeline_cache(self.raw, None) };
    }
}

fn wrap_file(data: &[u8], key: &str) -> Vec<u8> {
    let mut file = Vec::with_capacity(data.len() + key.len() + 28);
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&(key.len() as u32).to_le_bytes());
    file.extend_from_slice(key.as_bytes());
    file.extend_from_slice(&fnv1a(data).to_le_bytes());
    file.extend_from_slice(data);
    file
}

fn unwrap_file<'a>(file: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let rest = file.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let rest = (u32::from_le_bytes(*length) as usize == key.len()).then_some(rest)?;
    let rest = rest.strip_prefix(key.as_bytes())?;
    let (sum, data) = rest.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == fnv1a(data)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_file_is_taken_only_whole_and_for_its_own_device() {
        let file = wrap_file(b"data", "device|driver");
        assert_eq!(unwrap_file(&file, "device|driver"), Some(&b"data"[..]));
        assert_eq!(unwrap_file(&file, "device|drivex"), None);
        assert_eq!(unwrap_file(&file, "device"), None);
        for cut in 0..file.len() {
            assert_eq!(unwrap_file(&file[..cut], "device|driver"), None, "cut at {cut}");
        }
        let mut flipped = file.clone();
        flipped[file.len() - 1] ^= 1;
        assert_eq!(unwrap_file(&flipped, "device|driver"), None);
    }
}
