//! Specialization constants by the names that GLSL gives them. A constant is of the file that declares it, and only
//! kernels that include the file take it: the constant of another kernel does not compile.

use std::fmt;
use std::marker::PhantomData;

use crate::ir::pipeline_key::Specialization;
use crate::kernels::modules::Module;

/// A specialization constant of the file `F`, with values of type `T`: `bool` or `u32`.
pub(crate) struct Constant<F, T> {
    id: u32,
    of: PhantomData<fn(F) -> T>,
}

impl<F, T> Constant<F, T> {
    pub(crate) const fn new(id: u32) -> Constant<F, T> {
        Constant { id, of: PhantomData }
    }

    /// Its number in SPIR-V.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }
}

impl<F, T> Clone for Constant<F, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, T> Copy for Constant<F, T> {}

impl<F, T> fmt::Debug for Constant<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "constant {}", self.id)
    }
}

/// A file that is a kernel.
pub(crate) trait KernelFile {
    /// Its modules.
    type Module: Copy + Into<Module>;
    /// The constant that is the local size.
    const LOCAL_SIZE: u32;
}

/// A kernel that is the file `F`, or includes it.
pub(crate) trait Includes<F> {}

/// The values of a kernel's constants. Those that are not given keep the shader's defaults.
#[derive(Clone, Debug)]
pub(crate) struct Constants<K> {
    all: Specialization,
    kernel: PhantomData<fn(K)>,
}

impl<K: KernelFile> Constants<K> {
    /// For workgroups of this many invocations.
    pub(crate) fn new(local_size: u32) -> Constants<K> {
        Constants { all: Specialization::from_iter([(K::LOCAL_SIZE, local_size)]), kernel: PhantomData }
    }

    /// Gives a constant a value; once.
    pub(crate) fn set<F, T: Into<u32>>(&mut self, constant: Constant<F, T>, value: T)
    where
        K: Includes<F>,
    {
        debug_assert!(self.all.iter().all(|(id, _)| *id != constant.id), "{constant:?} is given twice");
        self.all.push((constant.id, value.into()));
    }

    /// The same, with one more constant.
    #[must_use]
    pub(crate) fn with<F, T: Into<u32>>(mut self, constant: Constant<F, T>, value: T) -> Constants<K>
    where
        K: Includes<F>,
    {
        self.set(constant, value);
        self
    }

    /// A module of the kernel with these constants.
    pub(crate) fn of(self, module: K::Module) -> Specialized {
        Specialized { module: module.into(), specialization: self.all }
    }
}

/// A module and the values of its constants.
#[derive(Clone, Debug)]
pub(crate) struct Specialized {
    pub(crate) module: Module,
    pub(crate) specialization: Specialization,
}
