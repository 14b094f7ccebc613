//! Resizing, and pixels to channels and back.

use super::width::check_float;
use crate::error::Result;
use crate::ir::resize::Resize;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};
use crate::shape::pixels::{PixelShuffle, resized, squares};
use crate::shape::resize::{Coordinates, Interpolation, Resizing};

/// # Resizing
impl Recording {
    /// Channels to pixels: `[…, c · f · f, h, w]` to `[…, c, h · f, w · f]`, where channel c · f² + y · f + x has the
    /// pixels (y, x) of squares of f x f (`DepthToSpace` of ONNX in its mode CRD). Bits pass as in
    /// [`permute`](Recording::permute). Two dispatches.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 5, 2, 6, 3, 7, 4, 8], [4, 1, 2])?;
    /// let y = gpu.run(|r| r.pixel_shuffle(&x, 2))?;
    /// assert_eq!((y.shape(), y.read::<u32>()?), ([1, 2, 4].into(), vec![1, 2, 5, 6, 3, 4, 7, 8]));
    /// let back = gpu.run(|r| r.pixel_unshuffle(&y, 2))?;
    /// assert_eq!(back.read::<u32>()?, x.read::<u32>()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) unless there are three dimensions and the channels are a multiple
    /// of f · f.
    pub fn pixel_shuffle<'a>(&self, operand: impl IntoOperand<'a>, factor: usize) -> Result<Value> {
        let op = "pixel_shuffle";
        let input = self.resolve(op, operand)?;
        let [outer, c, h, w] = squares(op, self.kind(input).0, factor, PixelShuffle::ToPixels)?;
        let shape = resized(self.kind(input).0, [c, h * factor, w * factor]);
        self.all_or_nothing(|r| {
            // [n, y, x, h, w] to [n, h, y, w, x]: x behind w first, then y behind h.
            let by_x = r.reshape(r.handle(input), [outer * c * factor, factor, h * w])?;
            let by_x = r.permute(by_x, [0, 2, 1])?;
            let by_y = r.reshape(by_x, [outer * c, factor, h, w * factor])?;
            r.reshape(r.permute(by_y, [0, 2, 1, 3])?, shape)
        })
    }

    /// Pixels to channels, the other way round: `[…, c, h · f, w · f]` to `[…, c · f · f, h, w]`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) unless there are three dimensions and the last two are multiples
    /// of f.
    pub fn pixel_unshuffle<'a>(&self, operand: impl IntoOperand<'a>, factor: usize) -> Result<Value> {
        let op = "pixel_unshuffle";
        let input = self.resolve(op, operand)?;
        let [outer, c, h, w] = squares(op, self.kind(input).0, factor, PixelShuffle::ToChannels)?;
        let shape = resized(self.kind(input).0, [c * factor * factor, h, w]);
        self.all_or_nothing(|r| {
            let by_y = r.reshape(r.handle(input), [outer * c, h, factor, w * factor])?;
            let by_y = r.permute(by_y, [0, 2, 1, 3])?;
            let by_x = r.reshape(by_y, [outer * c * factor, h * w, factor])?;
            r.reshape(r.permute(by_x, [0, 2, 1])?, shape)
        })
    }

    /// The last dimensions, one to three, with other extents; f32. What lies before them are images and channels, each
    /// for itself. Neighbours beyond a border are the element at the border.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::{Coordinates, Interpolation};
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[0.0f32, 4.0], [1, 2])?;
    /// let linear = gpu.run(|r| r.resize(&x, &[4], Interpolation::Linear, Coordinates::HalfPixel))?;
    /// assert_eq!(linear.read::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
    /// let nearest = gpu.run(|r| r.resize(&x, &[3], Interpolation::Nearest, Coordinates::AlignCorners))?;
    /// assert_eq!(nearest.read::<f32>()?, [0.0, 0.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// Elements are found by whole numbers, so that no rounding chooses another neighbour. An infinity or NaN reaches
    /// all that it is a neighbour of, even where its weight is 0.
    ///
    /// # Accuracy
    ///
    /// Nearest and floor are exact: they move elements. Linear: at most 8 · 2⁻²⁴ · max|x| over the neighbours in one or
    /// two dimensions, 12 in three; cubic: 64 · 2⁻²⁴ · Σ|w · x|. The fraction comes of a division, for which Vulkan
    /// guarantees 2.5 ULP.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) unless there are one to three extents from 1 to 16384, and the
    /// operand's are; [`Error::Type`](crate::Error::Type) unless it is f32;
    /// [`Error::BindingTooLarge`](crate::Error::BindingTooLarge) if a binding of the device can't span the operand.
    pub fn resize<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        extents: &[usize],
        interpolation: Interpolation,
        coordinates: Coordinates,
    ) -> Result<Value> {
        let op = "resize";
        let input = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(input);
        check_float(op, "operand", dtype)?;
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let wide = r.widened(input)?;
                let result = r.resize(r.handle(wide), extents, interpolation, coordinates)?;
                r.cast(result, dtype)
            });
        }
        let (how, shape) = Resizing::plan(shape, extents, interpolation, coordinates)?;
        let output = self.produce(op, shape, dtype)?;
        self.push(self.label(op, output), Resize { how, input, output })?;
        Ok(self.handle(output))
    }
}
