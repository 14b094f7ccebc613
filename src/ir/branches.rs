//! Which branches of fusion and lowering were taken. Debug builds alone note it, each thread for itself: `tests/drawn`
//! asserts that the problems it draws come to every one of them.

/// Notes that a place was come to; with a condition, which way it went, and is that condition. Nothing else in a
/// release build.
macro_rules! branch {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::ir::branches::note($name, None);
    };
    ($name:literal, $condition:expr) => {{
        let condition: bool = $condition;
        #[cfg(debug_assertions)]
        $crate::ir::branches::note($name, Some(condition));
        condition
    }};
}

pub(crate) use branch;

#[cfg(debug_assertions)]
pub use noted::branches_taken;

#[cfg(debug_assertions)]
pub(crate) use noted::note;

#[cfg(debug_assertions)]
mod noted {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static TAKEN: RefCell<BTreeSet<(&'static str, Option<bool>)>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub(crate) fn note(name: &'static str, way: Option<bool>) {
        TAKEN.with_borrow_mut(|taken| taken.insert((name, way)));
    }

    /// For the crate's own tests: the branches of fusion and lowering that this thread has taken since it was asked
    /// last, and which way, where it is a condition; and the modules that it has lowered to.
    pub fn branches_taken() -> BTreeSet<(&'static str, Option<bool>)> {
        TAKEN.take()
    }
}
