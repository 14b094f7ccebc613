//! What problems run on: every variant of every family, and devices with little room for a dispatch.

use tidemill::Config;

use crate::harness::{Gpu, config, gpu_with};
use crate::seam::{Narrow, Seam};

/// A device, with variants that were asked for.
pub struct Device {
    pub name: &'static str,
    variants: &'static [(&'static str, &'static str)],
    /// Arranges for a device that can do less.
    poorer: Option<fn(&Seam)>,
    /// The accelerators, with fusion and without, while it is open; and what they run on.
    accelerators: Vec<(Gpu, bool)>,
    seam: Option<Seam>,
}

impl Device {
    /// Whether it has so little room that operations may be refused.
    pub fn is_poor(&self) -> bool {
        self.poorer.is_some()
    }

    /// Whether problems of this family run there: where only matmuls or convolutions have another variant, only those
    /// do.
    pub fn takes(&self, family: &str) -> bool {
        const OF_MATMULS: [&str; 5] = ["matmul", "vector", "padded output", "batches", "deep matmul"];
        const OF_CONVOLUTIONS: [&str; 2] = ["convolution", "odd convolution"];
        match self.variants {
            [("matmul", _)] => OF_MATMULS.contains(&family),
            [("conv2d", "buffer-tile-128" | "buffer-tile-128x64")] => OF_CONVOLUTIONS.contains(&family),
            _ => true,
        }
    }

    pub fn open(&mut self) {
        self.seam = self.poorer.map(|poorer| {
            let seam = Seam::take();
            poorer(&seam);
            seam
        });
        let config = || -> Config {
            let plain = self.seam.as_ref().map_or_else(config, Seam::config);
            self.variants.iter().fold(plain, |config, (family, name)| config.variant(family, name))
        };
        self.accelerators =
            [true, false].map(|fusion| (gpu_with(config().fusion(fusion)), fusion)).into_iter().collect();
    }

    /// The accelerators, and whether they fuse.
    pub fn accelerators(&self) -> &[(Gpu, bool)] {
        &self.accelerators
    }

    /// Checks what the accelerators and the seam have seen.
    pub fn close(&mut self) {
        self.accelerators.clear();
        if let Some(seam) = self.seam.take() {
            assert_eq!(seam.violations(), Vec::<String>::new(), "{}", self.name);
        }
    }
}

const fn device(name: &'static str, variants: &'static [(&'static str, &'static str)]) -> Device {
    Device { name, variants, poorer: None, accelerators: Vec::new(), seam: None }
}

const fn poorer(
    name: &'static str,
    variants: &'static [(&'static str, &'static str)],
    poorer: fn(&Seam),
) -> Device {
    Device { name, variants, poorer: Some(poorer), accelerators: Vec::new(), seam: None }
}

/// Grids wrap after 7 workgroups, and a binding spans 64 KiB.
fn narrow(seam: &Seam) {
    seam.narrow(Narrow { groups: [7, 65_535, 65_535], storage_range_bytes: 1 << 16 });
}

/// All of them. Each variant of each family is there: `every_variant_is_there` asks the accelerator for more.
pub fn all() -> Vec<Device> {
    const BUFFERS: &[(&str, &str)] = &[
        ("elementwise", "buffer-64x8"),
        ("reduce", "buffer-shuffle"),
        ("softmax", "buffer-shuffle"),
        ("norm", "buffer-shuffle"),
        ("matmul", "buffer-rows"),
        ("conv2d", "buffer-direct"),
        ("attention", "buffer-rows"),
    ];
    const GPUS: &[(&str, &str)] = &[
        ("elementwise", "buffer-256x1"),
        ("reduce", "buffer-shared"),
        ("softmax", "buffer-shared"),
        ("norm", "buffer-shared"),
        ("matmul", "buffer-shared"),
        ("conv2d", "buffer-tile"),
        ("attention", "buffer-tile"),
    ];
    vec![
        device("default variants", &[]),
        device("buffers", BUFFERS),
        device("for GPUs", GPUS),
        device(
            "texels, cramped",
            &[
                ("elementwise", "texel-64x8"),
                ("softmax", "texel-shuffle"),
                ("norm", "texel-shuffle"),
                ("matmul", "texel-rows-4"),
                ("conv2d", "texel-tile"),
                ("attention", "texel-rows-split"),
            ],
        ),
        device(
            "buffers, cramped",
            &[("matmul", "buffer-rows-16"), ("conv2d", "buffer-tile-64"), ("attention", "buffer-tile-split")],
        ),
        device("tiles of 32", &[("matmul", "buffer-tile-32")]),
        device("convolutions in tiles of 128 x 64", &[("conv2d", "buffer-tile-128x64")]),
        device("convolutions in tiles of 128", &[("conv2d", "buffer-tile-128")]),
        device("tiles of 64", &[("matmul", "buffer-tile-64")]),
        device("tiles of 128", &[("matmul", "buffer-tile-128")]),
        device("texels, tiles of 64", &[("matmul", "texel-tile-64")]),
        poorer("narrow", &[], narrow),
        poorer("narrow, buffers", BUFFERS, |seam| {
            narrow(seam);
            seam.edit_properties(|p| p.limits.min_storage_buffer_offset_alignment = 256);
        }),
        poorer("narrow, for GPUs", GPUS, narrow),
        poorer("short texel views", &[], |seam| {
            seam.edit_properties(|p| p.limits.max_texel_buffer_elements = 1 << 12);
        }),
        poorer("few texel bindings", &[], |seam| {
            seam.edit_properties(|p| p.limits.max_per_stage_descriptor_storage_images = 2);
        }),
        poorer("without shuffles", &[("conv2d", "texel-direct")], Seam::hide_shuffles),
        device("tiles of 128 x 64", &[("matmul", "buffer-tile-128x64")]),
        poorer("for GPUs, few registers", GPUS, |seam| seam.edit_properties(|p| p.vendor_id = 0x8086)),
    ]
}

#[test]
fn every_variant_is_there() {
    let gpu = gpu_with(config());
    let devices = all();
    let asked =
        |family: &str, name: &str| devices.iter().any(|device| device.variants.contains(&(family, name)));
    // The device's own are used where none is asked for.
    let missing: Vec<_> = gpu
        .variants()
        .into_iter()
        .filter(|variant| !variant.in_use && !asked(variant.family, variant.name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
