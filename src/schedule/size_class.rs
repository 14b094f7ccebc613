//! Sizes of blocks.

/// The smallest class, and the step between classes up to 2 KiB.
pub(crate) const GRAIN_BYTES: u64 = 256;

/// The size of the block that serves a request: multiples of 256 bytes up to 2 KiB, then eight classes per doubling.
/// So at most 255 bytes or an eighth of the request are wasted, whichever is more.
pub(crate) fn class_bytes(bytes: u64) -> u64 {
    let step = (bytes.max(1) - 1).checked_ilog2().map_or(0, |log| 1u64 << log >> 3);
    bytes.max(1).next_multiple_of(step.max(GRAIN_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_is_bounded_and_classes_are_few() {
        let mut last = 0;
        let mut classes = 0;
        for bytes in (0..1 << 20).step_by(37).chain((1 << 20..1 << 33).step_by(12_345_677)) {
            let class = class_bytes(bytes);
            assert!(class >= bytes.max(1) && class.is_multiple_of(256), "{bytes} -> {class}");
            assert!(class - bytes <= 256 || (class - bytes) * 8 <= bytes, "{bytes} -> {class}");
            assert_eq!(class_bytes(class), class, "a class serves itself");
            assert!(class >= last, "classes grow with sizes");
            classes += u32::from(class > last);
            last = class;
        }
        assert!(classes <= 8 + 8 * 23, "{classes} classes");
    }
}
