//! A subject whose divisions and square roots have another accuracy than its kernel says.

use std::sync::Arc;

use super::workload::Workload;
use crate::error::{Error, Result};
use crate::ir::{Accuracy, Kernel};
use crate::prefetch::Plan;
use crate::tune::subject::{Reshaped, Subject};

/// A subject with another accuracy.
struct Accurate {
    subject: Box<dyn Subject>,
    accuracy: Accuracy,
}

/// The subject, its kernel's divisions and square roots of `f32` with this accuracy.
///
/// # Errors
/// It comes from a module of PTX, whose instructions say how they round.
pub fn with_accuracy(subject: Box<dyn Subject>, accuracy: Accuracy) -> Result<Box<dyn Subject>> {
    if subject.workload()?.original.is_some() {
        return Err(
            Error::usage("`--accuracy` is for kernels whose functions do not say how they round")
                .accepted("nothing for PTX: `div.full` and `sqrt.approx` are in its text"),
        );
    }
    Ok(Box::new(Accurate { subject, accuracy }))
}

impl Accurate {
    fn kernel(&self, kernel: &Arc<Kernel>) -> Arc<Kernel> {
        let mut kernel = (**kernel).clone();
        kernel.float_mode.accuracy = self.accuracy;
        Arc::new(kernel)
    }

    fn of(&self, workload: Workload) -> Workload {
        Workload {
            kernel: self.kernel(&workload.kernel),
            ..workload
        }
    }

    fn all(&self, reshaped: Vec<Reshaped>) -> Vec<Reshaped> {
        let all = reshaped.into_iter().map(|one| Reshaped {
            workload: self.of(one.workload),
            ..one
        });
        all.collect()
    }
}

impl Subject for Accurate {
    fn name(&self) -> &str {
        self.subject.name()
    }

    fn parameters(&self) -> Vec<(String, String)> {
        let mut parameters = self.subject.parameters();
        parameters.push(("accuracy".to_owned(), self.accuracy.name().to_owned()));
        parameters
    }

    fn workload(&self) -> Result<Workload> {
        Ok(self.of(self.subject.workload()?))
    }

    fn small(&self, iterations: u64) -> Result<Option<Workload>> {
        Ok(self.subject.small(iterations)?.map(|small| self.of(small)))
    }

    fn same_work(&self) -> Result<Vec<Reshaped>> {
        Ok(self.all(self.subject.same_work()?))
    }

    fn regrouped(&self) -> Result<Vec<Reshaped>> {
        Ok(self.all(self.subject.regrouped()?))
    }

    fn made_up(&self) -> Option<String> {
        self.subject.made_up()
    }

    fn is_in_module(&self) -> bool {
        self.subject.is_in_module()
    }

    fn unlocking(&self, is_over: &dyn Fn() -> bool) -> Vec<String> {
        self.subject.unlocking(is_over)
    }

    fn granted(&self, plan: &Plan) -> Result<Vec<String>> {
        self.subject.granted(plan)
    }

    fn with_shared_bytes(&self, bytes: u32) -> Result<Option<Arc<Kernel>>> {
        let kernel = self.subject.with_shared_bytes(bytes)?;
        Ok(kernel.map(|kernel| self.kernel(&kernel)))
    }

    fn read_again(&self, text: &str, bytes: Option<u32>) -> Result<Option<Arc<Kernel>>> {
        let kernel = self.subject.read_again(text, bytes)?;
        Ok(kernel.map(|kernel| self.kernel(&kernel)))
    }

    fn may_be_split(&self) -> bool {
        self.subject.may_be_split()
    }
}
