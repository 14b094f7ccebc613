//! Windows that slide over images, and images of other sizes.

use pyo3::prelude::*;
use tidemill::{Coordinates, Interpolation, Pool};

use super::operations;
use crate::errors::{Failure, Result};
use crate::operand::{Operand, Value};
use crate::recording::{Recording, two_values, value};

/// The options of a pool: what is not given is left as it is.
fn pool(
    window: &[usize],
    stride: Option<Vec<usize>>,
    padding: Option<Vec<(usize, usize)>>,
    dilation: Option<Vec<usize>>,
    ceil: bool,
) -> Pool {
    let mut pool = Pool::new(window);
    if let Some(stride) = stride {
        pool = pool.stride(&stride);
    }
    if let Some(padding) = padding {
        pool = pool.padding(&padding);
    }
    if let Some(dilation) = dilation {
        pool = pool.dilation(&dilation);
    }
    if ceil { pool.ceil() } else { pool }
}

operations! {
    /// Channels spread over squares of pixels: [n, c * f * f, y, x] to [n, c, y * f, x * f].
    pixel_shuffle(x; factor: usize);
    /// The other way round.
    pixel_unshuffle(x; factor: usize);
}

#[pymethods]
impl Recording {
    /// The largest element of each window over the last dimensions. Without a stride, windows lie side by side.
    #[pyo3(signature = (x, window, *, stride=None, padding=None, dilation=None, ceil=false))]
    fn max_pool(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        window: Vec<usize>,
        stride: Option<Vec<usize>>,
        padding: Option<Vec<(usize, usize)>>,
        dilation: Option<Vec<usize>>,
        ceil: bool,
    ) -> Result<Value> {
        let pool = pool(&window, stride, padding, dilation, ceil);
        value(slf, |r| Ok(r.max_pool(x.get(), &pool)?))
    }

    /// The same, and the places of these elements.
    #[pyo3(signature = (x, window, *, stride=None, padding=None, dilation=None, ceil=false))]
    fn max_pool_with_places(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        window: Vec<usize>,
        stride: Option<Vec<usize>>,
        padding: Option<Vec<(usize, usize)>>,
        dilation: Option<Vec<usize>>,
        ceil: bool,
    ) -> Result<(Value, Value)> {
        let pool = pool(&window, stride, padding, dilation, ceil);
        two_values(slf, |r| Ok(r.max_pool_with_places(x.get(), &pool)?.into()))
    }

    /// The mean of each window.
    #[pyo3(signature = (x, window, *, stride=None, padding=None, dilation=None, ceil=false, count_padding=false))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn average_pool(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        window: Vec<usize>,
        stride: Option<Vec<usize>>,
        padding: Option<Vec<(usize, usize)>>,
        dilation: Option<Vec<usize>>,
        ceil: bool,
        count_padding: bool,
    ) -> Result<Value> {
        let pool = pool(&window, stride, padding, dilation, ceil);
        let pool = if count_padding { pool.count_padding() } else { pool };
        value(slf, |r| Ok(r.average_pool(x.get(), &pool)?))
    }

    /// The p-norm of each window.
    #[pyo3(signature = (x, p, window, *, stride=None, padding=None, dilation=None, ceil=false))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn norm_pool(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        p: f32,
        window: Vec<usize>,
        stride: Option<Vec<usize>>,
        padding: Option<Vec<(usize, usize)>>,
        dilation: Option<Vec<usize>>,
        ceil: bool,
    ) -> Result<Value> {
        let pool = pool(&window, stride, padding, dilation, ceil);
        value(slf, |r| Ok(r.norm_pool(x.get(), p, &pool)?))
    }

    /// The largest element of each of so many parts.
    fn adaptive_max_pool(slf: &Bound<'_, Self>, x: Operand<'_>, parts: Vec<usize>) -> Result<Value> {
        value(slf, |r| Ok(r.adaptive_max_pool(x.get(), &parts)?))
    }

    /// The mean of each of so many parts.
    fn adaptive_average_pool(slf: &Bound<'_, Self>, x: Operand<'_>, parts: Vec<usize>) -> Result<Value> {
        value(slf, |r| Ok(r.adaptive_average_pool(x.get(), &parts)?))
    }

    /// The last dimensions with other extents. `interpolation` is "nearest", "floor", "linear" or "cubic";
    /// `coordinates` is "half_pixel", "align_corners" or "asymmetric".
    #[pyo3(signature = (x, extents, interpolation="linear", coordinates="half_pixel"))]
    fn resize(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        extents: Vec<usize>,
        interpolation: &str,
        coordinates: &str,
    ) -> Result<Value> {
        let interpolation = match interpolation {
            "nearest" => Interpolation::Nearest,
            "floor" => Interpolation::Floor,
            "linear" => Interpolation::Linear,
            "cubic" => Interpolation::Cubic,
            other => {
                return Err(Failure::parameter(format!(
                    "resize: interpolation is {other:?}; take \"nearest\", \"floor\", \"linear\" or \"cubic\""
                )));
            }
        };
        let coordinates = match coordinates {
            "half_pixel" => Coordinates::HalfPixel,
            "align_corners" => Coordinates::AlignCorners,
            "asymmetric" => Coordinates::Asymmetric,
            other => {
                return Err(Failure::parameter(format!(
                    "resize: coordinates is {other:?}; take \"half_pixel\", \"align_corners\" or \"asymmetric\""
                )));
            }
        };
        value(slf, |r| Ok(r.resize(x.get(), &extents, interpolation, coordinates)?))
    }
}
