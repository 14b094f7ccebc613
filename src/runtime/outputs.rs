//! Recordings that a closure fills, and what it may return to have it kept.

use crate::error::{Error, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::recording::{Recording, Value};
use crate::runtime::submission::Submission;
use crate::runtime::tensor::Tensor;

/// # Recordings by a closure
impl Accelerator {
    /// Begins a recording, lets the closure fill it, keeps the values it returns, and ends it. Waits for nothing.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32, 2.0], [2])?;
    /// let sum = gpu.run(|r| r.add(&a, &a))?;
    /// assert_eq!(sum.read::<f32>()?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the closure and of [`Recording::end_recording`].
    pub fn run<O: Outputs>(&self, record: impl FnOnce(&Recording) -> Result<O>) -> Result<O::Kept> {
        let (kept, _) = self.run_submitted(record)?;
        Ok(kept)
    }

    /// As [`run`](Accelerator::run), and gives the [`Submission`], too: to wait for, to await, or to profile.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32, 2.0], [2])?;
    /// let (sum, done) = gpu.run_submitted(|r| r.add(&a, &a))?;
    /// done.wait()?;
    /// assert_eq!(sum.read::<f32>()?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Accelerator::run).
    pub fn run_submitted<O: Outputs>(
        &self,
        record: impl FnOnce(&Recording) -> Result<O>,
    ) -> Result<(O::Kept, Submission)> {
        self.record_and_submit(record)
    }

    /// As [`run`](Accelerator::run), for a closure that fails with an error of the caller's own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32, 2.0], [2])?;
    /// let power = gpu.try_run(|r| {
    ///     let exponent: f32 = "2.5".parse()?; // an error that is not the engine's
    ///     Ok::<_, Box<dyn std::error::Error>>(r.pow(&a, exponent)?)
    /// })?;
    /// # let _ = power;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Accelerator::run).
    pub fn try_run<O: Outputs, E: From<Error>>(
        &self,
        record: impl FnOnce(&Recording) -> std::result::Result<O, E>,
    ) -> std::result::Result<O::Kept, E> {
        let (kept, _) = self.record_and_submit(record)?;
        Ok(kept)
    }

    fn record_and_submit<O: Outputs, E: From<Error>>(
        &self,
        record: impl FnOnce(&Recording) -> std::result::Result<O, E>,
    ) -> std::result::Result<(O::Kept, Submission), E> {
        let recording = self.begin_recording()?;
        let kept = record(&recording)?.keep(&recording)?;
        Ok((kept, recording.end_recording()?))
    }
}

/// What a closure given to [`Accelerator::run`](crate::Accelerator::run) may return: values, which become tensors.
pub trait Outputs {
    /// The same, kept.
    type Kept;

    /// Keeps all of them.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`](crate::Error::ForeignValue).
    fn keep(self, recording: &Recording) -> Result<Self::Kept>;
}

impl Outputs for Value {
    type Kept = Tensor;

    fn keep(self, recording: &Recording) -> Result<Tensor> {
        recording.keep(self)
    }
}

impl Outputs for Vec<Value> {
    type Kept = Vec<Tensor>;

    fn keep(self, recording: &Recording) -> Result<Vec<Tensor>> {
        self.into_iter().map(|value| recording.keep(value)).collect()
    }
}

impl<A: Outputs, B: Outputs> Outputs for (A, B) {
    type Kept = (A::Kept, B::Kept);

    fn keep(self, recording: &Recording) -> Result<Self::Kept> {
        Ok((self.0.keep(recording)?, self.1.keep(recording)?))
    }
}

impl<A: Outputs, B: Outputs, C: Outputs> Outputs for (A, B, C) {
    type Kept = (A::Kept, B::Kept, C::Kept);

    fn keep(self, recording: &Recording) -> Result<Self::Kept> {
        Ok((self.0.keep(recording)?, self.1.keep(recording)?, self.2.keep(recording)?))
    }
}

macro_rules! arrays {
    ($([$($name:ident),*] $count:literal)*) => {$(
        impl<O: Outputs> Outputs for [O; $count] {
            type Kept = [O::Kept; $count];

            fn keep(self, recording: &Recording) -> Result<Self::Kept> {
                let [$($name),*] = self;
                Ok([$($name.keep(recording)?),*])
            }
        }
    )*};
}

arrays! { [a] 1 [a, b] 2 [a, b, c] 3 [a, b, c, d] 4 [a, b, c, d, e] 5 [a, b, c, d, e, f] 6 [a, b, c, d, e, f, g] 7 [a, b, c, d, e, f, g, h] 8 }
