//! The list of kernel families. Each declares itself in its own folder; the catalog, the prewarm, the tuner and the
//! inspection of kernels go by this list.

use crate::kernels::axis::{norm, reduce, softmax};
use crate::kernels::catalog::Families;
use crate::kernels::variant::Winner;
use crate::kernels::{attention, conv2d, elementwise, matmul};

/// All of them. Users see this order.
pub(crate) const ALL: Families = &[
    &elementwise::family::FAMILY,
    &reduce::family::FAMILY,
    &softmax::family::FAMILY,
    &norm::FAMILY,
    &matmul::family::FAMILY,
    &conv2d::family::FAMILY,
    &attention::family::FAMILY,
];

/// The winner that a file names, if there is such a family, class and variant.
pub(crate) fn find_winner(family: &str, class: &str, variant: &str) -> Option<Winner> {
    let family = ALL.iter().find(|known| known.name() == family)?;
    let class = *family.classes().iter().find(|known| known.name() == class)?;
    let variant = family.variants().into_iter().map(|known| known.name()).find(|known| *known == variant)?;
    Some(Winner { family: family.name(), class, variant })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::catalog::Catalog;
    use crate::kernels::variant::Class;
    use crate::vk::physical::{DeviceInfo, DeviceKind};

    /// What the thread in the background makes ahead keeps a core busy on drivers that compile slowly.
    #[test]
    fn at_most_32_pipelines_are_made_ahead_on_any_kind_of_device() {
        for kind in [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Cpu] {
            let mut device = DeviceInfo::example(kind);
            // Large tensors are read through texel views on the devices that there are.
            device.limits.texel_elements = 1 << 27;
            let catalog = Catalog::new(ALL, &device, &[]).unwrap();
            let keys = catalog.prewarm().unwrap();
            let each: Vec<_> =
                ALL.iter().map(|family| (family.name(), family.prewarm(&catalog).unwrap().len())).collect();
            assert!((8..=32).contains(&keys.len()), "{} on {kind}: {each:?}", keys.len());
        }
    }

    /// Vulkan promises 128 invocations, and no shuffles.
    #[test]
    fn the_smallest_device_gets_variants_without_shuffles() {
        for kind in [DeviceKind::Discrete, DeviceKind::Cpu] {
            let mut device = DeviceInfo::example(kind);
            device.features.subgroup_shuffle = false;
            (device.limits.invocations, device.limits.local_size[0]) = (128, 128);
            let catalog = Catalog::new(ALL, &device, &[]).unwrap();
            for key in catalog.prewarm().unwrap() {
                let capabilities = &key.kernel.reflection().capabilities;
                let shuffles =
                    capabilities.iter().any(|c| c.to_string().starts_with("GroupNonUniformShuffle"));
                assert!(!shuffles, "{} on {kind}", key.kernel.name());
            }
        }
    }

    #[test]
    fn a_family_has_a_name_of_its_own_and_the_first_classes() {
        for (i, family) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|other| other.name() != family.name()), "{}", family.name());
            let classes = family.classes();
            assert!(!classes.is_empty() && Class::ALL.starts_with(classes), "{}", family.name());
        }
    }
}
