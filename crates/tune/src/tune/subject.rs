//! The subject of a search: a kernel with its data, at full size and small.

pub(super) mod accuracy;
pub(super) mod captured;
pub(super) mod contraction;
pub(super) mod file;
pub(crate) mod reach;
pub(super) mod statements;
#[doc(hidden)]
pub mod workload;

use std::sync::Arc;

use self::workload::Workload;
use crate::analysis::divided;
use crate::error::Result;
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::report::Geometry;

/// A kernel with its data, at the size that matters and at the sizes that checks need.
pub trait Subject: Sync {
    /// The kernel's name, as reports call it.
    fn name(&self) -> &str;

    /// Its parameters as they were set, by name.
    #[doc(hidden)]
    fn parameters(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The source of made-up arguments, in a sentence.
    #[doc(hidden)]
    fn made_up(&self) -> Option<String> {
        None
    }

    /// Whether it came in a module, which can be written with a plan.
    #[doc(hidden)]
    fn is_in_module(&self) -> bool {
        false
    }

    /// The kernel and its data at full size.
    ///
    /// # Errors
    /// The parameters contradict each other or the data.
    fn workload(&self) -> Result<Workload>;

    /// The same kernel on a few work-groups of little data, with its loop of this many iterations; none where the
    /// number of iterations cannot be chosen.
    ///
    /// # Errors
    /// As for [`Subject::workload`].
    fn small(&self, iterations: u64) -> Result<Option<Workload>>;

    /// The same work in other geometries, to find the plain kernel's time with more work-groups.
    ///
    /// # Errors
    /// As for [`Subject::workload`].
    #[doc(hidden)]
    fn same_work(&self) -> Result<Vec<Reshaped>> {
        Ok(Vec::new())
    }

    /// The same work-items in work-groups of other sizes, where that changes no results.
    ///
    /// # Errors
    /// As for [`Subject::workload`].
    #[doc(hidden)]
    fn regrouped(&self) -> Result<Vec<Reshaped>> {
        Ok(Vec::new())
    }

    /// Statements by which its author could make more plans possible, a sentence each.
    #[doc(hidden)]
    fn unlocking(&self, is_over: &dyn Fn() -> bool) -> Vec<String> {
        let _ = is_over;
        Vec::new()
    }

    /// The requirements of every launch of the kernel with this plan, a sentence each.
    ///
    /// # Errors
    /// The plan cannot be carried out.
    #[doc(hidden)]
    fn granted(&self, _plan: &Plan) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// The kernel as it is when launches ask for another amount of dynamic shared memory, in bytes; none where it has none.
    ///
    /// # Errors
    /// As for [`Subject::workload`].
    #[doc(hidden)]
    fn with_shared_bytes(&self, bytes: u32) -> Result<Option<Arc<Kernel>>> {
        let _ = bytes;
        Ok(None)
    }

    /// The kernel's entry in the text of a rewritten module, read as the kernel was; none where it came from no module. `bytes`
    /// is another amount of dynamic shared memory.
    ///
    /// # Errors
    /// It cannot be read.
    #[doc(hidden)]
    fn read_again(&self, text: &str, bytes: Option<u32>) -> Result<Option<Arc<Kernel>>> {
        let _ = (text, bytes);
        Ok(None)
    }

    /// Whether the kernel's work can be split over more work-groups without changing its results.
    #[doc(hidden)]
    fn may_be_split(&self) -> bool {
        false
    }
}

/// The same work in another geometry.
#[derive(Clone, Debug)]
pub struct Reshaped {
    /// That geometry.
    pub geometry: Geometry,
    /// The parameters that differ, by name.
    pub parameters: Vec<(String, String)>,
    /// The kernel and its data.
    pub workload: Workload,
}

/// Sizes that a work-group is given where it may have any.
const GROUP_SIZES: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// The same launch divided into work-groups of other sizes, where the kernel shows that this changes no results.
pub(super) fn divided_otherwise(workload: &Workload) -> Vec<Reshaped> {
    let ([groups, 1, 1], [group, 1, 1]) = (workload.groups, workload.group) else {
        return Vec::new();
    };
    if !divided::may_be_divided_otherwise(&workload.kernel) {
        return Vec::new();
    }
    let items = u64::from(groups) * u64::from(group);
    let sizes = GROUP_SIZES.into_iter();
    let sizes = sizes.filter(|&size| size != group && items.is_multiple_of(u64::from(size)));
    let reshaped = sizes.filter_map(|size| {
        let workload = Workload {
            groups: [u32::try_from(items / u64::from(size)).ok()?, 1, 1],
            group: [size, 1, 1],
            ..workload.clone()
        };
        Some(Reshaped {
            geometry: workload.geometry(),
            parameters: Vec::new(),
            workload,
        })
    });
    reshaped.collect()
}

/// A workload of one size: plans are checked at that size, on a few work-groups.
impl Subject for Workload {
    fn name(&self) -> &str {
        &self.kernel.name
    }

    fn workload(&self) -> Result<Workload> {
        Ok(self.clone())
    }

    fn small(&self, _iterations: u64) -> Result<Option<Workload>> {
        Ok(None)
    }

    fn regrouped(&self) -> Result<Vec<Reshaped>> {
        Ok(divided_otherwise(self))
    }
}

impl Workload {
    /// The geometry as reports show it, dimensions multiplied.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            groups: self.groups.iter().map(|&groups| u64::from(groups)).product(),
            group: self
                .group
                .iter()
                .fold(1, |product: u32, &items| product.saturating_mul(items)),
        }
    }
}
