//! Pointers to strings that the kernel only passes to the driver: formats of `printf`, messages of `assert`.
//!
//! Such a text decides nothing that the kernel computes, so that a module with a copy of its own serves as well.

use std::collections::HashSet;

use crate::ir::carried::Carried;
use crate::ir::{Kernel, OpKind, Value};

/// Whether a pointer, in any form, is only passed to the driver's printing functions.
pub fn is_message(kernel: &Kernel, pointer: Value) -> bool {
    let mut forms = HashSet::from([pointer]);
    let mut only_printed = true;
    // Operations come after their operands, except around loops; a text that is carried around one is refused below.
    kernel.body.walk(&mut |op| {
        let mut is_used = false;
        op.kind
            .for_each_operand(|operand| is_used |= forms.contains(&operand));
        if !is_used {
            return;
        }
        match &op.kind {
            OpKind::Opaque(what, _) if matches!(*what.does, Carried::Print | Carried::Assert) => {}
            kind if kind.is_pure() && op.results.iter().all(|&result| is_address(kernel, result)) => {
                forms.extend(op.results.iter().copied());
            }
            _ => only_printed = false,
        }
    });
    only_printed
}

/// Whether a value can be an address: a comparison's result, for one, would carry the address on unseen.
fn is_address(kernel: &Kernel, value: Value) -> bool {
    let ty = kernel.ty(value);
    ty.space().is_some() || ty.bytes() == 8
}
