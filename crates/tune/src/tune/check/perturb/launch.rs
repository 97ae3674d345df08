//! A derived launch: its geometry, scalars and buffers.

use std::sync::Arc;

use super::data::{Change, Own};
use super::pointers::Pointers;
use crate::device::sim::functional::BufferMemory;
use crate::device::{Argument, Buffer, Fill, Launch};
use crate::error::Result;
use crate::ir::line::PrintLimits;
use crate::ir::{Kernel, Type};
use crate::tune::check::compare::Compare;
use crate::tune::subject::captured::data::follows_numbers;
use crate::tune::subject::workload::{ArgumentSpec, PlacedMemory, Workload};

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// How it was made: `n = 31, indices permuted`.
    pub what: String,
    pub groups: [u32; 3],
    pub group: [u32; 3],
    /// Bytes of dynamic shared memory, where they are not those that the kernel was read with.
    pub shared_bytes: Option<u32>,
    /// One for each parameter, then the memory at addresses of a program's choosing.
    pub parts: Vec<Part>,
}

/// A parameter's argument, or memory that parameters lead to.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Scalar(Type, u64),
    Buffer(Contents),
    /// Never another one: a pointer into the memory of a captured launch.
    Given(Argument),
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
    /// Where it lies, if it is no parameter's. It is as long as it is.
    pub place: Option<Place>,
    /// The words in it that are pointers.
    pub pointers: Option<Arc<Pointers>>,
}

/// The place of memory that pointers in memory lead to.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub address: u64,
    /// Its name for people.
    pub name: Arc<str>,
}

/// The role of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// One that stays as it is.
    Given,
    Scalar,
    /// The length of a buffer, the last that names it.
    Length,
    Buffer(Promise),
}

/// A kernel's knowledge of a buffer's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    Nothing,
    /// It has this many elements.
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
    /// A workload's launch, in at most this many work-groups along each dimension.
    pub(crate) fn of(workload: &Workload, what: &str, groups: u32) -> Variant {
        // A kernel that follows no pointers in memory needs none of the program's addresses.
        let placed = workload
            .placed
            .as_ref()
            .filter(|_| follows_numbers(&workload.kernel));
        let pointers = placed.map(|placed| Arc::new(Pointers::new(placed)));
        let contents = |element: Type, length: u64, fill: &Fill, compare: Option<Compare>| {
            let own = Own::new(element, length, fill.clone());
            Contents {
                element,
                length,
                fill: match (fill, &pointers) {
                    (Fill::Bytes(_), Some(pointers)) => own.moved(Arc::clone(pointers)),
                    _ => own.changed(&Change::Nothing),
                },
                compare,
                same_as: None,
                start: 0,
                place: None,
                pointers: pointers.clone(),
            }
        };
        let buffer = |given: Option<&ArgumentSpec>| match given {
            Some(ArgumentSpec::Input {
                element,
                length,
                fill,
            }) => contents(*element, *length, fill, None),
            Some(ArgumentSpec::Output {
                element,
                length,
                fill,
                compare,
            }) => contents(*element, *length, fill, Some(*compare)),
            _ => contents(Type::I8, 0, &Fill::Uninitialized, None),
        };
        let moved = |address: Option<u64>| pointers.as_ref()?.moved(address?);
        let part = |(position, given): (usize, &ArgumentSpec)| match given {
            ArgumentSpec::Scalar(Type::I64, bits) if let Some(address) = moved(Some(*bits)) => {
                Part::Given(Argument::Scalar(Type::I64, address))
            }
            ArgumentSpec::Scalar(ty, bits) => Part::Scalar(*ty, *bits),
            _ if let Some(address) = moved(workload.pointer(position)) => {
                Part::Given(Argument::Address(address))
            }
            ArgumentSpec::Part { of, start } => Part::Buffer(Contents {
                same_as: Some(*of),
                start: *start,
                ..buffer(workload.given.get(*of))
            }),
            own => Part::Buffer(buffer(Some(own))),
        };
        let memory = placed.iter().flat_map(|placed| &placed.memory);
        let placed =
            memory
                .filter(|own| !own.bytes.is_empty())
                .map(|PlacedMemory { name, address, bytes }| {
                    let element = match bytes.len().is_multiple_of(4) {
                        true => Type::I32,
                        false => Type::I8,
                    };
                    let length = bytes.len() as u64 / u64::from(element.bytes());
                    Part::Buffer(Contents {
                        place: moved(Some(*address)).map(|address| Place {
                            address,
                            name: name.as_str().into(),
                        }),
                        ..contents(
                            element,
                            length,
                            &Fill::Bytes(Arc::clone(bytes)),
                            Some(Compare::Bits),
                        )
                    })
                });
        // Of several dimensions only the first keeps more than one.
        let [x, y, z] = workload.groups;
        Variant {
            what: what.to_owned(),
            groups: [x.min(groups), y.min(1), z.min(1)],
            group: workload.group,
            shared_bytes: None,
            parts: workload
                .given
                .iter()
                .enumerate()
                .map(part)
                .chain(placed)
                .collect(),
        }
    }

    /// The role of each part.
    pub(crate) fn roles(&self, kernel: &Kernel) -> Vec<Role> {
        let mut roles = roles(kernel);
        roles.resize(self.parts.len(), Role::Buffer(Promise::Nothing));
        for (role, part) in roles.iter_mut().zip(&self.parts) {
            if matches!(part, Part::Given(_)) {
                *role = Role::Given;
            }
        }
        roles
    }

    /// The names of the parts.
    pub(crate) fn names(&self, kernel: &Kernel) -> Vec<String> {
        let placed = self.parts.iter().filter_map(|part| match part {
            Part::Buffer(contents) => contents.place.as_ref(),
            _ => None,
        });
        let params = kernel.params.iter().map(|param| param.name.clone());
        params.chain(placed.map(|place| place.name.to_string())).collect()
    }

    /// The same, made in a further step.
    pub(crate) fn also(&mut self, what: impl std::fmt::Display) {
        if !self.what.is_empty() {
            self.what.push_str(", ");
        }
        self.what.push_str(&what.to_string());
    }

    /// The buffer of a parameter.
    pub(crate) fn buffer(&self, position: usize) -> Option<&Contents> {
        match self.parts.get(position) {
            Some(Part::Buffer(contents)) => Some(contents),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn buffer_mut(&mut self, position: usize) -> Option<&mut Contents> {
        match self.parts.get_mut(position) {
            Some(Part::Buffer(contents)) => Some(contents),
            _ => None,
        }
    }

    /// The type and bits of a scalar.
    pub(crate) fn scalar(&self, position: usize) -> Option<(Type, u64)> {
        match self.parts.get(position) {
            Some(Part::Scalar(ty, bits)) => Some((*ty, *bits)),
            _ => None,
        }
    }

    /// Gives a scalar other bits.
    pub(crate) fn set(&mut self, position: usize, value: u64) {
        if let Some(Part::Scalar(ty, bits)) = self.parts.get_mut(position) {
            *bits = value & ty.mask();
        }
    }

    /// The parameter whose memory a parameter gets: its own, or an earlier one's.
    pub(crate) fn memory_of(&self, position: usize) -> usize {
        match self.buffer(position).and_then(|contents| contents.same_as) {
            Some(earlier) => self.memory_of(earlier),
            None => position,
        }
    }

    /// How many elements after the first of its memory a parameter points to.
    pub(crate) fn start(&self, position: usize) -> u64 {
        self.buffer(position).map_or(0, |contents| contents.start)
    }

    /// The memories in the order in which the engine numbers them, each with its first parameter.
    pub(crate) fn memories(&self) -> Vec<usize> {
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
    pub(crate) fn is_written(&self, memory: usize) -> bool {
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
    pub(crate) fn bind(
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
        let mut placed = Vec::new();
        let mut arguments = Vec::new();
        for (position, part) in self.parts.iter().enumerate() {
            match part {
                Part::Scalar(ty, bits) => arguments.push(Argument::Scalar(*ty, *bits)),
                Part::Given(argument) => arguments.push(argument.clone()),
                Part::Buffer(contents) => {
                    let Some(buffer) = buffers[self.memory_of(position)].clone() else {
                        continue;
                    };
                    match (&contents.place, contents.start) {
                        (Some(place), _) => placed.push((place.address, buffer)),
                        (None, 0) => arguments.push(Argument::Buffer(buffer)),
                        (None, start) => arguments.push(Argument::Part(buffer, start)),
                    }
                }
            }
        }
        let launch = Launch {
            groups: self.groups,
            group: self.group,
            arguments,
            sub_group_size: None,
            operation_limit: Some(steps),
            first_groups: None,
            memory: placed,
            print_limits: PrintLimits::default(),
        };
        Ok((launch, memories))
    }
}
