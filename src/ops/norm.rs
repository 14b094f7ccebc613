//! Normalisation: of layers, by the root mean square, of groups and channels, and with statistics that are given.

use super::width::check_float;
use crate::error::{Error, Result};
use crate::ir::norm::{Norm, Residual};
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::axes::Axes;
use crate::shape::norm::{
    Rows, Weights, check_channels, check_epsilon, of_channels, rows_of_groups, rows_of_layers,
};
use crate::shape::{DType, Shape};

/// Elements of the longest row that one dispatch normalises. A longer one is cut, so that all of a device works on it.
const LONGEST: u64 = 1 << 16;

/// The options of all normalisations.
struct Operands<'a> {
    op: &'static str,
    centred: bool,
    x: Operand<'a>,
    residual: Option<Operand<'a>>,
    gamma: Operand<'a>,
    beta: Option<Operand<'a>>,
    epsilon: f32,
}

/// # Normalisation
///
/// All of it is for f32. `gamma` and `beta` are the weights that a network has learned: a factor, and what is added.
/// Where there are none, pass ones and zeros, which can be uploaded once. A NaN or an infinity makes all of its row NaN
/// (an infinity in [`rms_norm`](Recording::rms_norm) only itself; the rest of the row becomes 0). The same operands
/// give the same bits every time.
///
/// Rows of up to 65,536 elements take one dispatch. Longer ones are cut, and take several.
impl Recording {
    /// Layer normalisation: (x − mean) / √(variance + epsilon) · gamma + beta, with the mean and the variance of the
    /// last dimensions, as many as `gamma` has; f32. `gamma` and `beta` have the shape of these dimensions, the result
    /// has the operand's.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 3.0, 10.0, 30.0], [2, 2])?;
    /// let (gamma, beta) = (gpu.upload(&[1.0f32, 2.0], [2])?, gpu.upload(&[0.0f32, 5.0], [2])?);
    /// let y = gpu.run(|r| r.layer_norm(&x, &gamma, &beta, 0.0))?;
    /// assert_eq!(y.read::<f32>()?, [-1.0, 7.0, -1.0, 7.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// An error of at most 16 · 2⁻²⁴ times |(x − mean) / √(variance + epsilon) · gamma| + |gamma| + |beta|. What all
    /// elements have in common costs nothing but the rounding of the operands themselves: the variance is that of the
    /// distances from the mean, and the rounding of the mean is taken off them. Vulkan guarantees 2 ULP for the square
    /// root's inverse.
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if `gamma` does not have the last dimensions, or `beta` not the shape of `gamma`;
    /// [`Error::Parameter`] if `epsilon` is negative or not finite; [`Error::Type`] for other element types.
    pub fn layer_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        gamma: impl IntoOperand<'a>,
        beta: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<Value> {
        let (x, gamma, beta) = (x.into(), gamma.into(), Some(beta.into()));
        let op = "layer_norm";
        let operands = Operands { op, centred: true, x, residual: None, gamma, beta, epsilon };
        Ok(self.normalise(operands, rows_of_layers)?.1)
    }

    /// `sum = x + residual` and its [`layer_norm`](Recording::layer_norm), in one pass: `[sum, normalised]`. The sum is
    /// what the next layer of a network adds to.
    ///
    /// # Errors
    ///
    /// Those of `layer_norm`, and [`Error::Shapes`] if the operand and the residual differ in shape.
    pub fn add_layer_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        residual: impl IntoOperand<'a>,
        gamma: impl IntoOperand<'a>,
        beta: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<[Value; 2]> {
        let (x, gamma, beta) = (x.into(), gamma.into(), Some(beta.into()));
        let (op, residual) = ("add_layer_norm", Some(residual.into()));
        let operands = Operands { op, centred: true, x, residual, gamma, beta, epsilon };
        self.normalise(operands, rows_of_layers).map(<[Value; 2]>::from)
    }

    /// Normalisation by the root mean square: x / √(mean(x²) + epsilon) · gamma over the last dimensions, as many as
    /// `gamma` has; f32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[2.0f32, -2.0, 2.0, 2.0], [4])?;
    /// let gamma = gpu.upload(&[1.0f32, 1.0, 3.0, 0.5], [4])?;
    /// let y = gpu.run(|r| r.rms_norm(&x, &gamma, 0.0))?;
    /// assert_eq!(y.read::<f32>()?, [1.0, -1.0, 3.0, 0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// A relative error of at most 16 · 2⁻²⁴, as long as no square overflows or underflows.
    ///
    /// # Errors
    ///
    /// Those of [`layer_norm`](Recording::layer_norm).
    pub fn rms_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        gamma: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<Value> {
        let (op, x, gamma) = ("rms_norm", x.into(), gamma.into());
        let operands = Operands { op, centred: false, x, residual: None, gamma, beta: None, epsilon };
        Ok(self.normalise(operands, rows_of_layers)?.1)
    }

    /// `sum = x + residual` and its [`rms_norm`](Recording::rms_norm), in one pass: `[sum, normalised]`. The sum is
    /// what the next layer of a network adds to.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let (x, residual) = (gpu.upload(&[1.0f32, -3.0], [2])?, gpu.upload(&[1.0f32, 1.0], [2])?);
    /// let gamma = gpu.upload(&[1.0f32, 10.0], [2])?;
    /// let [sum, y] = gpu.run(|r| r.add_rms_norm(&x, &residual, &gamma, 0.0))?;
    /// assert_eq!(sum.read::<f32>()?, [2.0, -2.0]);
    /// assert_eq!(y.read::<f32>()?, [1.0, -10.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `rms_norm`, and [`Error::Shapes`] if the operand and the residual differ in shape.
    pub fn add_rms_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        residual: impl IntoOperand<'a>,
        gamma: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<[Value; 2]> {
        let (op, x, gamma, residual) = ("add_rms_norm", x.into(), gamma.into(), Some(residual.into()));
        let operands = Operands { op, centred: false, x, residual, gamma, beta: None, epsilon };
        self.normalise(operands, rows_of_layers).map(<[Value; 2]>::from)
    }

    /// Group normalisation of `[images, channels, ...]`: the channels of an image are cut into `groups`, and each group
    /// is normalised with its own mean and variance. `gamma` and `beta` have a number for each channel; f32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 3.0, 10.0, 30.0], [1, 4, 1])?;
    /// let (gamma, beta) = (gpu.upload(&[1.0f32; 4], [4])?, gpu.upload(&[0.0f32, 0.0, 5.0, 5.0], [4])?);
    /// let y = gpu.run(|r| r.group_norm(&x, 2, &gamma, &beta, 0.0))?;
    /// assert_eq!(y.read::<f32>()?, [-1.0, 1.0, 4.0, 6.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// That of [`layer_norm`](Recording::layer_norm).
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the weights are not one for each channel, [`Error::Parameter`] if `groups` does not divide
    /// the channels, or `epsilon` is negative or not finite; [`Error::Type`] for other element types.
    pub fn group_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        groups: usize,
        gamma: impl IntoOperand<'a>,
        beta: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<Value> {
        let (op, x, gamma, beta) = ("group_norm", x.into(), gamma.into(), Some(beta.into()));
        let operands = Operands { op, centred: true, x, residual: None, gamma, beta, epsilon };
        Ok(self.normalise(operands, |op, x, gamma, beta| rows_of_groups(op, x, groups, gamma, beta))?.1)
    }

    /// Instance normalisation of `[images, channels, ...]`: each channel of each image with its own mean and variance.
    /// It is [`group_norm`](Recording::group_norm) with as many groups as channels; f32.
    ///
    /// # Errors
    ///
    /// Those of `group_norm`.
    pub fn instance_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        gamma: impl IntoOperand<'a>,
        beta: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<Value> {
        let (op, x, gamma, beta) = ("instance_norm", x.into(), gamma.into(), Some(beta.into()));
        let operands = Operands { op, centred: true, x, residual: None, gamma, beta, epsilon };
        let rows = |op, x: Shape, gamma, beta| {
            check_channels(op, "gamma", x, gamma)?;
            rows_of_groups(op, x, x.dims()[1].max(1), gamma, beta)
        };
        Ok(self.normalise(operands, rows)?.1)
    }

    /// Batch normalisation of `[images, channels, ...]` as in inference, with the mean and the variance of each channel
    /// as they were learned: (x − mean) / √(variance + epsilon) · gamma + beta; f32. All four have a number for each
    /// channel.
    ///
    /// It is made of elementwise operations, so it is fused with its neighbours; after a convolution it becomes its
    /// epilogue where that has room.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 3.0, 10.0, 30.0], [1, 2, 2])?;
    /// let of = |numbers: [f32; 2]| gpu.upload(&numbers, [2]);
    /// let (mean, variance) = (of([1.0, 10.0])?, of([1.0, 100.0])?);
    /// let (gamma, beta) = (of([2.0, 1.0])?, of([0.0, 5.0])?);
    /// let y = gpu.run(|r| r.batch_norm(&x, &mean, &variance, &gamma, &beta, 0.0))?;
    /// assert_eq!(y.read::<f32>()?, [0.0, 4.0, 5.0, 7.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// An error of at most 8 · 2⁻²⁴ times |(x − mean) / √(variance + epsilon) · gamma| + |beta|.
    ///
    /// # Errors
    ///
    /// Those of [`layer_norm`](Recording::layer_norm); [`Error::Shapes`] if one of the four does not have one number
    /// per channel.
    pub fn batch_norm<'a>(
        &self,
        x: impl IntoOperand<'a>,
        mean: impl IntoOperand<'a>,
        variance: impl IntoOperand<'a>,
        gamma: impl IntoOperand<'a>,
        beta: impl IntoOperand<'a>,
        epsilon: f32,
    ) -> Result<Value> {
        let op = "batch_norm";
        check_epsilon(op, epsilon)?;
        let x = self.float_operand(op, "operand", x.into())?;
        let shape = self.kind(x).0;
        let numbers = [
            ("mean", mean.into()),
            ("variance", variance.into()),
            ("gamma", gamma.into()),
            ("beta", beta.into()),
        ];
        let mut numbers_of = [x; 4];
        for (place, (name, operand)) in numbers_of.iter_mut().zip(numbers) {
            let id = self.float_operand(op, name, operand)?;
            check_channels(op, name, shape, self.kind(id).0)?;
            *place = id;
        }
        self.all_or_nothing(|r| {
            let column = of_channels(&shape);
            let [wide, numbers @ ..] =
                r.all_widened([x, numbers_of[0], numbers_of[1], numbers_of[2], numbers_of[3]])?;
            let [mean, variance, gamma, beta] = numbers.map(|id| r.handle(id));
            let variance = r.add_scalar(variance, epsilon)?;
            let scale = r.rsqrt(variance)?;
            let scale = r.mul(scale, gamma)?;
            let [mean, scale, beta] = [mean, scale, beta].map(|value| r.reshape(value, column));
            let distance = r.sub(r.handle(wide), mean?)?;
            let scaled = r.mul(distance, scale?)?;
            r.cast(r.add(scaled, beta?)?, r.kind(x).1)
        })
    }

    fn float_operand(&self, op: &'static str, name: &str, operand: Operand<'_>) -> Result<ValueId> {
        let id = self.resolve(op, operand)?;
        check_float(op, name, self.kind(id).1)?;
        Ok(id)
    }

    /// The sum with the residual (the operand, where there is none), and the result; both of the operand's type.
    fn normalise(
        &self,
        operands: Operands<'_>,
        rows: impl Fn(&'static str, Shape, Shape, Option<Shape>) -> Result<Rows>,
    ) -> Result<(Value, Value)> {
        let dtype = self.kind(self.float_operand(operands.op, "operand", operands.x)?).1;
        self.all_or_nothing(|r| {
            let (sum, result) = r.normalise_wide(operands, rows)?;
            Ok((r.cast(sum, dtype)?, r.cast(result, dtype)?))
        })
    }

    /// The same as f32.
    fn normalise_wide(
        &self,
        operands: Operands<'_>,
        rows: impl Fn(&'static str, Shape, Shape, Option<Shape>) -> Result<Rows>,
    ) -> Result<(Value, Value)> {
        let Operands { op, centred, x, residual, gamma, beta, epsilon } = operands;
        check_epsilon(op, epsilon)?;
        let wide = |name, operand| self.widened(self.float_operand(op, name, operand)?);
        let input = wide("operand", x)?;
        let residual = residual.map(|residual| wide("residual", residual)).transpose()?;
        let gamma = wide("gamma", gamma)?;
        let beta = beta.map(|beta| wide("beta", beta)).transpose()?;
        let shape = self.kind(input).0;
        if let Some(other) = residual.map(|id| self.kind(id).0).filter(|other| *other != shape) {
            let why = format!("operand {shape} and residual {other} must have one shape");
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        let Rows { rows, extent, weights } =
            rows(op, shape, self.kind(gamma).0, beta.map(|beta| self.kind(beta).0))?;
        let norm = |output, residual| Norm {
            op,
            centred,
            input,
            residual,
            gamma,
            beta,
            weights,
            epsilon,
            rows,
            extent,
            output,
        };
        if extent > LONGEST && shape.elements() > 0 {
            return self.all_or_nothing(|r| r.normalise_long(norm(input, None), residual, shape));
        }
        let output = self.produce(op, shape, DType::F32)?;
        let residual = match residual {
            Some(input) => Some(Residual { input, sum: self.produce(op, shape, DType::F32)? }),
            None => None,
        };
        if shape.elements() > 0 {
            self.push(self.label(op, input), norm(output, residual))?;
        }
        Ok((self.handle(residual.map_or(input, |residual| residual.sum)), self.handle(output)))
    }

    /// The same of reductions and elementwise operations, which are cut and fused as any.
    fn normalise_long(&self, norm: Norm, residual: Option<ValueId>, shape: Shape) -> Result<(Value, Value)> {
        let Norm { centred, gamma, beta, weights, epsilon, rows, extent, .. } = norm;
        let x = self.handle(norm.input);
        let x = match residual {
            Some(residual) => self.add(x, self.handle(residual))?,
            None => x,
        };
        let row = self.reshape(x, [rows as usize, extent as usize])?;
        let axis = Axes::at(1).keep();
        let (distance, variance) = if centred {
            // What the rounding of the mean has added is taken off, as the kernel does.
            let distance = self.sub(row, self.mean(row, axis)?)?;
            let distance = self.sub(distance, self.mean(distance, axis)?)?;
            (distance, self.variance(row, axis)?)
        } else {
            let square = self.mul(row, row)?;
            (row, self.mean(square, axis)?)
        };
        let variance = self.add_scalar(variance, epsilon)?;
        let scale = self.rsqrt(variance)?;
        let scaled = self.mul(distance, scale)?;
        let Weights { groups, per_row, spread } = weights;
        let by_weights = [(rows / groups) as usize, groups as usize, per_row as usize, spread as usize];
        let scaled = self.reshape(scaled, by_weights)?;
        let of_elements = [groups as usize, per_row as usize, 1];
        let gamma = self.reshape(self.handle(gamma), of_elements)?;
        let mut result = self.mul(scaled, gamma)?;
        if let Some(beta) = beta {
            let beta = self.reshape(self.handle(beta), of_elements)?;
            result = self.add(result, beta)?;
        }
        Ok((x, self.reshape(result, shape)?))
    }
}
