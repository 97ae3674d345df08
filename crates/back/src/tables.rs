//! Functions by tables, for devices that do not have them as instructions.
//!
//! Before: `%y = table.exp2 %x`. After: the expansion from [`math::table`](crate::math::table): integer operations and a table
//! look-up, the last of which defines `%y`.

use std::cell::RefCell;

use crate::ir::{Builder, Kernel, Op, OpKind, Region, UnaryOp, Value};
use crate::math::{Emit, table};

/// Writes out every function by a table. The kernel stays verified.
pub(crate) fn expand(kernel: &mut Kernel) {
    let mut any = false;
    kernel.body.walk(&mut |op| any |= function(&op.kind).is_some());
    if any {
        let mut body = std::mem::take(&mut kernel.body);
        region(kernel, &mut body);
        kernel.body = body;
    }
}

fn function(kind: &OpKind) -> Option<(UnaryOp, Value)> {
    match kind {
        OpKind::Unary(op @ (UnaryOp::TableExp2 | UnaryOp::TableLog2 | UnaryOp::TableReciprocal), x) => {
            Some((*op, *x))
        }
        _ => None,
    }
}

fn region(kernel: &mut Kernel, body: &mut Region) {
    let ops = std::mem::take(&mut body.ops);
    for mut op in ops {
        for inner in op.kind.regions_mut() {
            region(kernel, inner);
        }
        match function(&op.kind) {
            Some((function, x)) => body.ops.extend(expanded(kernel, &op, function, x)),
            None => body.ops.push(op),
        }
    }
}

fn expanded(kernel: &mut Kernel, op: &Op, function: UnaryOp, x: Value) -> Vec<Op> {
    let mut builder = Builder::new(kernel, op.place);
    let cell = RefCell::new(&mut builder);
    let emit = Emit::new(&cell);
    let x = emit.number(x);
    match function {
        UnaryOp::TableExp2 => table::exp2(x),
        UnaryOp::TableLog2 => table::log2(x),
        _ => table::reciprocal(x),
    };
    let mut ops = builder.finish().ops;
    // The selection that comes last is the result.
    if let Some(last) = ops.last_mut() {
        last.results.clone_from(&op.results);
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Type, eval, verify};
    use crate::math::HostNumber;

    /// Arguments of every exponent and sign, their significands evenly spread.
    fn arguments() -> impl Iterator<Item = f32> {
        (0..1u32 << 9).flat_map(|upper| {
            let spread = (0..1u32 << 23).step_by(3_571);
            spread.map(move |lower| f32::from_bits(upper << 23 | lower))
        })
    }

    #[test]
    fn what_is_written_out_computes_the_same_bits() {
        for x in arguments() {
            let number = HostNumber::on_host(x);
            for (written, meant) in [
                (table::exp2(number), eval::table::exp2(x)),
                (table::log2(number), eval::table::log2(x)),
                (table::reciprocal(number), eval::table::reciprocal(x)),
            ] {
                let (written, meant): (f32, f32) = (written.raw(), meant);
                assert_eq!(written.to_bits(), meant.to_bits(), "{x:e}");
            }
        }
    }

    #[test]
    fn a_kernel_has_none_left_and_is_in_order() {
        for op in [UnaryOp::TableExp2, UnaryOp::TableLog2, UnaryOp::TableReciprocal] {
            let mut kernel = Kernel::new("k");
            let pointer = kernel.value(Type::Ptr(crate::ir::Space::Global));
            kernel.params.push(crate::ir::Param {
                name: "p".to_owned(),
                value: pointer,
                facts: None,
            });
            let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
            let x = b.f32(0.5);
            let y = b.unary(op, x);
            b.store(pointer, y);
            b.return_();
            kernel.body = b.finish();
            expand(&mut kernel);
            verify(&kernel).expect("it is in order");
            kernel.body.walk(&mut |op| assert!(function(&op.kind).is_none()));
        }
    }
}
