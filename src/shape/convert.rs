//! Shapes and element types of what is known at run time only.

use std::str::FromStr;

use super::{DType, Shape};
use crate::error::{Error, Result};

/// For extents whose number is known at run time only.
///
/// ```
/// use tidemill::{Error, Shape};
/// let extents = vec![64, 784];
/// assert_eq!(Shape::try_from(extents.as_slice())?, Shape::from([64, 784]));
/// assert!(matches!(Shape::try_from([1; 9].as_slice()), Err(Error::Rank { rank: 9, .. })));
/// # Ok::<(), Error>(())
/// ```
impl TryFrom<&[usize]> for Shape {
    type Error = Error;

    fn try_from(extents: &[usize]) -> Result<Shape> {
        Shape::new(extents).ok_or(Error::Rank { op: "shape", rank: extents.len() })
    }
}

/// The names as [`Display`](std::fmt::Display) writes them.
///
/// ```
/// use tidemill::DType;
/// assert_eq!("f16".parse::<DType>()?, DType::F16);
/// let refused = "f64".parse::<DType>().unwrap_err();
/// assert_eq!(refused.to_string(), "no element type is called f64; there are f32, f16, bf16, i32, i16, i8, \
///     u32, u16, u8, bool");
/// # Ok::<(), tidemill::Error>(())
/// ```
impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType> {
        let known = DType::ALL.iter().find(|dtype| dtype.to_string() == name);
        known.copied().ok_or_else(|| Error::UnknownType { name: name.to_owned() })
    }
}
