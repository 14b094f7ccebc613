//! Which dispatches convolutions become, without a device.

use super::*;
use crate::ir::command::Action;
use crate::ir::value::LabelName;
use crate::kernels::families;
use crate::kernels::matmul::shape::MOST_ITERATIONS;
use crate::kernels::modules::tile::TILE_M;
use crate::vk::physical::{DeviceInfo, DeviceKind};

/// Images of `channels` x `size`, to `rows` channels by a kernel of `taps`.
fn convolution(
    values: &mut Values,
    [images, channels, rows]: [u32; 3],
    size: [u32; 2],
    taps: [u32; 2],
    padding: [u32; 2],
) -> Convolution {
    let mut value = |extents: [u32; 4]| {
        values.add_value(Shape::from(extents.map(|e| e as usize)), DType::F32, Origin::Produced)
    };
    let result = [0, 1].map(|d| size[d] + 2 * padding[d] - taps[d] + 1);
    Convolution {
        input: value([images, channels, size[0], size[1]]),
        weights: value([channels, taps[0], taps[1], rows.next_multiple_of(4)]),
        images,
        groups: 1,
        channels,
        rows,
        size,
        taps,
        result,
        stride: [1; 2],
        dilation: [1; 2],
        padding,
        epilogue: Epilogue::default(),
        output: value([images, rows, result[0], result[1]]),
    }
}

/// A device with the least that Vulkan asks for, and a catalog of its own.
fn catalog(variant: &str, change: impl FnOnce(&mut DeviceInfo)) -> Catalog {
    let mut info = DeviceInfo::example(DeviceKind::Discrete);
    change(&mut info);
    Catalog::new(families::ALL, &info, &[("conv2d".to_owned(), variant.to_owned())])
        .expect("there is such a variant")
}

fn lower(c: &Convolution, values: &mut Values, catalog: &Catalog) -> Result<Vec<Command>> {
    let label = Label { op: LabelName::Op(OP), shape: Shape::default(), dtype: DType::F32 };
    let mut commands = Vec::new();
    c.lower(&label, values, catalog, &mut commands)?;
    Ok(commands)
}

/// The module of each dispatch, and the rows of its tile.
fn modules(commands: &[Command]) -> Vec<(String, Option<u32>)> {
    let of = |command: &Command| match &command.action {
        Action::Dispatch { pipeline, .. } => {
            let constant = pipeline.specialization.iter().find(|(known, _)| *known == TILE_M.id());
            Some((pipeline.kernel.name().to_owned(), constant.map(|(_, bits)| *bits)))
        }
        _ => None,
    };
    commands.iter().filter_map(of).collect()
}

fn roomy(info: &mut DeviceInfo) {
    (info.limits.invocations, info.limits.local_size) = (256, [256; 3]);
}

#[test]
fn tiles_are_large_where_there_are_enough_of_them_and_they_fit() {
    let mut values = Values::default();
    let many = convolution(&mut values, [8, 64, 64], [56, 56], [3, 3], [1, 1]);
    let few = convolution(&mut values, [1, 64, 64], [14, 14], [3, 3], [1, 1]);
    let mut tile = |c: &Convolution, catalog: &Catalog| {
        let commands = lower(c, &mut values, catalog).expect("fits");
        modules(&commands)[0].1
    };
    let all = catalog("buffer-tile", roomy);
    assert_eq!((tile(&many, &all), tile(&few, &all)), (Some(64), Some(32)));
    // 64 x 64 takes 256 invocations, and the least that Vulkan asks for is 128.
    let least = catalog("buffer-tile", |_| ());
    assert_eq!((tile(&many, &least), tile(&few, &least)), (Some(32), Some(32)));
    let asked = catalog("buffer-tile-64", |_| ());
    assert_eq!(tile(&many, &asked), Some(32));
}

#[test]
fn images_are_written_in_windows() {
    let mut values = Values::default();
    let c = convolution(&mut values, [7, 2, 9], [30, 31], [3, 3], [1, 1]);
    // An image of the result is 33,480 bytes: two fit, and begin where bindings may, or a little later.
    let catalog = catalog("buffer-tile", |info| info.limits.storage_range_bytes = 70_000);
    let commands = lower(&c, &mut values, &catalog).expect("fits");
    let written: Vec<_> = commands.iter().filter_map(|command| command.accesses.last()).collect();
    assert_eq!(written.len(), 4);
    let mut end = 0;
    for access in written {
        assert!(access.offset % catalog.limits.offset_alignment == 0 && access.bytes <= 70_000);
        assert!(access.offset <= end && end - access.offset < catalog.limits.offset_alignment);
        end = access.offset + access.bytes;
    }
    assert_eq!(end, 7 * 33_480);
    // One image that no binding spans is refused before anything is recorded.
    let shape = values.value(c.output).shape;
    assert!(check_result(shape, &catalog.limits).is_ok());
    let small = Limits { storage_range_bytes: 33_480, ..catalog.limits };
    let refused = check_result(shape, &small);
    assert!(matches!(refused, Err(Error::BindingTooLarge { bytes: 33_480, .. })), "{refused:?}");
}

/// Parts, units in each, and units in a step of the loop.
fn split(c: &Convolution, catalog: &Catalog) -> (u32, u32, u32) {
    let scheme = catalog.variant(&FAMILY, Class::of_convolution(c.rows, 1));
    let ((count, chunk), (_, step)) = match direct::Direct::new(c, scheme, catalog) {
        Some(conv) => (c.split(scheme, &conv, catalog), conv.units()),
        None => {
            let conv = tile::Tiles::new(c, scheme, catalog);
            (c.split(scheme, &conv, catalog), conv.units())
        }
    };
    (count, chunk, step)
}

#[test]
fn sums_are_split_as_long_as_their_parts_fit() {
    let mut values = Values::default();
    let c = convolution(&mut values, [1, 512, 8], [8, 8], [3, 3], [1, 1]);
    assert_eq!(split(&c, &catalog("buffer-tile", |_| ())).0, 8);
    // An image of a part is 2,048 bytes.
    let three = catalog("buffer-tile", |info| info.limits.storage_range_bytes = 3 * 2048 + 256);
    assert_eq!(split(&c, &three).0, 3);
}

#[test]
fn no_loop_is_too_long() {
    let mut values = Values::default();
    for variant in ["buffer-tile", "buffer-direct", "buffer-tile-64"] {
        let catalog = catalog(variant, roomy);
        for channels in [1, 300, 65_537, 2_000_003] {
            let c = convolution(&mut values, [1, channels, 8], [1, 4], [1, 1], [0, 0]);
            let (count, chunk, step) = split(&c, &catalog);
            let what = format!("{variant} {channels}: {count} x {chunk}, {step} at a time");
            assert!(chunk.div_ceil(step) <= MOST_ITERATIONS, "{what}");
            assert!(u64::from(count) * u64::from(chunk) >= u64::from(channels), "{what}");
            assert!(u64::from(count - 1) * u64::from(chunk) < u64::from(channels), "{what}");
        }
    }
}

#[test]
fn what_would_be_copied_mostly_as_zeros_goes_to_tiles() {
    let mut values = Values::default();
    let catalog = catalog("buffer-direct", |_| ());
    let mut kernel = |padding: [u32; 2], stride: [u32; 2]| {
        let mut c = convolution(&mut values, [1, 8, 8], [16, 16], [3, 3], padding);
        c.stride = stride;
        c.result = [0, 1].map(|d| (16 + 2 * padding[d] - 3) / stride[d] + 1);
        let commands = lower(&c, &mut values, &catalog).expect("fits");
        modules(&commands).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(kernel([1, 1], [1, 1]), ["matmul_pack.buffer", "conv_direct.buffer.plain"]);
    // Three rows of the result, of which two see zeros alone: 120,000 rows would be copied.
    assert_eq!(kernel([60_000, 1], [60_000, 1]), ["conv_tile.buffer.plain"]);
}
