//! The worker's side of checks: it keeps one kernel's outputs on the GPU, and compares other kernels' outputs with them there.
//!
//! Before each such launch the inputs are restored, and each output gets its initial contents, or a poison pattern if it has
//! none. Afterwards the inputs are compared again: a kernel that writes one is reported.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use super::serve::{Bound, State};
use super::{Piece, Whose};
use crate::compare::{Comparer, Difference, POISONS};
use crate::failure::{Failure, FailureKind};
use crate::gpu::Gpu;
use crate::guarded::Placement;
use crate::memory::Buffer;
use crate::module::Function;

/// The reference for outputs.
pub(super) struct Reference {
    /// Each output's bytes, in the parameters' order.
    outputs: Vec<Buffer>,
    /// Their earlier contents.
    poison: u8,
}

/// The outcome of a checked launch.
pub(super) struct Ran {
    pub elapsed_ns: f64,
    /// The inputs that the kernel wrote, by their place among the arguments.
    pub wrote: Vec<usize>,
}

/// Kernels that fill buffers, by their text: buffers are filled again and again.
pub(super) type Fills = HashMap<String, Function>;

impl State {
    /// Puts the arguments back as they were at first, with this poison in outputs that are given nothing.
    pub(super) fn restore(&mut self, placement: Placement, poison: u8) -> Result<(), Failure> {
        let State {
            gpu,
            target,
            arguments,
            fills,
            comparer,
            ..
        } = self;
        for argument in arguments {
            let Bound::Buffer {
                memory,
                element,
                length,
                initial,
                output,
                sum,
                ..
            } = argument
            else {
                continue;
            };
            if memory.move_to(placement) {
                *sum = None;
            }
            let (how, elements) = ((&*gpu, *target), (*element, *length));
            if *output {
                match initial.is_nothing() {
                    true => memory.fill(poison)?,
                    false => initial.put(how, memory, elements, fills)?,
                }
            } else if sum.is_none() {
                initial.put(how, memory, elements, fills)?;
                *sum = Some(comparer_of(comparer, gpu)?.sum(memory)?);
            }
        }
        Ok(())
    }

    /// Launches a module once with everything restored, and looks at the inputs afterwards.
    pub(super) fn run_checked(&mut self, module: &str, limit: Duration, poison: u8) -> Result<Ran, Failure> {
        self.restore(Placement::Tight, poison)?;
        self.poison = poison;
        let elapsed_ns = self.launch(module, limit)?;
        let State {
            gpu,
            arguments,
            comparer,
            ..
        } = self;
        let mut wrote = Vec::new();
        for (index, argument) in arguments.iter_mut().enumerate() {
            if let Bound::Buffer {
                memory,
                output: false,
                sum,
                ..
            } = argument
                && Some(comparer_of(comparer, gpu)?.sum(memory)?) != *sum
            {
                *sum = None;
                wrote.push(index);
            }
        }
        Ok(Ran { elapsed_ns, wrote })
    }

    /// Keeps the current outputs, replacing those kept before.
    pub(super) fn keep(&mut self, poison: u8) -> Result<(), Failure> {
        self.reference = None;
        let mut outputs = Vec::new();
        for argument in &self.arguments {
            if let Bound::Buffer {
                memory, output: true, ..
            } = argument
            {
                let mut copy = self.gpu.allocate(memory.bytes())?;
                copy.copy_from(memory)?;
                outputs.push(copy);
            }
        }
        self.gpu.wait(PATIENCE)?;
        self.reference = Some(Reference { outputs, poison });
        Ok(())
    }

    /// How each output differs from the one kept.
    pub(super) fn differences(&mut self, poison: u8) -> Result<Vec<Difference>, Failure> {
        let State {
            gpu,
            arguments,
            comparer,
            reference,
            ..
        } = self;
        let reference = reference.as_ref().ok_or_else(nothing_kept)?;
        let mut kept = reference.outputs.iter();
        let mut differences = Vec::new();
        for argument in arguments {
            let Bound::Buffer {
                memory,
                initial,
                output: true,
                ..
            } = argument
            else {
                continue;
            };
            let right = kept.next().ok_or_else(nothing_kept)?;
            let is_poisoned = initial.is_nothing();
            let poisons = is_poisoned.then_some((poison, reference.poison));
            differences.push(comparer_of(comparer, gpu)?.difference(memory, right, poisons)?);
        }
        Ok(differences)
    }

    /// Launches a module twice, keeps its outputs, and compares them; if they differ, launches once more with the first poison.
    /// The differences of the second and the third launch from the first.
    pub(super) fn refer(&mut self, module: &str, limit: Duration) -> Result<Referred, Failure> {
        let [first, second] = POISONS;
        let ran = self.run_checked(module, limit, first)?;
        self.keep(first)?;
        let mut referred = Referred {
            ran,
            other_poison: Vec::new(),
            same_poison: None,
        };
        self.run_checked(module, limit, second)?;
        referred.other_poison = self.differences(second)?;
        if !referred.other_poison.iter().all(Difference::is_none) {
            self.run_checked(module, limit, first)?;
            referred.same_poison = Some(self.differences(first)?);
        }
        Ok(referred)
    }

    /// Writes pieces of outputs to a file, one behind the other.
    pub(super) fn fetch(
        &self,
        whose: Whose,
        pieces: &[Piece],
        file: &std::path::Path,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(
                FailureKind::Driver,
                format!("{} cannot be written: {error}", file.display()),
            )
        };
        let outputs: Vec<&Buffer> = match whose {
            Whose::Last => self.outputs().collect(),
            Whose::Reference => self
                .reference
                .as_ref()
                .ok_or_else(nothing_kept)?
                .outputs
                .iter()
                .collect(),
        };
        let mut to = std::io::BufWriter::new(std::fs::File::create(file).map_err(failed)?);
        let mut bytes = Vec::new();
        for piece in pieces {
            let output = outputs.get(piece.output).ok_or_else(|| {
                Failure::new(
                    FailureKind::Request,
                    format!("there is no output {}", piece.output),
                )
            })?;
            // Gigabytes are not held here.
            let (mut at, end) = (piece.offset, piece.offset.saturating_add(piece.bytes));
            while at < end {
                let length = (end - at).min(CHUNK);
                bytes.resize(length as usize, 0);
                output.read_at(at as usize, &mut bytes)?;
                to.write_all(&bytes).map_err(failed)?;
                at += length;
            }
        }
        to.flush().map_err(failed)
    }
}

/// The outcome of the launches that others are compared with.
pub(super) struct Referred {
    pub ran: Ran,
    /// How a second launch differs, whose outputs held another poison.
    pub other_poison: Vec<Difference>,
    /// How a third one differs, with the first poison again; made where the second one differs.
    pub same_poison: Option<Vec<Difference>>,
}

/// How long a copy on the GPU may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that are fetched at a time.
const CHUNK: u64 = 16 << 20;

/// The kernels that compare, compiled when they are first wanted.
fn comparer_of<'c>(comparer: &'c mut Option<Comparer>, gpu: &Gpu) -> Result<&'c mut Comparer, Failure> {
    if comparer.is_none() {
        *comparer = Some(Comparer::new(gpu)?);
    }
    comparer
        .as_mut()
        .ok_or_else(|| Failure::new(FailureKind::Request, "there is nothing to compare with"))
}

fn nothing_kept() -> Failure {
    Failure::new(FailureKind::Request, "nothing was kept to compare with")
}
