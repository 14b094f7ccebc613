//! Sorting, and what searches.

use pyo3::prelude::*;
use tidemill::args::Sort;

use super::operations;
use crate::errors::Result;
use crate::operand::{Operand, Value};
use crate::recording::{Recording, two_values, value};

fn how(axis: isize, descending: bool) -> Sort {
    let how = Sort::along(axis);
    if descending { how.descending() } else { how }
}

operations! {
    /// Where values would be inserted in a sorted vector; behind equal ones if so.
    #[pyo3(signature = (sorted, values, behind=false))]
    searchsorted(sorted, values; behind: bool);
}

#[pymethods]
impl Recording {
    /// Sorted along an axis.
    #[pyo3(signature = (x, axis=-1, *, descending=false))]
    fn sort(slf: &Bound<'_, Self>, x: Operand<'_>, axis: isize, descending: bool) -> Result<Value> {
        value(slf, |r| Ok(r.sort(x.get(), how(axis, descending))?))
    }

    /// The places from which sorted elements come; uint32.
    #[pyo3(signature = (x, axis=-1, *, descending=false))]
    fn argsort(slf: &Bound<'_, Self>, x: Operand<'_>, axis: isize, descending: bool) -> Result<Value> {
        value(slf, |r| Ok(r.argsort(x.get(), how(axis, descending))?))
    }

    /// Keys sorted along an axis, and the values in their order.
    #[pyo3(signature = (keys, values, axis=-1, *, descending=false))]
    fn sort_by_key(
        slf: &Bound<'_, Self>,
        keys: Operand<'_>,
        values: Operand<'_>,
        axis: isize,
        descending: bool,
    ) -> Result<(Value, Value)> {
        two_values(slf, |r| Ok(r.sort_by_key(keys.get(), values.get(), how(axis, descending))?.into()))
    }

    /// The k largest elements along an axis, in order, and their places.
    #[pyo3(signature = (x, k, axis=-1))]
    fn topk(slf: &Bound<'_, Self>, x: Operand<'_>, k: usize, axis: isize) -> Result<(Value, Value)> {
        two_values(slf, |r| Ok(r.topk(x.get(), k, axis)?.into()))
    }

    /// The elements whose mask is not 0, in front, and how many there are.
    fn compact(slf: &Bound<'_, Self>, x: Operand<'_>, mask: Operand<'_>) -> Result<(Value, Value)> {
        two_values(slf, |r| Ok(r.compact(x.get(), mask.get())?.into()))
    }

    /// The places of elements that are not 0, in front, and how many there are.
    fn nonzero(slf: &Bound<'_, Self>, x: Operand<'_>) -> Result<(Value, Value)> {
        two_values(slf, |r| Ok(r.nonzero(x.get())?.into()))
    }

    /// Different elements in order, how often each occurs, for each element the place of its value, and how many there
    /// are.
    fn unique(slf: &Bound<'_, Self>, x: Operand<'_>) -> Result<(Value, Value, Value, Value)> {
        let found = slf.get().with(|r| Ok(r.unique(x.get())?))?;
        let value = |value| Value { recording: slf.clone().unbind(), value };
        Ok((value(found.values), value(found.counts), value(found.inverse), value(found.count)))
    }
}
