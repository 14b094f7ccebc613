//! Elements on the host, whatever their type.

use std::borrow::Cow;

use tidemill::cpu::View;
use tidemill::{Accelerator, DType, Element, F16, Result, Shape, Tensor};

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
            // Halves that do not begin and end with a word.
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
        match tensor.dtype() {
            DType::F32 => tensor.read_into(array.of_mut::<f32>()),
            DType::F16 => tensor.read_into(array.of_mut::<F16>()),
            DType::I32 => tensor.read_into(array.of_mut::<i32>()),
            _ => tensor.read_into(array.of_mut::<u32>()),
        }?;
        Ok(array)
    }

    /// A tensor that holds the same.
    ///
    /// # Errors
    ///
    /// Those of uploading.
    pub fn upload(&self, gpu: &Accelerator) -> Result<Tensor> {
        let shape = self.kind.shape;
        match self.kind.dtype {
            DType::F32 => gpu.upload(self.of::<f32>(), shape),
            DType::F16 => gpu.upload(self.of::<F16>(), shape),
            DType::I32 => gpu.upload(self.of::<i32>(), shape),
            _ => gpu.upload(self.of::<u32>(), shape),
        }
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

    /// Floats, with halves widened.
    pub fn floats(&self) -> Cow<'_, [f32]> {
        match self.kind.dtype {
            DType::F16 => self.of::<F16>().iter().map(|x| x.to_f32()).collect(),
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
