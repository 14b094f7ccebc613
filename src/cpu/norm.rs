//! Normalisation. Means and variances are added up in f64.

use super::lines::Fold;
use super::parallel::{self, LIGHT};
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::shape::axes::Geometry;
use crate::shape::norm::{Rows, check_channels, check_epsilon, rows_of_groups, rows_of_layers};

/// [`Recording::layer_norm`](crate::Recording::layer_norm); f32.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let mut y = [0.0; 4];
/// let x = ([1.0f32, 3.0, 10.0, 30.0], [2, 2]);
/// tidemill::cpu::layer_norm((&x.0, x.1), &[1.0, 2.0], &[0.0, 5.0], 0.0, &mut y)?;
/// assert_eq!(y, [-1.0, 7.0, -1.0, 7.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Shapes`] if the weights do not fit the operand, [`Error::Parameter`] if epsilon is negative or not finite,
/// [`Error::Length`] if data and shape, or shape and output, do not fit.
pub fn layer_norm<'a>(
    x: impl Into<View<'a, f32>>,
    gamma: impl Into<View<'a, f32>>,
    beta: impl Into<View<'a, f32>>,
    epsilon: f32,
    out: &mut [f32],
) -> Result<Shape> {
    let (x, gamma, beta) = (x.into(), gamma.into(), Some(beta.into()));
    normalise("layer_norm", true, (x, None), (gamma, beta), epsilon, rows_of_layers, out)
}

/// The normalised sum of [`Recording::add_layer_norm`](crate::Recording::add_layer_norm), which also goes to `sum`;
/// f32.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn add_layer_norm<'a>(
    x: impl Into<View<'a, f32>>,
    residual: impl Into<View<'a, f32>>,
    gamma: impl Into<View<'a, f32>>,
    beta: impl Into<View<'a, f32>>,
    epsilon: f32,
    sum: &mut [f32],
    out: &mut [f32],
) -> Result<Shape> {
    let (gamma, beta, residual) = (gamma.into(), Some(beta.into()), Some((residual.into(), sum)));
    normalise("add_layer_norm", true, (x.into(), residual), (gamma, beta), epsilon, rows_of_layers, out)
}

/// [`Recording::rms_norm`](crate::Recording::rms_norm); f32.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn rms_norm<'a>(
    x: impl Into<View<'a, f32>>,
    gamma: impl Into<View<'a, f32>>,
    epsilon: f32,
    out: &mut [f32],
) -> Result<Shape> {
    normalise("rms_norm", false, (x.into(), None), (gamma.into(), None), epsilon, rows_of_layers, out)
}

/// The normalised sum of [`Recording::add_rms_norm`](crate::Recording::add_rms_norm), which also goes to `sum`; f32.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn add_rms_norm<'a>(
    x: impl Into<View<'a, f32>>,
    residual: impl Into<View<'a, f32>>,
    gamma: impl Into<View<'a, f32>>,
    epsilon: f32,
    sum: &mut [f32],
    out: &mut [f32],
) -> Result<Shape> {
    let residual = Some((residual.into(), sum));
    normalise("add_rms_norm", false, (x.into(), residual), (gamma.into(), None), epsilon, rows_of_layers, out)
}

/// [`Recording::group_norm`](crate::Recording::group_norm); f32.
///
/// # Errors
///
/// Those of [`layer_norm`], and [`Error::Parameter`] if `groups` does not divide the channels.
pub fn group_norm<'a>(
    x: impl Into<View<'a, f32>>,
    groups: usize,
    gamma: impl Into<View<'a, f32>>,
    beta: impl Into<View<'a, f32>>,
    epsilon: f32,
    out: &mut [f32],
) -> Result<Shape> {
    let weights = (gamma.into(), Some(beta.into()));
    let rows = |op, x, gamma, beta| rows_of_groups(op, x, groups, gamma, beta);
    normalise("group_norm", true, (x.into(), None), weights, epsilon, rows, out)
}

/// [`Recording::instance_norm`](crate::Recording::instance_norm); f32.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn instance_norm<'a>(
    x: impl Into<View<'a, f32>>,
    gamma: impl Into<View<'a, f32>>,
    beta: impl Into<View<'a, f32>>,
    epsilon: f32,
    out: &mut [f32],
) -> Result<Shape> {
    let weights = (gamma.into(), Some(beta.into()));
    let rows = |op, x: Shape, gamma, beta| {
        check_channels(op, "gamma", x, gamma)?;
        rows_of_groups(op, x, x.dims()[1].max(1), gamma, beta)
    };
    normalise("instance_norm", true, (x.into(), None), weights, epsilon, rows, out)
}

/// [`Recording::batch_norm`](crate::Recording::batch_norm); f32.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn batch_norm<'a>(
    x: impl Into<View<'a, f32>>,
    mean: impl Into<View<'a, f32>>,
    variance: impl Into<View<'a, f32>>,
    gamma: impl Into<View<'a, f32>>,
    beta: impl Into<View<'a, f32>>,
    epsilon: f32,
    out: &mut [f32],
) -> Result<Shape> {
    let op = "batch_norm";
    check_epsilon(op, epsilon)?;
    let x = x.into().checked(op)?;
    let [mean, variance, gamma, beta] = [
        ("mean", mean.into()),
        ("variance", variance.into()),
        ("gamma", gamma.into()),
        ("beta", beta.into()),
    ]
    .map(|(name, view)| {
        let view = view.checked(op)?;
        check_channels(op, name, x.shape(), view.shape()).map(|()| view.data())
    });
    let (mean, variance, gamma, beta) = (mean?, variance?, gamma?, beta?);
    let shape = x.shape();
    check_length(op, shape, out.len())?;
    let Geometry { extent: channels, inner, .. } = Geometry::along(&shape, 1);
    if out.is_empty() {
        return Ok(shape);
    }
    let (x, channels, inner) = (x.data(), channels as usize, inner as usize);
    parallel::rows(out, inner, inner, LIGHT, |first, out| {
        for (i, out) in out.chunks_mut(inner).enumerate() {
            let (row, c) = (first + i, (first + i) % channels);
            let scale = f64::from(gamma[c]) / (f64::from(variance[c]) + f64::from(epsilon)).sqrt();
            let (mean, beta) = (f64::from(mean[c]), f64::from(beta[c]));
            for (x, out) in x[row * inner..][..inner].iter().zip(out) {
                *out = ((f64::from(*x) - mean) * scale + beta) as f32;
            }
        }
    });
    Ok(shape)
}

/// What is added where there is no beta: zeros keep their sign.
const NONE: f32 = -0.0;

/// What is normalised: an operand, or its sum with another, and where the sum goes.
type Operands<'a, 'b> = (View<'a, f32>, Option<(View<'a, f32>, &'b mut [f32])>);

fn normalise<'a>(
    op: &'static str,
    centred: bool,
    (x, residual): Operands<'a, '_>,
    (gamma, beta): (View<'a, f32>, Option<View<'a, f32>>),
    epsilon: f32,
    rows: impl Fn(&'static str, Shape, Shape, Option<Shape>) -> Result<Rows>,
    out: &mut [f32],
) -> Result<Shape> {
    check_epsilon(op, epsilon)?;
    let (x, gamma) = (x.checked(op)?, gamma.checked(op)?);
    let beta = beta.map(|beta| beta.checked(op)).transpose()?;
    let shape = x.shape();
    let rows = rows(op, shape, gamma.shape(), beta.map(|beta| beta.shape()))?;
    check_length(op, shape, out.len())?;
    let weights = (gamma.data(), beta.map(|beta| beta.data()));
    let Some((residual, sum)) = residual else {
        normalise_rows(centred, x.data(), weights, epsilon, rows, out);
        return Ok(shape);
    };
    let residual = residual.checked(op)?;
    if residual.shape() != shape {
        let why = format!("operand {shape} and residual {} must have one shape", residual.shape());
        return Err(Error::Shapes { op, lhs: shape, rhs: residual.shape(), why });
    }
    super::add(x, residual, sum)?;
    normalise_rows(centred, sum, weights, epsilon, rows, out);
    Ok(shape)
}

fn normalise_rows(
    centred: bool,
    x: &[f32],
    (gamma, beta): (&[f32], Option<&[f32]>),
    epsilon: f32,
    Rows { extent, weights, .. }: Rows,
    out: &mut [f32],
) {
    let extent = extent as usize;
    if out.is_empty() {
        return;
    }
    let [groups, per_row, spread] = [weights.groups, weights.per_row, weights.spread].map(|n| n as usize);
    let mean_of = |row: &[f32], mean: f64, f: fn(f64, f64) -> f64| {
        let step = move |sum: f64, x: f32, mean: f64| sum + f(f64::from(x), mean);
        let sum = Fold { nothing: 0.0, step, merge: |a: f64, b: f64| a + b }.row(row, mean);
        sum / extent as f64
    };
    parallel::rows(out, extent, extent, LIGHT, |first, out| {
        for (i, out) in out.chunks_mut(extent).enumerate() {
            let row = &x[(first + i) * extent..][..extent];
            let own = (first + i) % groups * per_row;
            let mean = if centred { mean_of(row, 0.0, |x, _| x) } else { 0.0 };
            let variance = mean_of(row, mean, |x, mean| (x - mean) * (x - mean));
            let scale = 1.0 / (variance + f64::from(epsilon)).sqrt();
            let result = |x: f32, gamma: f32, beta: f32| {
                ((f64::from(x) - mean) * scale * f64::from(gamma) + f64::from(beta)) as f32
            };
            if spread == 1 {
                let betas = beta.map(|beta| &beta[own..own + per_row]);
                for (k, ((x, gamma), out)) in row.iter().zip(&gamma[own..]).zip(out).enumerate() {
                    *out = result(*x, *gamma, betas.map_or(NONE, |beta| beta[k]));
                }
                continue;
            }
            for (k, (x, out)) in row.chunks(spread).zip(out.chunks_mut(spread)).enumerate() {
                let (gamma, beta) = (gamma[own + k], beta.map_or(NONE, |beta| beta[own + k]));
                x.iter().zip(out).for_each(|(x, out)| *out = result(*x, gamma, beta));
            }
        }
    });
}
