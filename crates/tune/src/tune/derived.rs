//! A plan carried out.

use std::sync::Arc;

use crate::ir::Kernel;
use crate::prefetch::Plan;

/// A kernel with a plan carried out, and the plan as completed.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The plan with the parents that it carries.
    pub plan: Plan,
}

impl Derived {
    /// Operations of its kernel.
    pub(crate) fn operations(&self) -> usize {
        let mut count = 0;
        self.kernel.body.walk(&mut |_| count += 1);
        count
    }
}
