//! The operations: methods of `Recording`, by the names that they have in Rust.

mod axis;
mod elementwise;
mod index;
mod layout;
mod product;
mod sort;
mod window;

/// Methods that hand their operands and parameters on to those of the library.
macro_rules! operations {
    ($($(#[$meta:meta])* $name:ident($($operand:ident),*; $($parameter:ident: $type:ty),*);)*) => {
        #[pyo3::pymethods]
        impl $crate::recording::Recording {$(
            $(#[$meta])*
            fn $name(
                slf: &pyo3::Bound<'_, Self>,
                $($operand: $crate::operand::Operand<'_>,)*
                $($parameter: $type,)*
            ) -> $crate::errors::Result<$crate::operand::Value> {
                $crate::recording::value(slf, |r| Ok(r.$name($($operand.get(),)* $($parameter,)*)?))
            }
        )*}
    };
}
use operations;
