//! Tensors from nothing: counts and random numbers.

use crate::error::Result;
use crate::ir::copy::{Generate, Sequence};
use crate::runtime::recording::{Recording, Value};
use crate::shape::{DType, Element, Shape};

impl Recording {
    /// 0, 1, 2, … in row-major order. As f32, counts are rounded beyond 2^24, as f16 beyond 2^11, as bf16
    /// beyond 2^8; as narrow integers they wrap.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn iota<T: Element>(&self, shape: impl Into<Shape>) -> Result<Value> {
        let sequence = if T::DTYPE.is_float() { Sequence::IotaF32 } else { Sequence::IotaU32 };
        let wide = self.generate("iota", shape.into(), T::DTYPE.wide(), sequence, 0)?;
        self.cast(wide, T::DTYPE)
    }

    /// Random f32 numbers, uniform in [0, 1): multiples of 2^-24, by the counter-based generator Philox 4x32-10. Seed
    /// and place alone decide an element, and its bits are the same on every device: integers become floats exactly.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x: Vec<f32> = gpu.run(|r| r.random_uniform([1000], 7))?.read()?;
    /// assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn random_uniform(&self, shape: impl Into<Shape>, seed: u64) -> Result<Value> {
        self.generate("random_uniform", shape.into(), DType::F32, Sequence::Uniform, seed)
    }

    /// Random f32 numbers, normal with mean 0 and variance 1, by Box and Muller's transform of the numbers that
    /// [`random_uniform`](Recording::random_uniform) is made from.
    ///
    /// # Accuracy
    ///
    /// Within 2e-6 of the exact transform, in units of the larger of 1 and the result (measured on lavapipe: 2.2e-7;
    /// the division and the square root inside are the device's own, which Vulkan allows a few ULP each).
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn random_normal(&self, shape: impl Into<Shape>, seed: u64) -> Result<Value> {
        self.generate("random_normal", shape.into(), DType::F32, Sequence::Normal, seed)
    }

    pub(super) fn generate(
        &self,
        op: &'static str,
        shape: Shape,
        dtype: DType,
        sequence: Sequence,
        seed: u64,
    ) -> Result<Value> {
        let output = self.produce(op, shape, dtype)?;
        self.push(self.label(op, output), Generate { sequence, seed, output })?;
        Ok(self.handle(output))
    }
}
