//! Elements on the host, whatever their type.

use std::borrow::Cow;

use tidemill::cpu::View;
use tidemill::{Accelerator, Bf16, Bool, DType, Element, F16, Result, Shape, Tensor};

/// Runs an expression with `$T` as the Rust type of a [`DType`].
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!(@ $dtype, $T => $body; F16 = F16, Bf16 = Bf16, I32 = i32, I16 = i16, I8 = i8, U32 = u32, U16 = u16,
            U8 = u8, Bool = Bool)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($name:ident = $type:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $T = $type;
                $body
            })*
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}
pub(crate) use with_type;

/// A shape of extents that are known to be few enough.
pub fn shape(extents: &[usize]) -> Shape {
    Shape::new(extents).unwrap_or_default()
}

/// What a tensor is: its element type and shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
}

impl Kind {
    /// Of this element type and these extents.
    pub fn new(dtype: DType, extents: &[usize]) -> Kind {
        Kind { dtype, shape: shape(extents) }
    }

    /// Of this Rust type's elements.
    pub fn of<T: Element>(extents: &[usize]) -> Kind {
        Kind::new(T::DTYPE, extents)
    }

    /// What its elements take.
    pub fn size_bytes(&self) -> usize {
        self.shape.elements() * self.dtype.size_bytes()
    }
}

/// Elements with their type and shape.
#[derive(Clone, Debug)]
pub struct Array {
    /// The element type and the shape.
    pub kind: Kind,
    /// The elements' bytes, one after the other, in whole words: so they lie as every type wants them.
    words: Vec<u32>,
}

impl Array {
    fn new<T: Element>(kind: Kind, elements: &[T]) -> Array {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        let words = match bytemuck::try_cast_slice(elements) {
            Ok(words) => words.to_vec(),
            // Packed ones that do not begin and end with a word.
            Err(_) => {
                let mut words = vec![0; bytes.len().div_ceil(4)];
                bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
                words
            }
        };
        Array { kind, words }
    }

    /// A place for a result: NaNs, or no small numbers, so that an element that was not written shows.
    pub fn unwritten(kind: Kind) -> Array {
        Array { kind, words: vec![u32::MAX; kind.size_bytes().div_ceil(4)] }
    }

    /// What a tensor holds.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn read(tensor: &Tensor) -> Result<Array> {
        let mut array = Array::unwritten(Kind { dtype: tensor.dtype(), shape: tensor.shape() });
        let dtype = tensor.dtype();
        with_type!(dtype, T => tensor.read_into(array.of_mut::<T>()))?;
        Ok(array)
    }

    /// A tensor that holds the same.
    ///
    /// # Errors
    ///
    /// Those of uploading.
    pub fn upload(&self, gpu: &Accelerator) -> Result<Tensor> {
        let shape = self.kind.shape;
        with_type!(self.kind.dtype, T => gpu.upload(self.of::<T>(), shape))
    }

    /// The elements' bits as another type of their size; for integers and floats alike as words.
    pub fn of<T: Element>(&self) -> &[T] {
        let elements: &[T] = bytemuck::cast_slice(&self.words);
        &elements[..elements.len().min(self.kind.shape.elements())]
    }

    /// Likewise, to be written.
    pub fn of_mut<T: Element>(&mut self) -> &mut [T] {
        let elements: &mut [T] = bytemuck::cast_slice_mut(&mut self.words);
        let count = elements.len().min(self.kind.shape.elements());
        &mut elements[..count]
    }

    /// The same with a zero of the same sign for every denormal; only f32 has them here.
    pub fn flushed(&self) -> Array {
        let mut flushed = self.clone();
        if self.kind.dtype == DType::F32 {
            for x in flushed.of_mut::<f32>().iter_mut().filter(|x| x.is_subnormal()) {
                *x = 0f32.copysign(*x);
            }
        }
        flushed
    }

    /// For the CPU's operations.
    pub fn view<T: Element>(&self) -> View<'_, T> {
        View::new(self.of(), self.kind.shape)
    }

    /// Floats, with packed ones widened.
    pub fn floats(&self) -> Cow<'_, [f32]> {
        match self.kind.dtype {
            DType::F16 => self.of::<F16>().iter().map(|x| x.to_f32()).collect(),
            DType::Bf16 => self.of::<Bf16>().iter().map(|x| x.to_f32()).collect(),
            _ => Cow::Borrowed(self.of()),
        }
    }

    /// The elements' bits as kernels compute with them: a word for each.
    pub fn widened(&self) -> Cow<'_, [u32]> {
        match self.kind.dtype {
            DType::F16 | DType::Bf16 => self.floats().iter().map(|x| x.to_bits()).collect(),
            DType::I16 => self.of::<i16>().iter().map(|x| i32::from(*x) as u32).collect(),
            DType::I8 => self.of::<i8>().iter().map(|x| i32::from(*x) as u32).collect(),
            DType::U16 => self.of::<u16>().iter().map(|x| u32::from(*x)).collect(),
            DType::U8 => self.of::<u8>().iter().map(|x| u32::from(*x)).collect(),
            DType::Bool => {
                bytemuck::cast_slice::<Bool, u8>(self.of()).iter().map(|x| u32::from(*x)).collect()
            }
            _ => Cow::Borrowed(self.of()),
        }
    }
}

/// Makes an operand's elements.
type Fill = Box<dyn Fn(Kind) -> Array + Send + Sync>;

/// An operand of a case: what it is, and what makes its elements.
#[allow(missing_debug_implementations, reason = "it holds a closure")]
pub struct Input {
    /// The element type and the shape.
    pub kind: Kind,
    fill: Fill,
}

impl Input {
    /// Of a Rust type's elements.
    pub fn new<T: Element>(extents: &[usize], fill: impl Fn() -> Vec<T> + Send + Sync + 'static) -> Input {
        Input { kind: Kind::of::<T>(extents), fill: Box::new(move |kind| Array::new(kind, &fill())) }
    }

    /// Of elements whose bits are words, whatever their type.
    pub fn words(
        dtype: DType,
        extents: &[usize],
        fill: impl Fn() -> Vec<u32> + Send + Sync + 'static,
    ) -> Input {
        Input { kind: Kind::new(dtype, extents), ..Input::new(extents, fill) }
    }

    /// The operand.
    pub fn make(&self) -> Array {
        (self.fill)(self.kind)
    }
}
