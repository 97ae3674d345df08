//! Variables of modules: each module that is launched has its own, and an argument's memory stands for them between launches.

use std::time::Duration;

use super::serve::{Bound, State};
use crate::failure::Failure;
use crate::memory::Buffer;
use crate::module::Function;

/// How long copies on the GPU may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A variable of the modules, and the memory that stands for it.
pub(super) struct Variable {
    pub name: String,
    /// The position of the argument.
    pub of: usize,
    /// Where it starts in that, in bytes.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

impl State {
    /// Gives a module's variables what the arguments hold.
    pub(super) fn fill_variables(&self, function: &Function) -> Result<(), Failure> {
        self.each_variable(|own, memory, _| function.fill_variable(&own.name, memory, own.range()))
    }

    /// Gives the arguments what a module's variables hold: those that are outputs.
    pub(super) fn fetch_variables(&self, function: &Function) -> Result<(), Failure> {
        self.each_variable(|own, memory, output| match output {
            true => function.fetch_variable(&own.name, memory, own.range()),
            false => Ok(()),
        })
    }

    fn each_variable(
        &self,
        mut copy: impl FnMut(&Variable, &Buffer, bool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut any = false;
        for argument in &self.arguments {
            if let Bound::Variable(own) = argument
                && let Some(Bound::Buffer { memory, output, .. }) = self.arguments.get(own.of)
            {
                any = true;
                copy(own, memory, *output)?;
            }
        }
        match any {
            true => self.gpu.wait(PATIENCE),
            false => Ok(()),
        }
    }
}

impl Variable {
    /// Where it lies in its argument's memory: the first byte, and how many there are.
    fn range(&self) -> (usize, usize) {
        (self.start as usize, self.bytes as usize)
    }
}
