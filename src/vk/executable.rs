//! The output of a driver's compiler for a pipeline: its own statistics, and the device's instructions.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;

use super::check;
use super::device::{Device, Uses};
use super::instance::Instance;
use super::physical::DeviceInfo;
use super::pipeline::Pipeline;
use crate::error::{Error, Result};

/// The compiled code of a pipeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executable {
    /// Names and values as the driver gives them.
    pub(crate) statistics: Vec<(String, f64)>,
    /// The device's instructions; empty if the driver keeps them to itself.
    pub(crate) assembly: String,
}

/// Whether the driver tells what it compiles to.
fn is_offered(instance: &Instance, info: &DeviceInfo) -> Result<bool> {
    // SAFETY: contract 1.
    let extensions = unsafe { instance.raw.enumerate_device_extension_properties(info.raw) };
    let extensions = check("vkEnumerateDeviceExtensionProperties", extensions)?;
    let name = ash::khr::pipeline_executable_properties::NAME;
    if !extensions.iter().any(|e| e.extension_name_as_c_str() == Ok(name)) {
        return Ok(false);
    }
    let mut executables = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
    let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut executables);
    // SAFETY: contracts 1 and 6.
    unsafe { instance.raw.get_physical_device_features2(info.raw, &mut features) };
    Ok(executables.pipeline_executable_info == vk::TRUE)
}

impl Device {
    /// A device whose pipelines can be looked into.
    pub(crate) fn with_executables(instance: Arc<Instance>, info: DeviceInfo) -> Result<Arc<Device>> {
        if !is_offered(&instance, &info)? {
            return Err(Error::NoDisassembly { device: info.name });
        }
        Device::new(instance, info, Uses { executables: true, ..Uses::default() })
    }
}

impl Pipeline {
    /// What the driver made of it; nothing unless the device was made for that.
    pub(crate) fn executable(&self) -> Result<Executable> {
        let Some(functions) = &self.device().executables else { return Ok(Executable::default()) };
        let info = vk::PipelineInfoKHR::default().pipeline(self.raw());
        // SAFETY: contracts 1, 6 and 7: the pipeline was made with both capture flags.
        let parts = unsafe { functions.get_pipeline_executable_properties(&info) };
        let parts = check("vkGetPipelineExecutablePropertiesKHR", parts)?;
        let mut found = Executable::default();
        for index in 0..parts.len() as u32 {
            let info = vk::PipelineExecutableInfoKHR::default().pipeline(self.raw()).executable_index(index);
            // SAFETY: as above.
            let statistics = unsafe { functions.get_pipeline_executable_statistics(&info) };
            let statistics = check("vkGetPipelineExecutableStatisticsKHR", statistics)?;
            found.statistics.extend(statistics.iter().map(named));
            found.assembly += &assembly(functions, &info)?;
        }
        Ok(found)
    }
}

fn named(statistic: &vk::PipelineExecutableStatisticKHR<'_>) -> (String, f64) {
    use vk::PipelineExecutableStatisticFormatKHR as Format;
    let name = statistic.name_as_c_str().map(|name| name.to_string_lossy().into_owned());
    let value = &statistic.value;
    let value = match statistic.format {
        // SAFETY: the format says which member is there, here and below.
        Format::FLOAT64 => unsafe { value.f64 },
        // SAFETY: as above.
        Format::INT64 => unsafe { value.i64 as f64 },
        // SAFETY: as above; a truth value is a number's low word.
        Format::BOOL32 => f64::from(unsafe { value.b32 }),
        // SAFETY: as above.
        _ => unsafe { value.u64 as f64 },
    };
    (name.unwrap_or_default(), value)
}

/// The representation that is called an assembly.
fn assembly(
    functions: &ash::khr::pipeline_executable_properties::Device,
    info: &vk::PipelineExecutableInfoKHR<'_>,
) -> Result<String> {
    const CALL: &str = "vkGetPipelineExecutableInternalRepresentationsKHR";
    let (device, ask) =
        (functions.device(), functions.fp().get_pipeline_executable_internal_representations_khr);
    let mut count = 0;
    // SAFETY: contracts 1, 6 and 7; without a place to write to, only the count is given.
    let counted = unsafe { ask(device, info, &mut count, std::ptr::null_mut()) };
    check(CALL, counted.result())?;
    let mut found = vec![vk::PipelineExecutableInternalRepresentationKHR::default(); count as usize];
    // SAFETY: as above; there is room for as many as were counted. Without places for texts, their sizes are given.
    let sized = unsafe { ask(device, info, &mut count, found.as_mut_ptr()) };
    check(CALL, sized.result())?;
    let mut texts: Vec<Vec<u8>> = found.iter().map(|one| vec![0; one.data_size]).collect();
    for (one, text) in found.iter_mut().zip(&mut texts) {
        one.p_data = text.as_mut_ptr().cast::<c_void>();
    }
    // SAFETY: as above; each text has the size that was asked for.
    let written = unsafe { ask(device, info, &mut count, found.as_mut_ptr()) };
    check(CALL, written.result())?;
    let is_assembly = |one: &vk::PipelineExecutableInternalRepresentationKHR<'_>| {
        one.is_text == vk::TRUE
            && one
                .name_as_c_str()
                .is_ok_and(|name| name.to_string_lossy().to_lowercase().contains("assembly"))
    };
    let texts = found.iter().zip(&texts).filter(|(one, _)| is_assembly(one));
    Ok(texts.map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()).collect())
}
