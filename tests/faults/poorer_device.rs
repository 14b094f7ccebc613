//! Devices, drivers and layers that have less.

use ash::vk;
use tidemill::{Accelerator, DType, Dispatch, Error};

use crate::fixtures;
use crate::seam::Seam;

#[test]
fn ten_thousand_dispatches_without_push_descriptors() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_KHR_push_descriptor");
    let gpu = seam.gpu();
    assert!(!gpu.device().features.push_descriptors);
    for round in 0..4 {
        let pools = seam.calls("vkCreateDescriptorPool");
        let x = fixtures::ten_thousand_steps(&gpu);
        assert_eq!(x.read::<f32>().unwrap(), [10_000.0; 64]);
        let made = seam.calls("vkCreateDescriptorPool") - pools;
        // Two command slots take turns; each grows once.
        assert!(
            if round == 0 { made > 1 } else { round < 2 || made == 0 },
            "round {round}: {made} pools made"
        );
    }
    assert_eq!(seam.calls("vkCmdPushDescriptorSetKHR"), 0);
}

#[test]
fn limits_of_bindings_are_checked() {
    let seam = Seam::take();
    seam.edit_properties(|p| {
        p.limits.max_per_stage_descriptor_storage_images = 4;
        p.limits.max_per_stage_descriptor_storage_buffers = 4;
    });
    let gpu = seam.gpu();
    let device = gpu.device().name.clone();
    let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let r = gpu.begin_recording().unwrap();
    for (name, needs) in
        [("needs_texels", "5 storage texel bindings"), ("needs_buffers", "5 storage buffer bindings")]
    {
        let kernel = fixtures::kernel(name);
        let run = Dispatch::new(&kernel).input(&x).input(&x).input(&x).input(&x).output([4], DType::F32);
        let error = r.dispatch(run).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("kernel {name}: needs {needs}, which {device} does not support")
        );
    }
}

#[test]
fn an_unusable_device_says_why() {
    let seam = Seam::take();
    seam.edit_properties(|p| p.api_version = vk::make_api_version(0, 1, 2, 200));
    let error = Accelerator::new(&seam.config()).unwrap_err();
    assert!(matches!(error, Error::NoUsableDevice { .. }));
    let text = error.to_string();
    assert!(text.starts_with("no usable Vulkan device among 1: "), "{text}");
    assert!(text.ends_with(" (speaks Vulkan 1.2, 1.3 is needed)"), "{text}");
    drop(seam);

    let seam = Seam::take();
    for feature in ["timelineSemaphore", "synchronization2", "maintenance4"] {
        seam.hide_feature(feature);
    }
    seam.hide_queues();
    let text = Accelerator::new(&seam.config()).unwrap_err().to_string();
    let reasons = "(lacks the feature timelineSemaphore, lacks the feature synchronization2, \
                   lacks the feature maintenance4, has no queue for compute)";
    assert!(text.ends_with(reasons), "{text}");
    // Asked for by name, the same reasons.
    let wanted = seam.config().device_index(0);
    let error = Accelerator::new(&wanted).unwrap_err();
    assert!(matches!(error, Error::DeviceNotFound { .. }));
    assert!(error.to_string().ends_with(reasons), "{error}");
    assert_eq!(seam.live(), (0, 0));
    drop(seam);

    let seam = Seam::take();
    seam.fail("vkEnumeratePhysicalDevices", 0, 1, vk::Result::ERROR_INITIALIZATION_FAILED);
    let text = Accelerator::new(&seam.config()).unwrap_err().to_string();
    let begin = "no Vulkan device: the drivers that the loader found have none; ";
    let end = "; install the driver of this machine's GPU, or Mesa's software driver, which needs no GPU (Debian/Ubuntu and \
               Fedora `mesa-vulkan-drivers`)";
    assert!(text.starts_with(begin) && text.ends_with(end), "{text}");
    assert!(
        text.contains("VK_DRIVER_FILES is") || text.contains("VK_ICD_FILENAMES is") || text.contains("icd.d")
    );
    seam.fail("vkEnumerateDeviceExtensionProperties", 0, 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let text = Accelerator::new(&seam.config()).unwrap_err().to_string();
    assert!(
        text.ends_with("(vkEnumerateDeviceExtensionProperties failed with ERROR_OUT_OF_HOST_MEMORY)"),
        "{text}"
    );
}

#[test]
fn a_missing_layer_or_driver_is_named() {
    let seam = Seam::take();
    seam.fail("vkCreateInstance", 0, 1, vk::Result::ERROR_LAYER_NOT_PRESENT);
    let error = Accelerator::new(&seam.config()).unwrap_err();
    assert!(matches!(error, Error::LayerMissing { .. }));
    assert_eq!(
        error.to_string(),
        "the layer VK_LAYER_KHRONOS_validation is not installed; Debian/Ubuntu: `vulkan-validationlayers`, \
         elsewhere: the Vulkan SDK; or turn validation off"
    );
    seam.fail("vkCreateInstance", 0, 1, vk::Result::ERROR_INCOMPATIBLE_DRIVER);
    let error = Accelerator::new(&seam.config()).unwrap_err();
    assert!(matches!(error, Error::NoDriver { .. }), "{error}");
    seam.fail("vkCreateDevice", 0, 1, vk::Result::ERROR_TOO_MANY_OBJECTS);
    let error = Accelerator::new(&seam.config()).unwrap_err();
    assert!(matches!(error, Error::Vulkan { call: "vkCreateDevice", .. }));
    assert_eq!(error.to_string(), "vkCreateDevice failed with ERROR_TOO_MANY_OBJECTS");
    assert_eq!(seam.live(), (0, 0));
}

/// A kernel that declares one capability more than it uses.
#[allow(unsafe_code, reason = "a kernel of the tests' own")]
fn declaring(capability: u32) -> tidemill::Kernel {
    let mut words = fixtures::words("scale");
    words.splice(5..5, [2 << 16 | 17, capability]);
    // SAFETY: the fixture is valid, and a declaration changes nothing about what it does.
    unsafe { tidemill::Kernel::from_spirv("declares", &words) }.unwrap()
}

#[test]
fn each_kind_of_subgroup_operations_is_checked_for_itself() {
    use vk::SubgroupFeatureFlags as Flags;
    // The numbers of SPIR-V's capabilities.
    let kinds = [
        (62, "Vote", Flags::VOTE),
        (63, "Arithmetic", Flags::ARITHMETIC),
        (64, "Ballot", Flags::BALLOT),
        (65, "Shuffle", Flags::SHUFFLE),
        (66, "ShuffleRelative", Flags::SHUFFLE_RELATIVE),
        (67, "Clustered", Flags::CLUSTERED),
        (68, "Quad", Flags::QUAD),
    ];
    let all = kinds.iter().fold(Flags::empty(), |all, (_, _, flag)| all | *flag);
    // Nothing hidden but one of them; and then all.
    let mut served = 0;
    for hidden in kinds.iter().map(|(_, _, flag)| *flag).chain([all]) {
        let seam = Seam::take();
        seam.hide_subgroup_operations(hidden);
        let gpu = seam.gpu();
        let (device, f) = (gpu.device().name.clone(), gpu.device().features);
        let has = [
            f.subgroup_vote,
            f.subgroup_arithmetic,
            f.subgroup_ballot,
            f.subgroup_shuffle,
            f.subgroup_shuffle_relative,
            f.subgroup_clustered,
            f.subgroup_quad,
        ];
        let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
        for ((capability, name, flag), has) in kinds.into_iter().zip(has) {
            assert!(!(has && hidden.contains(flag)), "{name}");
            let kernel = declaring(capability);
            let run = Dispatch::new(&kernel).input(&x).output([4], DType::F32).push(&[2.0f32]);
            let result = gpu.run(|r| Ok(r.dispatch(run.specialize(0, 32u32))?[0]));
            if has {
                served += 1;
                assert_eq!(result.unwrap().read::<f32>().unwrap(), [2.0; 4], "{name}");
                continue;
            }
            let expected = format!(
                "kernel declares: needs the SPIR-V capability GroupNonUniform{name}, which {device} does not support"
            );
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }
    assert!(served > 7, "this driver has hardly any");
}
