//! Loops over 64 images of 112 x 112, and from channels to pixels, as one writes them by hand.

use tidemill::Element;

use crate::cases::Array;

const IMAGES: usize = 64;
const SIDE: usize = 112;

/// Windows of 3 x 3, two apart, of which those at an edge reach one element beyond it.
pub(super) fn pool<R: Element>(
    x: &[Array],
    out: &mut Array,
    f: impl Fn(&[f32], &mut dyn Iterator<Item = usize>) -> R,
) {
    const TO: usize = SIDE / 2;
    windows::<R, TO>(x, out, f, |at| (2 * at).saturating_sub(1)..(2 * at + 2).min(SIDE));
}

/// Windows of 16 x 16, side by side.
pub(super) fn squares<R: Element>(
    x: &[Array],
    out: &mut Array,
    f: impl Fn(&[f32], &mut dyn Iterator<Item = usize>) -> R,
) {
    const TO: usize = SIDE / 16;
    windows::<R, TO>(x, out, f, |at| 16 * at..16 * at + 16);
}

fn windows<R: Element, const TO: usize>(
    x: &[Array],
    out: &mut Array,
    f: impl Fn(&[f32], &mut dyn Iterator<Item = usize>) -> R,
    reach: impl Fn(usize) -> std::ops::Range<usize>,
) {
    let images = x[0].of::<f32>().chunks_exact(SIDE * SIDE).take(IMAGES);
    for (image, out) in images.zip(out.of_mut::<R>().chunks_exact_mut(TO * TO)) {
        for (i, out) in out.iter_mut().enumerate() {
            let columns = reach(i % TO);
            let places = reach(i / TO).flat_map(|row| columns.clone().map(move |column| row * SIDE + column));
            *out = f(image, &mut { places });
        }
    }
}

pub(super) fn mean_at(x: &[f32], places: &mut dyn Iterator<Item = usize>) -> f32 {
    let (sum, count) = places.fold((0.0, 0), |(sum, count), at| (sum + x[at], count + 1));
    sum / count as f32
}

/// Where each element lies in 64 channels of 128 x 128, and where in 4 of 512 x 512.
pub(super) fn pixels(mut f: impl FnMut(usize, usize)) {
    for deep in 0..1 << 20 {
        let (channel, y, x) = (deep >> 14, deep >> 7 & 127, deep & 127);
        let (image, in_y, in_x) = (channel >> 4, channel >> 2 & 3, channel & 3);
        f(deep, (image << 18) + ((4 * y + in_y) << 9) + 4 * x + in_x);
    }
}
