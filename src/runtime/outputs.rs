//! What a closure may return to have it kept.

use crate::error::Result;
use crate::runtime::recording::{Recording, Value};
use crate::runtime::tensor::Tensor;

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
