//! Reading and writing by index.

use super::operations;

operations! {
    /// Along an axis, the parts that the indices name.
    #[pyo3(signature = (x, indices, axis=0))]
    gather(x, indices; axis: isize);
    /// Along an axis, an element for each index.
    #[pyo3(signature = (x, indices, axis=-1))]
    gather_elements(x, indices; axis: isize);
    /// Parts by indices of several dimensions.
    gather_nd(x, indices; );
    /// x with the updates in the places that the indices name.
    #[pyo3(signature = (x, indices, updates, axis=0))]
    scatter(x, indices, updates; axis: isize);
    /// x with the updates added in these places.
    #[pyo3(signature = (x, indices, updates, axis=0))]
    scatter_add(x, indices, updates; axis: isize);
    /// The larger of x and the updates in these places.
    #[pyo3(signature = (x, indices, updates, axis=0))]
    scatter_max(x, indices, updates; axis: isize);
    /// The smaller of x and the updates in these places.
    #[pyo3(signature = (x, indices, updates, axis=0))]
    scatter_min(x, indices, updates; axis: isize);
    /// Sums of rows by the segments that they belong to.
    segment_sum(x, ids; segments: usize);
    /// How often each number occurs; uint32.
    bincount(x; bins: usize);
    /// The sums of the weights of each number.
    bincount_weighted(x, weights; bins: usize);
    /// 1 in the place that the index names, 0 elsewhere; uint32.
    one_hot(indices; classes: usize);
    /// How many indices lie outside of an extent; uint32.
    count_outside(indices; extent: usize);
}
