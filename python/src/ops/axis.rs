//! Reductions, scans, softmax and normalisation.

use pyo3::prelude::*;
use tidemill::Axes;
use tidemill::args::Along;

use super::operations;
use crate::errors::Result;
use crate::operand::{Operand, Value};
use crate::recording::{Recording, two_values, value};

/// An axis, or several; negative ones count from the last.
#[derive(FromPyObject)]
enum AxisList {
    One(isize),
    Many(Vec<isize>),
}

fn axes(axis: Option<AxisList>, keep: bool) -> Axes {
    let axes = match axis {
        None => Axes::ALL,
        Some(AxisList::One(axis)) => Axes::at(axis),
        Some(AxisList::Many(axes)) => Axes::of(&axes),
    };
    if keep { axes.keep() } else { axes }
}

fn along(axis: isize, exclusive: bool, reverse: bool) -> Along {
    let along = Along::axis(axis);
    let along = if exclusive { along.exclusive() } else { along };
    if reverse { along.reverse() } else { along }
}

macro_rules! reductions {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        #[pymethods]
        impl Recording {$(
            $(#[$meta])*
            ///
            /// Over all axes, or those that are given; `keep` keeps them, with one element each.
            #[pyo3(signature = (x, axis=None, keep=false))]
            fn $name(slf: &Bound<'_, Self>, x: Operand<'_>, axis: Option<AxisList>, keep: bool) -> Result<Value> {
                value(slf, |r| Ok(r.$name(x.get(), axes(axis, keep))?))
            }
        )*}
    };
}

reductions! {
    /// The sum.
    sum;
    /// The mean.
    mean;
    /// The product.
    prod;
    /// The largest element.
    amax;
    /// The smallest element.
    amin;
    /// The place of the largest element; uint32.
    argmax;
    /// The place of the smallest element; uint32.
    argmin;
    /// The Euclidean norm.
    norm;
    /// The mean of the squared distances from the mean.
    variance;
}

macro_rules! scans {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        #[pymethods]
        impl Recording {$(
            $(#[$meta])*
            #[pyo3(signature = (x, axis=-1, *, exclusive=false, reverse=false))]
            fn $name(
                slf: &Bound<'_, Self>,
                x: Operand<'_>,
                axis: isize,
                exclusive: bool,
                reverse: bool,
            ) -> Result<Value> {
                value(slf, |r| Ok(r.$name(x.get(), along(axis, exclusive, reverse))?))
            }
        )*}
    };
}

scans! {
    /// Sums of all elements up to each.
    cumsum;
    /// Products of all elements up to each.
    cumprod;
    /// The largest element up to each.
    cummax;
    /// The smallest element up to each.
    cummin;
}

operations! {
    /// The sum of the products of two vectors' elements.
    dot(lhs, rhs; );
    /// exp(x) / sum(exp(x)) along an axis.
    #[pyo3(signature = (x, axis=-1))]
    softmax(x; axis: isize);
    /// The logarithm of softmax.
    #[pyo3(signature = (x, axis=-1))]
    log_softmax(x; axis: isize);
    /// Rows with mean 0 and variance 1, times gamma, plus beta.
    #[pyo3(signature = (x, gamma, beta, epsilon=1e-5))]
    layer_norm(x, gamma, beta; epsilon: f32);
    /// Rows divided by the root of the mean of their squares, times gamma.
    #[pyo3(signature = (x, gamma, epsilon=1e-5))]
    rms_norm(x, gamma; epsilon: f32);
    /// Each channel of each image for itself.
    #[pyo3(signature = (x, gamma, beta, epsilon=1e-5))]
    instance_norm(x, gamma, beta; epsilon: f32);
    /// As in inference: with a mean, a variance, a gamma and a beta for each channel.
    #[pyo3(signature = (x, mean, variance, gamma, beta, epsilon=1e-5))]
    batch_norm(x, mean, variance, gamma, beta; epsilon: f32);
}

#[pymethods]
impl Recording {
    /// Mean and variance in one pass.
    #[pyo3(signature = (x, axis=None, keep=false))]
    fn moments(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        axis: Option<AxisList>,
        keep: bool,
    ) -> Result<(Value, Value)> {
        two_values(slf, |r| Ok(r.moments(x.get(), axes(axis, keep))?.into()))
    }

    /// Groups of channels, each for itself.
    #[pyo3(signature = (x, groups, gamma, beta, epsilon=1e-5))]
    fn group_norm(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        groups: usize,
        gamma: Operand<'_>,
        beta: Operand<'_>,
        epsilon: f32,
    ) -> Result<Value> {
        value(slf, |r| Ok(r.group_norm(x.get(), groups, gamma.get(), beta.get(), epsilon)?))
    }

    /// x + residual, and its layer_norm.
    #[pyo3(signature = (x, residual, gamma, beta, epsilon=1e-5))]
    fn add_layer_norm(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        residual: Operand<'_>,
        gamma: Operand<'_>,
        beta: Operand<'_>,
        epsilon: f32,
    ) -> Result<(Value, Value)> {
        two_values(slf, |r| {
            Ok(r.add_layer_norm(x.get(), residual.get(), gamma.get(), beta.get(), epsilon)?)
        })
    }

    /// x + residual, and its rms_norm.
    #[pyo3(signature = (x, residual, gamma, epsilon=1e-5))]
    fn add_rms_norm(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        residual: Operand<'_>,
        gamma: Operand<'_>,
        epsilon: f32,
    ) -> Result<(Value, Value)> {
        two_values(slf, |r| Ok(r.add_rms_norm(x.get(), residual.get(), gamma.get(), epsilon)?))
    }
}
