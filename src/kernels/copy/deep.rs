//! Elementwise programs over more dimensions than the kernel walks over: inputs are copied until the rest has few
//! enough.

use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::elementwise::{Elementwise, ElementwiseInput, MAX_INPUTS, dense_strides};
use crate::ir::value::{Label, Origin, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::copy::strided::StridedCopy;
use crate::kernels::division::MOST_DIMS;
use crate::kernels::elementwise::space::Space;
use crate::shape::Shape;

/// The number of dimensions in which some inputs are walked over together.
fn dims(shape: &Shape, inputs: &[ElementwiseInput]) -> usize {
    Space::collapse(shape, inputs).extents.len()
}

/// The inputs that are copied, the one with the most dimensions first. A copy is dense, and dense inputs collapse to
/// one dimension.
fn deep_inputs(shape: &Shape, inputs: &[ElementwiseInput]) -> SmallVec<[usize; MAX_INPUTS]> {
    let (mut inputs, mut deep) =
        (SmallVec::<[ElementwiseInput; MAX_INPUTS]>::from_slice(inputs), SmallVec::new());
    while dims(shape, &inputs) > MOST_DIMS {
        let deepest = (0..inputs.len()).max_by_key(|&k| dims(shape, &inputs[k..=k])).unwrap_or_default();
        inputs[deepest] = ElementwiseInput { strides: dense_strides(shape), offset: 0, ..inputs[deepest] };
        deep.push(deepest);
    }
    deep
}

/// The inputs that are copied, with their copies.
fn deep_copies(elementwise: &Elementwise, shape: &Shape) -> SmallVec<[(usize, StridedCopy); 1]> {
    if !branch!("elementwise: high rank", shape.rank() > MOST_DIMS && shape.elements() > 0) {
        return SmallVec::new();
    }
    let copy = |k: usize| {
        let ElementwiseInput { value: source, offset, .. } = elementwise.inputs[k];
        let space = Space::collapse(shape, &elementwise.inputs[k..=k]);
        (k, StridedCopy { source, extents: space.extents, strides: space.strides[0], offset })
    };
    let deep = deep_inputs(shape, &elementwise.inputs);
    branch!("elementwise: deep", !deep.is_empty());
    deep.into_iter().map(copy).collect()
}

/// Refuses a program with an input of which more must be seen at once than a binding can span, to copy it or to read
/// it.
pub(crate) fn check(
    elementwise: &Elementwise,
    op: &'static str,
    values: &Values,
    catalog: &Catalog,
) -> Result<()> {
    let copies = deep_copies(elementwise, &elementwise.shape(values));
    if copies.is_empty() {
        return elementwise.check(op, values, catalog);
    }
    copies.iter().try_for_each(|(_, copy)| copy.check(op, values, catalog))?;
    let copied = |k: usize| copies.iter().any(|(deep, _)| *deep == k);
    let others = elementwise.inputs.iter().enumerate().filter(|(k, _)| !copied(*k)).map(|(_, input)| *input);
    Elementwise { inputs: others.collect(), ..elementwise.clone() }.check(op, values, catalog)
}

/// The same program over inputs that its kernel can walk over. Appends the copies of those that it can't.
pub(crate) fn in_few_dims(
    mut elementwise: Elementwise,
    label: &Label,
    values: &mut Values,
    catalog: &Catalog,
    out: &mut Vec<Command>,
) -> Result<Elementwise> {
    let shape = elementwise.shape(values);
    for (k, copy) in deep_copies(&elementwise, &shape) {
        let value = values.add_value(shape, values.value(copy.source).dtype, Origin::Produced);
        copy.lower(value, label, values, catalog, out)?;
        elementwise.inputs[k] = ElementwiseInput { value, strides: dense_strides(&shape), offset: 0 };
    }
    Ok(elementwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input whose dimensions of these numbers are there; the others are stretched.
    fn stretched(shape: &Shape, there: &[usize]) -> ElementwiseInput {
        let mut input = ElementwiseInput { value: 0, strides: Default::default(), offset: 0 };
        let mut stride = 1;
        for &d in there.iter().rev() {
            input.strides[d] = stride;
            stride *= shape.dims()[d] as u32;
        }
        input
    }

    #[test]
    fn inputs_are_copied_until_few_dimensions_are_left() {
        let shape = Shape::from([2; 8]);
        let all = stretched(&shape, &[0, 1, 2, 3, 4, 5, 6, 7]);
        let (alternating, inner) = (stretched(&shape, &[0, 2, 4, 6]), stretched(&shape, &[6, 7]));
        let deep = |inputs: &[ElementwiseInput]| deep_inputs(&shape, inputs).to_vec();
        assert_eq!(deep(&[all, inner]), [0usize; 0]);
        assert_eq!(deep(&[all, alternating]), [1]);
        assert_eq!(deep(&[alternating, inner]), [0]);
        let other = stretched(&shape, &[1, 3, 5, 7]);
        assert_eq!(deep(&[all, alternating, other, inner]), [2, 1]);
        let shape = Shape::from([2; 4]);
        assert_eq!(deep_inputs(&shape, &[stretched(&shape, &[0, 2])]).len(), 0);
    }
}
