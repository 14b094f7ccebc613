//! Elementwise programs over more dimensions than the kernel walks over: inputs are copied until the rest has few enough.

use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::elementwise::{MAX_INPUTS, Map, MapInput, dense_strides};
use crate::ir::value::{Label, Origin, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::copy::strided::StridedCopy;
use crate::kernels::division::MOST_DIMS;
use crate::kernels::elementwise::space::Space;
use crate::shape::Shape;

/// The number of dimensions in which some inputs are walked over together.
fn dims(shape: &Shape, inputs: &[MapInput]) -> usize {
    Space::collapse(shape, inputs).extents.len()
}

/// The inputs that are copied, the one with the most dimensions first. A copy is dense, and dense inputs collapse to one dimension.
fn deep_inputs(shape: &Shape, inputs: &[MapInput]) -> SmallVec<[usize; MAX_INPUTS]> {
    let (mut inputs, mut deep) = (SmallVec::<[MapInput; MAX_INPUTS]>::from_slice(inputs), SmallVec::new());
    while dims(shape, &inputs) > MOST_DIMS {
        let deepest = (0..inputs.len()).max_by_key(|&k| dims(shape, &inputs[k..=k])).unwrap_or_default();
        inputs[deepest] = MapInput { strides: dense_strides(shape), offset: 0, ..inputs[deepest] };
        deep.push(deepest);
    }
    deep
}

/// The inputs that are copied, with their copies.
fn deep_copies(map: &Map, shape: &Shape) -> SmallVec<[(usize, StridedCopy); 1]> {
    if !branch!("map: high rank", shape.rank() > MOST_DIMS && shape.elements() > 0) {
        return SmallVec::new();
    }
    let copy = |k: usize| {
        let MapInput { value: source, offset, .. } = map.inputs[k];
        let space = Space::collapse(shape, &map.inputs[k..=k]);
        (k, StridedCopy { source, extents: space.extents, strides: space.strides[0], offset })
    };
    let deep = deep_inputs(shape, &map.inputs);
    branch!("map: deep", !deep.is_empty());
    deep.into_iter().map(copy).collect()
}

/// Refuses a program with an input of which more must be seen at once than a binding can span, to copy it or to read it.
pub(crate) fn check(map: &Map, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
    let copies = deep_copies(map, &map.shape(values));
    if copies.is_empty() {
        return map.check(op, values, catalog);
    }
    copies.iter().try_for_each(|(_, copy)| copy.check(op, values, catalog))?;
    let copied = |k: usize| copies.iter().any(|(deep, _)| *deep == k);
    let others = map.inputs.iter().enumerate().filter(|(k, _)| !copied(*k)).map(|(_, input)| *input);
    Map { inputs: others.collect(), ..map.clone() }.check(op, values, catalog)
}

/// The same program over inputs that its kernel can walk over. Appends the copies of those that it can't.
pub(crate) fn in_few_dims(
    mut map: Map,
    label: &Label,
    values: &mut Values,
    catalog: &Catalog,
    out: &mut Vec<Command>,
) -> Result<Map> {
    let shape = map.shape(values);
    for (k, copy) in deep_copies(&map, &shape) {
        let value = values.add_value(shape, values.value(copy.source).dtype, Origin::Produced);
        copy.lower(value, label, values, catalog, out)?;
        map.inputs[k] = MapInput { value, strides: dense_strides(&shape), offset: 0 };
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input whose dimensions of these numbers are there; the others are stretched.
    fn stretched(shape: &Shape, there: &[usize]) -> MapInput {
        let mut input = MapInput { value: 0, strides: Default::default(), offset: 0 };
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
        let deep = |inputs: &[MapInput]| deep_inputs(&shape, inputs).to_vec();
        assert_eq!(deep(&[all, inner]), [0usize; 0]);
        assert_eq!(deep(&[all, alternating]), [1]);
        assert_eq!(deep(&[alternating, inner]), [0]);
        let other = stretched(&shape, &[1, 3, 5, 7]);
        assert_eq!(deep(&[all, alternating, other, inner]), [2, 1]);
        let shape = Shape::from([2; 4]);
        assert_eq!(deep_inputs(&shape, &[stretched(&shape, &[0, 2])]).len(), 0);
    }
}
