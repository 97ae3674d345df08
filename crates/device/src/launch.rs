//! Launches: geometry and arguments, and the checks that every device makes alike.

use serde::{Deserialize, Serialize};

use super::{Buffer, Description};
use crate::analysis::definitions::Definitions;
use crate::analysis::effects::Effect;
use crate::analysis::roots::{Root, root};
use crate::ir::line::PrintLimits;
use crate::ir::{Kernel, Param, Space, Type};
use crate::{Error, Result};

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Work-groups along each dimension; dimension 0 varies fastest.
    pub groups: [u32; 3],
    /// Work-items of a work-group along each dimension.
    pub group: [u32; 3],
    /// One for each parameter of the kernel, in order.
    pub arguments: Vec<Argument>,
    /// The sub-group size, if it must be one; else the kernel's, else the device's.
    pub sub_group_size: Option<u32>,
    /// Gives up with an error when a sub-group has run this many operations; `None` for the device's own
    /// limit.
    pub operation_limit: Option<u64>,
    /// Run only this many work-groups, the first ones, as if the launch were stopped then; only a simulator can do so. Times
    /// are of the whole launch.
    pub first_groups: Option<u64>,
    /// Buffers that lie at addresses of a program's choosing, as a capture or a driver has them: a pointer inside a
    /// structure or a buffer leads there. Each with its first byte's address. Only simulators have such launches.
    pub memory: Vec<(u64, Buffer)>,
    /// The capacity for its printed text. Only simulators can be told.
    pub print_limits: PrintLimits,
}

/// A parameter's argument.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A pointer to the buffer's first element.
    Buffer(Buffer),
    /// A pointer to an element of the buffer, by its index. Not on OpenCL devices.
    Part(Buffer, u64),
    /// A pointer that leads into no buffer, such as a null pointer, or into [`Launch::memory`]. Only on simulators.
    Address(u64),
    /// A scalar's bits.
    Scalar(Type, u64),
}

impl Argument {
    /// The buffer that it points into, and how many elements after its first.
    pub fn buffer(&self) -> Option<(&Buffer, u64)> {
        match self {
            Argument::Buffer(buffer) => Some((buffer, 0)),
            Argument::Part(buffer, start) => Some((buffer, *start)),
            Argument::Address(_) | Argument::Scalar(..) => None,
        }
    }
}

impl Launch {
    /// A launch along one dimension: `groups` work-groups of `group` work-items.
    pub fn new(groups: u32, group: u32, arguments: Vec<Argument>) -> Launch {
        Launch {
            groups: [groups, 1, 1],
            group: [group, 1, 1],
            arguments,
            sub_group_size: None,
            operation_limit: None,
            first_groups: None,
            memory: Vec::new(),
            print_limits: PrintLimits::default(),
        }
    }

    /// Checks that all of it is to run, for devices that run nothing less.
    ///
    /// # Errors
    /// [`Launch::first_groups`] says otherwise.
    pub fn check_whole(&self) -> Result<()> {
        let is_placed = !self.memory.is_empty()
            || self
                .arguments
                .iter()
                .any(|argument| matches!(argument, Argument::Address(_)));
        if is_placed {
            return Err(
                Error::usage("a launch on memory at addresses of a program's choosing")
                    .accepted("a simulated device, or buffers"),
            );
        }
        if self.print_limits != PrintLimits::default() {
            return Err(Error::usage("a launch with its own limits for printed text")
                .accepted("a simulated device, or the device's own limits"));
        }
        match self.first_groups {
            None => Ok(()),
            Some(groups) => Err(
                Error::usage(format!("a launch of only the first {groups} work-groups"))
                    .accepted("a simulated device, or all of them"),
            ),
        }
    }

    /// Work-items of a work-group. Saturates.
    pub fn group_items(&self) -> u64 {
        product(self.group)
    }

    /// Work-groups. Saturates.
    pub fn group_count(&self) -> u64 {
        product(self.groups)
    }

    /// The sub-group size this launch runs with.
    pub fn sub_group_size(&self, kernel: &Kernel, device: &Description) -> u32 {
        let asked = self.sub_group_size;
        asked.unwrap_or_else(|| device.sub_group_size(kernel))
    }

    /// Checks a launch of a kernel on a device: geometry, required sizes, shared memory, number and types of the arguments, and
    /// the parameters' promises (length, aliasing, read-only).
    ///
    /// # Errors
    /// The first error, and what would be accepted.
    pub fn check(&self, kernel: &Kernel, device: &Description) -> Result<()> {
        self.check_geometry(kernel, device)?;
        self.check_arguments(kernel)?;
        self.check_promises(kernel)
    }

    fn check_geometry(&self, kernel: &Kernel, device: &Description) -> Result<()> {
        let Launch { groups, group, .. } = *self;
        if product(groups) == 0 || product(group) == 0 {
            return Err(Error::usage(format!(
                "a launch of {} work-groups of {} work-items is empty",
                spelled(groups),
                spelled(group)
            ))
            .accepted("every dimension is at least 1"));
        }
        if product(groups) > 1 << 32 {
            return Err(Error::usage(format!(
                "a launch of {} work-groups is too large",
                spelled(groups)
            ))
            .accepted("at most 2^32 work-groups"));
        }
        let fits = (0..3).all(|axis| group[axis] <= device.max_group_dimensions[axis]);
        if product(group) > u64::from(device.max_group_size) || !fits {
            return Err(Error::device(format!(
                "a work-group of {} work-items is too large for {}",
                spelled(group),
                device.name
            ))
            .accepted(format!(
                "at most {} work-items, {} along the dimensions",
                device.max_group_size,
                spelled(device.max_group_dimensions)
            )));
        }
        if let Some(required) = kernel.group_size.filter(|&required| required != group) {
            return Err(Error::usage(format!(
                "`{}` cannot run with work-groups of {}",
                kernel.shown(),
                spelled(group)
            ))
            .accepted(format!("it requires {}", spelled(required))));
        }
        let size = self.sub_group_size(kernel, device);
        if !device.sub_group_sizes.contains(&size) {
            let sizes: Vec<String> = device.sub_group_sizes.iter().map(u32::to_string).collect();
            return Err(
                Error::device(format!("{} has no sub-groups of {size} work-items", device.name))
                    .accepted(format!("it has {}", sizes.join(", "))),
            );
        }
        if kernel.sub_group_size.is_some_and(|required| required != size) {
            return Err(Error::usage(format!(
                "`{}` cannot run with sub-groups of {size} work-items",
                kernel.shown()
            )));
        }
        device.check_blocks(kernel, product(group), size)?;
        let shared = kernel.shared_bytes();
        if shared > device.max_shared_bytes {
            return Err(Error::device(format!(
                "`{}` takes {shared} bytes of shared memory a work-group",
                kernel.shown()
            ))
            .accepted(format!("{} has at most {}", device.name, device.max_shared_bytes)));
        }
        Ok(())
    }

    fn check_arguments(&self, kernel: &Kernel) -> Result<()> {
        if self.arguments.len() != kernel.params.len() {
            return Err(Error::usage(format!(
                "`{}` was given {} arguments",
                kernel.shown(),
                self.arguments.len()
            ))
            .accepted(format!("it takes {}", kernel.params.len())));
        }
        for (param, argument) in kernel.params.iter().zip(&self.arguments) {
            let ty = kernel.ty(param.value);
            let (given, fits) = match argument {
                Argument::Scalar(given, _) => (format!("`{given}`"), *given == ty),
                Argument::Address(_) => ("an address".to_owned(), ty.is_pointer()),
                // Its target may be seen as another type there. A kernel that only compares pointers takes them for numbers.
                Argument::Part(buffer, _) => (
                    format!("a part of a buffer of `{}`", buffer.element()),
                    ty.is_pointer() || ty == Type::I64,
                ),
                Argument::Buffer(buffer) => {
                    let element = param.facts.map_or(buffer.element(), |facts| facts.element);
                    let same_size = element.bytes() == buffer.element().bytes();
                    (
                        format!("a buffer of `{}`", buffer.element()),
                        ty.is_pointer() && same_size,
                    )
                }
            };
            if !fits {
                let wanted = match param.facts {
                    Some(facts) => format!("a buffer of `{}`", facts.element),
                    None if ty.is_pointer() => "a buffer".to_owned(),
                    None => format!("`{ty}`"),
                };
                return Err(
                    Error::usage(format!("parameter `{}` was given {given}", param.name))
                        .accepted(format!("it takes {wanted}")),
                );
            }
        }
        Ok(())
    }

    fn check_promises(&self, kernel: &Kernel) -> Result<()> {
        let pointers = || {
            let both = kernel.params.iter().zip(&self.arguments);
            both.filter_map(|(param, argument)| {
                argument.buffer().map(|(buffer, start)| (param, buffer, start))
            })
        };
        for (param, buffer, start) in pointers() {
            if start > buffer.length() {
                return Err(Error::usage(format!(
                    "parameter `{}` points {start} elements into a buffer of {}",
                    param.name,
                    buffer.length()
                )));
            }
            let Some(length) = param.facts.and_then(|facts| facts.length) else {
                continue;
            };
            let promised = self.scalar(kernel, length);
            let element = param.facts.map_or(buffer.element(), |facts| facts.element);
            let bytes = (buffer.length() - start).saturating_mul(u64::from(buffer.element().bytes()));
            let length = bytes / u64::from(element.bytes()).max(1);
            if let Some(promised) = promised.filter(|&promised| promised > length) {
                return Err(Error::usage(format!(
                    "the length of parameter `{}` is given as {promised} elements, its buffer has {length}",
                    param.name
                )));
            }
        }
        // Parameters may reach different bytes of one buffer where a program has placed it: the caller has checked that.
        let is_placed = |buffer: &Buffer| self.memory.iter().any(|(_, own)| own.is_same(buffer));
        // Nothing is accessed through a number.
        let accessed = || pointers().filter(|(param, ..)| kernel.ty(param.value).is_pointer());
        for (index, (param, buffer, _)) in accessed().enumerate().filter(|(_, (_, own, _))| !is_placed(own)) {
            let mut rest = accessed().skip(index + 1);
            let clash =
                rest.find(|(other, memory, _)| buffer.is_same(memory) && !may_share(kernel, param, other));
            if let Some((other, ..)) = clash {
                return Err(Error::usage(format!(
                    "parameters `{}` and `{}` were given the same buffer",
                    param.name, other.name
                ))
                .accepted("memory written through one of them must not be reachable through the other"));
            }
        }
        Ok(())
    }

    /// The number behind a length: a constant, or the argument of a scalar parameter.
    fn scalar(&self, kernel: &Kernel, value: crate::ir::Value) -> Option<u64> {
        let param = kernel.params.iter().position(|param| param.value == value);
        match param.map(|index| &self.arguments[index]) {
            Some(Argument::Scalar(_, bits)) => Some(*bits),
            Some(Argument::Buffer(_) | Argument::Part(..) | Argument::Address(_)) => None,
            None => kernel.as_constant(value),
        }
    }
}

/// Whether two pointer parameters may be given the same memory.
fn may_share(kernel: &Kernel, one: &Param, other: &Param) -> bool {
    let read_only = |param: &Param| param.facts.is_some_and(|facts| facts.read_only);
    let unaliased = |param: &Param| param.facts.is_some_and(|facts| facts.unaliased);
    match (read_only(one), read_only(other)) {
        (true, true) => true,
        _ if unaliased(one) || unaliased(other) => false,
        (false, false) => true,
        // What is read by asynchronous copies is never declared as only read.
        (true, false) => !may_write(kernel, other),
        (false, true) => !may_write(kernel, one),
    }
}

/// Whether a kernel may write the memory behind a parameter.
fn may_write(kernel: &Kernel, param: &Param) -> bool {
    let definitions = Definitions::of(kernel);
    let is_elsewhere = |pointer| {
        let space = kernel.ty(pointer).space();
        matches!(space, Some(Space::Shared | Space::Private))
    };
    definitions.effects().iter().any(|effect| match effect {
        Effect::Write(pointer, ..) => match root(kernel, &definitions, *pointer) {
            Some(Root::Param(to)) => kernel.params[to].value == param.value,
            Some(Root::Array(_)) => false,
            None => !is_elsewhere(*pointer),
        },
        Effect::Carried(_) => true,
        Effect::Barrier(_) | Effect::Acquire(_) | Effect::Observation(_) | Effect::LaunchBefore(_) => false,
    })
}

fn product(sizes: [u32; 3]) -> u64 {
    sizes
        .iter()
        .fold(1u64, |product, &size| product.saturating_mul(u64::from(size)))
}

fn spelled(sizes: [u32; 3]) -> String {
    match sizes {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}×{y}"),
        [x, y, z] => format!("{x}×{y}×{z}"),
    }
}

/// Some bytes of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The output's place among the outputs.
    pub output: usize,
    /// The first byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}
