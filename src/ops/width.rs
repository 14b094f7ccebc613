//! Packed elements where kernels work on words: they are widened before, which loses nothing, and narrowed after. Both
//! are elementwise programs, whose invocations store whole words.

use crate::error::{Error, Result};
use crate::ir::value::ValueId;
use crate::runtime::recording::Recording;
use crate::shape::DType;

/// Refuses what is not computed with as f32.
pub(super) fn check_float(op: &'static str, operand: &str, got: DType) -> Result<()> {
    if got.is_float() { Ok(()) } else { Err(Error::of_type(op, operand, DType::FLOATS, got)) }
}

/// Refuses what is no truth value.
pub(super) fn check_mask(op: &'static str, operand: &str, got: DType) -> Result<()> {
    let takes = [DType::U32, DType::Bool];
    if takes.contains(&got) { Ok(()) } else { Err(Error::of_type(op, operand, &takes, got)) }
}

/// Refuses truth values.
pub(super) fn check_number(op: &'static str, operand: &str, got: DType) -> Result<()> {
    if got != DType::Bool {
        return Ok(());
    }
    let takes: Vec<DType> = DType::ALL.iter().copied().filter(|dtype| *dtype != DType::Bool).collect();
    Err(Error::of_type(op, operand, &takes, got))
}

/// Refuses what is no integer.
pub(super) fn check_integer(op: &'static str, operand: &str, got: DType) -> Result<()> {
    if got.is_integer() {
        return Ok(());
    }
    let takes: Vec<DType> = DType::ALL.iter().copied().filter(|dtype| dtype.is_integer()).collect();
    Err(Error::of_type(op, operand, &takes, got))
}

impl Recording {
    /// The value with elements that are words: itself, or widened.
    pub(super) fn widened(&self, id: ValueId) -> Result<ValueId> {
        let wide = self.cast(self.handle(id), self.kind(id).1.wide())?;
        self.resolve("cast", wide)
    }

    /// Several values, likewise.
    pub(super) fn all_widened<const N: usize>(&self, ids: [ValueId; N]) -> Result<[ValueId; N]> {
        let mut wide = ids;
        for id in &mut wide {
            *id = self.widened(*id)?;
        }
        Ok(wide)
    }

    /// Whether any of them is packed.
    pub(super) fn any_packed(&self, ids: &[ValueId]) -> bool {
        ids.iter().any(|id| self.kind(*id).1.is_packed())
    }
}
