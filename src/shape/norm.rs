//! Shapes of what is normalised, and of the weights.

use super::{MAX_RANK, Shape, product};
use crate::error::parameters::parameter;
use crate::error::{Error, Result};

/// Which weight belongs to which element: `row % groups * per_row + element / spread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    /// Rows that have weights of their own, in turn.
    pub(crate) groups: u64,
    /// Weights of a row.
    pub(crate) per_row: u64,
    /// Elements that a weight is for.
    pub(crate) spread: u64,
}

/// A tensor seen as rows, each normalised for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: u64,
    pub(crate) extent: u64,
    pub(crate) weights: Weights,
}

/// Refuses an epsilon that is negative or no number.
pub(crate) fn check_epsilon(op: &'static str, epsilon: f32) -> Result<()> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        Ok(())
    } else {
        Err(parameter(op, "epsilon", epsilon, "be finite and not negative"))
    }
}

/// Rows of as many of the last dimensions as gamma has, which has a weight for each of their elements.
pub(crate) fn rows_of_layers(op: &'static str, x: Shape, gamma: Shape, beta: Option<Shape>) -> Result<Rows> {
    let (dims, last) = (x.dims(), gamma.rank());
    if last == 0 || last > dims.len() || dims[dims.len() - last..] != *gamma.dims() {
        let why = format!("gamma {gamma} must have the last dimensions of {x}, at least one");
        return Err(Error::Shapes { op, lhs: x, rhs: gamma, why });
    }
    check_beta(op, gamma, beta)?;
    let (rows, extent) = (product(&dims[..dims.len() - last]) as u64, gamma.elements() as u64);
    Ok(Rows { rows, extent, weights: Weights { groups: 1, per_row: extent, spread: 1 } })
}

/// Rows of the channels of a group: of `[images, channels, ...]`, with a weight for each channel.
pub(crate) fn rows_of_groups(
    op: &'static str,
    x: Shape,
    groups: usize,
    gamma: Shape,
    beta: Option<Shape>,
) -> Result<Rows> {
    check_channels(op, "gamma", x, gamma)?;
    check_beta(op, gamma, beta)?;
    let (images, channels) = (x.dims()[0], x.dims()[1]);
    if groups == 0 || !channels.is_multiple_of(groups) {
        let rule = format!("divide the {channels} channels of {x}");
        return Err(Error::Parameter { op, name: "groups", value: groups as f64, rule });
    }
    let (spread, per_row) = (product(&x.dims()[2..]) as u64, (channels / groups) as u64);
    let weights = Weights { groups: groups as u64, per_row, spread };
    Ok(Rows { rows: (images * groups) as u64, extent: per_row * spread, weights })
}

/// Refuses a parameter without one number per channel of `[images, channels, ...]`.
pub(crate) fn check_channels(op: &'static str, name: &str, x: Shape, weights: Shape) -> Result<()> {
    match (x.dims(), weights.dims()) {
        ([_, channels, ..], [count]) if channels == count => Ok(()),
        _ => {
            let why =
                format!("{name} {weights} must have one number for each channel of {x}, its dimension 1");
            Err(Error::Shapes { op, lhs: x, rhs: weights, why })
        }
    }
}

fn check_beta(op: &'static str, gamma: Shape, beta: Option<Shape>) -> Result<()> {
    match beta.filter(|beta| *beta != gamma) {
        Some(beta) => {
            let why = format!("gamma {gamma} and beta {beta} must have one shape");
            Err(Error::Shapes { op, lhs: gamma, rhs: beta, why })
        }
        None => Ok(()),
    }
}

/// The shape in which a number for each channel goes with `[images, channels, ...]`.
pub(crate) fn of_channels(x: &Shape) -> Shape {
    let (mut dims, rank) = ([0; MAX_RANK], x.rank().max(2) - 1);
    dims[..rank].fill(1);
    dims[0] = x.dims().get(1).copied().unwrap_or(1);
    Shape { dims, rank: rank as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_the_last_dimensions() {
        let rows = |x: &[usize], gamma: &[usize]| {
            rows_of_layers("layer_norm", Shape::new(x).unwrap(), Shape::new(gamma).unwrap(), None)
        };
        let Rows { rows: count, extent, weights } = rows(&[2, 3, 4, 5], &[4, 5]).unwrap();
        assert_eq!((count, extent), (6, 20));
        assert_eq!(weights, Weights { groups: 1, per_row: 20, spread: 1 });
        assert_eq!(rows(&[7], &[7]).unwrap().rows, 1);
        assert_eq!(
            rows(&[2, 3], &[2]).unwrap_err().to_string(),
            "layer_norm: lhs [2, 3] and rhs [2]: gamma [2] must have the last dimensions of [2, 3], at least one"
        );
        assert!(rows(&[3], &[]).is_err() && rows(&[3], &[1, 3]).is_err());
    }

    #[test]
    fn groups_are_channels_of_an_image() {
        let rows =
            |groups| rows_of_groups("group_norm", [2, 6, 5, 7].into(), groups, [6].into(), Some([6].into()));
        let Rows { rows: count, extent, weights } = rows(3).unwrap();
        assert_eq!((count, extent), (6, 70));
        assert_eq!(weights, Weights { groups: 3, per_row: 2, spread: 35 });
        assert_eq!(
            rows(4).unwrap_err().to_string(),
            "group_norm: groups is 4; it must divide the 6 channels of [2, 6, 5, 7]"
        );
        assert!(rows(0).is_err());
    }
}
