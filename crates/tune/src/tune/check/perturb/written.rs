//! The kernel that a user gets: read again from the text of the rewritten module.
//!
//! A plan is carried out on the IR, and the IR is printed. What is checked must not be the IR, or a fault of the printer passes
//! every check. So the module's text is read as any other module, and its entry runs on the same launches as the plain kernel.

use std::sync::Arc;

use super::Subject;
use crate::error::{Error, Result};
use crate::front::ptx::Original;
use crate::ir::{Kernel, Param};
use crate::prefetch::{Plan, PlanTarget};
use crate::tune::modules::drop_in::{DropIn, placed, placed_under};
use crate::tune::subject::workload::Workload;

/// An entry of a rewritten module.
pub(super) struct Written<'a> {
    subject: &'a dyn Subject,
    original: Arc<Original>,
    module: DropIn,
    /// As the launch at hand has it.
    pub kernel: Arc<Kernel>,
}

/// Writes a planned kernel into the module that its plain kernel came from, and reads it again; none where it came from none.
///
/// # Errors
/// The kernel cannot stand in the module, or the text cannot be read again: then nothing of it can be checked.
pub(super) fn written<'a>(
    subject: &'a dyn Subject,
    workload: &Workload,
    derived: &Kernel,
) -> Result<Option<Written<'a>>> {
    let Some(original) = &workload.original else {
        return Ok(None);
    };
    let module = placed(original, &workload.kernel, derived)?;
    let unread = |what: &dyn std::fmt::Display| {
        Error::input(format!(
            "Headstart cannot rewrite `{}`: the text that it writes for the plan cannot be read again, and so not be checked: \
             {what}",
            workload.kernel.name
        ))
    };
    let kernel = subject
        .read_again(&module.text, None)
        .map_err(|error| unread(&error))?
        .ok_or_else(|| Error::bug("a subject that came from a module reads none"))?;
    let kernel = arranged(&kernel, &workload.kernel).ok_or_else(|| unread(&"it has other parameters"))?;
    Ok(Some(Written {
        subject,
        original: Arc::clone(original),
        module,
        kernel,
    }))
}

impl Written<'_> {
    /// Whether the text would be another one if no lengths were known: then they are built into it.
    pub(crate) fn relies_on_lengths(&self, plan: &Plan, target: &PlanTarget) -> bool {
        let mut facts = self.original.facts.clone();
        facts.parameters.values_mut().for_each(|own| own.length = None);
        facts.unbounded_variables = true;
        let without = placed_under(&self.original, &facts, plan, target);
        without.map_or(true, |without| !without.says_the_same(&self.module))
    }

    /// The entry as launches have it that ask for another amount of dynamic shared memory.
    pub(crate) fn with_shared_bytes(&self, bytes: u32) -> Option<Arc<Kernel>> {
        let kernel = self.subject.read_again(&self.module.text, Some(bytes)).ok()??;
        arranged(&kernel, &self.kernel)
    }
}

/// A kernel with its parameters in the order that another one has; none if it has not the same.
fn arranged(kernel: &Kernel, like: &Kernel) -> Option<Arc<Kernel>> {
    if kernel.params.len() != like.params.len() {
        return None;
    }
    let mut arranged = kernel.clone();
    arranged.params.clear();
    for wanted in &like.params {
        let is_it =
            |param: &&Param| param.name == wanted.name && kernel.ty(param.value) == like.ty(wanted.value);
        arranged.params.push(kernel.params.iter().find(is_it)?.clone());
    }
    Some(Arc::new(arranged))
}
