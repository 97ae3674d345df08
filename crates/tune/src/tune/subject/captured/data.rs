//! The arguments of a captured launch, as a launch file's.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::analysis::definitions::Definitions;
use crate::analysis::roots;
use crate::capture::Captured;
use crate::device::Fill;
use crate::error::{Error, Result};
use crate::front::ptx::WORKSPACE_BYTES;
use crate::ir::{Kernel, Param, Space};
use crate::tune::subject::workload::{ArgumentSpec, Placed};

/// The arguments of a captured launch.
#[derive(Debug)]
pub(crate) struct CapturedData {
    pub(super) captured: Arc<Captured>,
    /// By the kernel's name of the parameter.
    pub(super) values: BTreeMap<String, Value>,
    /// Where the launch means something only in its own address space.
    pub(super) placed: Option<Arc<Placed>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A scalar's bits.
    Scalar(u64),
    /// This many bytes inside the allocation of this number.
    Inside(usize, u64),
    /// A pointer that leads into no allocation.
    Nowhere(u64),
    /// The variable of this number.
    Variable(usize),
    /// Memory that is no allocation of the program's, and holds these bytes: a variable that was not captured, as the module
    /// says, or a structure as the launch passes it.
    Constant(Arc<[u8]>),
    /// A cooperative launch's workspace, which is the driver's.
    Workspace,
}

/// The address of a cooperative launch's workspace if the launch runs in its own address space. No allocation of a program is
/// there.
pub(super) const WORKSPACE: u64 = 0x0f_0000_0000;

impl PartialEq for CapturedData {
    fn eq(&self, other: &CapturedData) -> bool {
        std::ptr::eq(self, other)
    }
}

impl CapturedData {
    /// A parameter's argument.
    pub(in crate::tune) fn given(&self, kernel: &Kernel, param: &Param) -> Result<ArgumentSpec> {
        let value = self.values.get(&param.name);
        let value = value.ok_or_else(|| Error::bug("a parameter of a captured launch is lost"))?;
        let ty = kernel.ty(param.value);
        let Some(facts) = param.facts else {
            return match value {
                Value::Scalar(bits) => Ok(ArgumentSpec::Scalar(ty, *bits & ty.mask())),
                _ => Err(Error::bug("a scalar of a captured launch is a pointer")),
            };
        };
        let size = u64::from(facts.element.bytes()).max(1);
        let workspace: Arc<[u8]> = vec![0; WORKSPACE_BYTES as usize].into();
        let (bytes, offset) = match value {
            Value::Workspace => (&workspace, 0),
            Value::Inside(number, offset) => (&self.captured.memory[*number].before, *offset),
            Value::Variable(number) => (&self.captured.variables[*number].memory.before, 0),
            Value::Constant(bytes) => (bytes, 0),
            Value::Nowhere(_) | Value::Scalar(_) => {
                let nothing = ArgumentSpec::input(facts.element, 0, Fill::Bytes(Arc::from([])));
                return Ok(nothing);
            }
        };
        let length = (bytes.len() as u64 - offset) / size;
        let whole = offset == 0 && length * size == bytes.len() as u64;
        let fill = Fill::Bytes(match whole {
            true => Arc::clone(bytes),
            false => bytes[offset as usize..][..(length * size) as usize].into(),
        });
        Ok(ArgumentSpec::buffer(&facts, length, fill))
    }

    /// The address space, where the launch needs it.
    pub(in crate::tune) fn placed(&self) -> Option<Arc<Placed>> {
        self.placed.clone()
    }
}

/// Whether a kernel follows numbers as addresses: those that it loads, or is given among others.
pub(in crate::tune) fn follows_numbers(kernel: &Kernel) -> bool {
    let definitions = Definitions::of(kernel);
    let mut found = false;
    kernel.body.walk(&mut |op| {
        for pointer in op.kind.effects().pointers() {
            let is_global = !matches!(kernel.ty(pointer).space(), Some(Space::Shared | Space::Private));
            found |= is_global && roots::root(kernel, &definitions, pointer).is_none();
        }
    });
    found
}
