//! Operations of one operand, activation functions among them.

use super::elementwise::Codes;
use crate::error::Result;
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};

macro_rules! methods {
    ($title:literal: $($(#[$doc:meta])* $name:ident $codes:expr;)*) => {
        #[doc = $title]
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Type`](crate::Error::Type) if the operation has no such element type.
            pub fn $name<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
                self.unary(stringify!($name), $codes, operand.into(), &[])
            }
        )*}
    };
}

macro_rules! unary {
    (
        one_operand {
        signed { $($(#[$signed_doc:meta])* $signed:ident($s:ident) {
            cost: $signed_cost:ident, codes: [$f32:ident = $f:literal, $i32:ident = $i:literal], $($signed_row:tt)*
        })* }
        floats { $($(#[$float_doc:meta])* $float:ident($o:ident) {
            cost: $cost:ident, codes: [$code:ident = $number:literal], $($float_row:tt)*
        })* }
        activations { $($(#[$doc:meta])* $activation:ident($a:ident) {
            cost: $activation_cost:ident, codes: [$activation_code:ident = $n:literal], $($row:tt)*
        })* }
        }
        other_codes $codes:tt
    ) => {
        methods! { "# Operations of one operand\n\nWhat is said of floats, here and with the other operations, was measured on lavapipe, which rounds to \
the nearest (ties to even) and keeps NaN and the signs of zeros. Vulkan itself wants additions, subtractions, \
multiplications and conversions correctly rounded but leaves the mode of rounding to the device, and lets it lose a NaN or the sign \
of a zero, unless a shader asks for float controls (`RoundingModeRTE`, `SignedZeroInfNanPreserve`). Not every device has those, and \
our shaders don't ask: what must hold everywhere goes by the bits, as integers, and the text then says: on every device.\n\nDenormals \
are kept where the device offers it (`device::Features::preserves_denormals`): our shaders ask for it \
there (`DenormPreserve`). Elsewhere a denormal may be a zero, as an operand, as a result or on the way: lavapipe offers nothing and \
keeps them up to Mesa 25.0, but not in 26.1.":
            $($(#[$signed_doc])* $signed Codes::signed(OpCode::$f32, OpCode::$i32);)*
            $($(#[$float_doc])* $float Codes::f32(OpCode::$code);)*
        }

        methods! { "# Activation functions":
            $($(#[$doc])* $activation Codes::f32(OpCode::$activation_code);)*
        }
    };
}

crate::elementwise_ops!(unary);
