//! A derived launch: its geometry, scalars and buffers.

use std::sync::Arc;

use super::data::{Change, Own};
use crate::device::sim::functional::BufferMemory;
use crate::device::{Argument, Buffer, Fill, Launch};
use crate::error::Result;
use crate::ir::line::PrintLimits;
use crate::ir::{Kernel, Type};
use crate::tune::compare::Compare;
use crate::tune::workload::{ArgumentSpec, Workload};

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// How it was made: `n = 31, indices permuted`.
    pub what: String,
    pub groups: [u32; 3],
    pub group: [u32; 3],
    /// Bytes of dynamic shared memory, where they are not those that the kernel was read with.
    pub shared_bytes: Option<u32>,
    /// One for each parameter.
    pub parts: Vec<Part>,
}

/// A parameter's argument.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Scalar(Type, u64),
    Buffer(Contents),
}

/// A buffer of a launch.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    pub element: Type,
    /// In elements.
    pub length: u64,
    pub fill: Fill,
    /// How results in it are compared; none where the kernel only reads it.
    pub compare: Option<Compare>,
    /// The parameter before this one whose buffer it gets.
    pub same_as: Option<usize>,
    /// How many elements after the first of its memory the parameter points to.
    pub start: u64,
}

/// The role of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Scalar,
    /// The length of a buffer, the last that names it.
    Length,
    Buffer(Promise),
}

/// A kernel's knowledge of a buffer's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    Nothing,
    /// It has so many elements.
    Elements(u64),
    /// As many as this parameter says.
    Parameter(usize),
}

/// The role of each parameter of a kernel.
pub(super) fn roles(kernel: &Kernel) -> Vec<Role> {
    let promise = |position: usize| {
        let facts = kernel.params[position].facts;
        let Some(length) = facts.and_then(|facts| facts.length) else {
            return Promise::Nothing;
        };
        match kernel.params.iter().position(|param| param.value == length) {
            Some(parameter) => Promise::Parameter(parameter),
            None => kernel
                .as_constant(length)
                .map_or(Promise::Nothing, Promise::Elements),
        }
    };
    let is_length = |position: usize| {
        let value = Some(kernel.params[position].value);
        kernel
            .params
            .iter()
            .any(|param| param.facts.is_some_and(|facts| facts.length == value))
    };
    let positions = 0..kernel.params.len();
    positions
        .map(
            |position| match kernel.ty(kernel.params[position].value).is_pointer() {
                true => Role::Buffer(promise(position)),
                false if is_length(position) => Role::Length,
                false => Role::Scalar,
            },
        )
        .collect()
}

impl Variant {
    /// A workload's launch, in at most so many work-groups along each dimension.
    pub fn of(workload: &Workload, what: &str, groups: u32) -> Variant {
        let part = |given: &ArgumentSpec| match given {
            ArgumentSpec::Scalar(ty, bits) => Part::Scalar(*ty, *bits),
            ArgumentSpec::Part { of, start } => {
                let of_buffer = workload.given.get(*of);
                let (element, length, fill, compare) = match of_buffer {
                    Some(ArgumentSpec::Input {
                        element,
                        length,
                        fill,
                    }) => (*element, *length, fill.clone(), None),
                    Some(ArgumentSpec::Output {
                        element,
                        length,
                        fill,
                        compare,
                    }) => (*element, *length, fill.clone(), Some(*compare)),
                    _ => (Type::I8, 0, Fill::Uninitialized, None),
                };
                Part::Buffer(Contents {
                    element,
                    length,
                    fill: Own::new(element, length, fill).changed(&Change::Nothing),
                    compare,
                    same_as: Some(*of),
                    start: *start,
                })
            }
            ArgumentSpec::Input {
                element,
                length,
                fill,
            } => Part::Buffer(Contents {
                element: *element,
                length: *length,
                fill: Own::new(*element, *length, fill.clone()).changed(&Change::Nothing),
                compare: None,
                same_as: None,
                start: 0,
            }),
            ArgumentSpec::Output {
                element,
                length,
                fill,
                compare,
            } => Part::Buffer(Contents {
                element: *element,
                length: *length,
                fill: Own::new(*element, *length, fill.clone()).changed(&Change::Nothing),
                compare: Some(*compare),
                same_as: None,
                start: 0,
            }),
        };
        // Of several dimensions only the first keeps more than one.
        let [x, y, z] = workload.groups;
        Variant {
            what: what.to_owned(),
            groups: [x.min(groups), y.min(1), z.min(1)],
            group: workload.group,
            shared_bytes: None,
            parts: workload.given.iter().map(part).collect(),
        }
    }

    /// The same, made in a further step.
    pub fn also(&mut self, what: impl std::fmt::Display) {
        if !self.what.is_empty() {
            self.what.push_str(", ");
        }
        self.what.push_str(&what.to_string());
    }

    /// The buffer of a parameter.
    pub fn buffer(&self, position: usize) -> Option<&Contents> {
        match self.parts.get(position) {
            Some(Part::Buffer(contents)) => Some(contents),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn buffer_mut(&mut self, position: usize) -> Option<&mut Contents> {
        match self.parts.get_mut(position) {
            Some(Part::Buffer(contents)) => Some(contents),
            _ => None,
        }
    }

    /// The type and bits of a scalar.
    pub fn scalar(&self, position: usize) -> Option<(Type, u64)> {
        match self.parts.get(position) {
            Some(Part::Scalar(ty, bits)) => Some((*ty, *bits)),
            _ => None,
        }
    }

    /// Gives a scalar other bits.
    pub fn set(&mut self, position: usize, value: u64) {
        if let Some(Part::Scalar(ty, bits)) = self.parts.get_mut(position) {
            *bits = value & ty.mask();
        }
    }

    /// The parameter whose memory a parameter gets: its own, or an earlier one's.
    pub fn memory_of(&self, position: usize) -> usize {
        match self.buffer(position).and_then(|contents| contents.same_as) {
            Some(earlier) => self.memory_of(earlier),
            None => position,
        }
    }

    /// How many elements after the first of its memory a parameter points to.
    pub fn start(&self, position: usize) -> u64 {
        self.buffer(position).map_or(0, |contents| contents.start)
    }

    /// The memories in the order in which the engine numbers them, each with its first parameter.
    pub fn memories(&self) -> Vec<usize> {
        let buffers = (0..self.parts.len()).filter(|&position| self.buffer(position).is_some());
        let mut memories = Vec::new();
        for position in buffers {
            let memory = self.memory_of(position);
            if !memories.contains(&memory) {
                memories.push(memory);
            }
        }
        memories
    }

    /// Whether any parameter that reaches a memory may write it.
    pub fn is_written(&self, memory: usize) -> bool {
        (0..self.parts.len()).any(|position| {
            self.memory_of(position) == memory
                && self
                    .buffer(position)
                    .is_some_and(|contents| contents.compare.is_some())
        })
    }

    /// The launch on new memory, and that memory by parameter. `kept` gives memory that is there already.
    ///
    /// # Errors
    /// A buffer is too large.
    pub fn bind(
        &self,
        steps: u64,
        kept: impl Fn(usize) -> Option<Arc<BufferMemory>>,
    ) -> Result<(Launch, Vec<Option<Arc<BufferMemory>>>)> {
        let mut memories: Vec<Option<Arc<BufferMemory>>> = vec![None; self.parts.len()];
        let mut buffers: Vec<Option<Buffer>> = vec![None; self.parts.len()];
        for position in self.memories() {
            let Some(Contents {
                element,
                length,
                fill,
                ..
            }) = self.buffer(position)
            else {
                continue;
            };
            let memory = match kept(position) {
                Some(memory) => memory,
                None => Arc::new(BufferMemory::new(*element, *length, fill.clone())?),
            };
            let implementation: Arc<dyn std::any::Any + Send + Sync> = Arc::clone(&memory) as _;
            buffers[position] = Some(Buffer::new(*element, *length, implementation));
            memories[position] = Some(memory);
        }
        let argument = |(position, part): (usize, &Part)| match part {
            Part::Scalar(ty, bits) => Some(Argument::Scalar(*ty, *bits)),
            Part::Buffer(contents) => {
                let buffer = buffers[self.memory_of(position)].clone();
                buffer.map(|buffer| match contents.start {
                    0 => Argument::Buffer(buffer),
                    start => Argument::Part(buffer, start),
                })
            }
        };
        let launch = Launch {
            groups: self.groups,
            group: self.group,
            arguments: self.parts.iter().enumerate().filter_map(argument).collect(),
            sub_group_size: None,
            operation_limit: Some(steps),
            first_groups: None,
            memory: Vec::new(),
            print_limits: PrintLimits::default(),
        };
        Ok((launch, memories))
    }
}
