//! Devices with other subgroups, and what pipelines ask of them.

use ash::vk;

use super::state;

/// Walks along a chain of structs.
pub(super) unsafe fn find<T>(
    mut next: *const vk::BaseInStructure<'_>,
    kind: vk::StructureType,
) -> Option<*mut T> {
    while !next.is_null() {
        if unsafe { (*next).s_type } == kind {
            return Some(next.cast_mut().cast());
        }
        next = unsafe { (*next).p_next };
    }
    None
}

/// What the device says of its subgroups, as the test wants it.
pub(super) unsafe fn properties(out: &mut vk::PhysicalDeviceProperties2<'_>) {
    use vk::StructureType as Kind;
    let chain = out.p_next.cast();
    let (sizes, hidden) = state(|s| (s.subgroup_sizes, s.no_subgroup_operations));
    let found = unsafe { find(chain, Kind::PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES) };
    if let (Some([least, most]), Some(found)) = (sizes, found) {
        let found: &mut vk::PhysicalDeviceSubgroupSizeControlProperties<'_> = unsafe { &mut *found };
        (found.min_subgroup_size, found.max_subgroup_size) = (least, most);
    }
    let found = unsafe { find(chain, Kind::PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) };
    if let Some(found) = found {
        let found: &mut vk::PhysicalDeviceSubgroupProperties<'_> = unsafe { &mut *found };
        found.supported_operations &= !hidden;
    }
}

/// Notes the subgroups that each pipeline asks for.
pub(super) unsafe fn note(infos: &[vk::ComputePipelineCreateInfo<'_>]) {
    let kind = vk::StructureType::PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    for info in infos {
        let found = unsafe { find(info.stage.p_next.cast(), kind) };
        let size = found.map(|found: *mut vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo<'_>| {
            unsafe { &*found }.required_subgroup_size
        });
        let full = info.stage.flags.contains(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS);
        state(|s| s.subgroups_asked.push((size, full)));
    }
}
