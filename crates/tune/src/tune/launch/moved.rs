//! What a kernel does with what it loads through a parameter, where the type of the load does not say: numbers, pointers, or bits
//! that it only moves.

use std::collections::HashSet;

use crate::analysis::definitions::Definitions;
use crate::analysis::roots::{Root, root};
use crate::ir::{BinaryOp, ConvertOp, Kernel, OpKind, Space, Type, Value};

/// What the elements of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// As their type says.
    Own,
    /// Pointers, to these.
    Pointers(Type),
    /// Of this type, whose bits are loaded as integers.
    Bits(Type),
}

/// What the elements behind parameter `number`, of type `element`, are.
pub(super) fn elements(kernel: &Kernel, number: usize, element: Type) -> Elements {
    let definitions = Definitions::of(kernel);
    let from = |pointer: Value| root(kernel, &definitions, pointer);
    let (mut loaded, mut reached, mut floats) = (HashSet::new(), None, None);
    kernel.body.walk(&mut |op| {
        let OpKind::Load { ptr, .. } = op.kind else { return };
        let ty = op.results.first().map(|&result| kernel.ty(result));
        match from(ptr) {
            Some(Root::Param(own)) if own == number => loaded.extend(op.results.iter().copied()),
            Some(Root::Array(_)) if kernel.ty(ptr).space() == Some(Space::Shared) => {
                floats = floats.or(ty.filter(|ty| ty.is_float() && ty.bytes() == element.bytes()));
            }
            None => reached = reached.or(ty),
            _ => {}
        }
    });
    // Whether all uses are of pointers, of floats, or move bits.
    let (mut pointers, mut own, mut moved, mut numbers) = (false, None, false, false);
    kernel.body.walk(&mut |op| {
        let result = op.results.first().copied();
        let mut uses = false;
        op.kind
            .for_each_operand(|operand| uses |= loaded.contains(&operand));
        if !uses {
            return;
        }
        match (&op.kind, result.map(|result| kernel.ty(result))) {
            (OpKind::Convert(ConvertOp::Bits, _), Some(ty)) if ty.is_pointer() => pointers = true,
            (OpKind::Convert(ConvertOp::Bits, _), Some(ty)) if ty.is_float() => own = Some(ty),
            // The offset of what is read there.
            (OpKind::Binary(BinaryOp::Add, ..) | OpKind::NoWrap(..), _) if element == Type::I64 => {
                loaded.extend(result);
            }
            (OpKind::Store { .. }, _) => moved = true,
            _ => numbers = true,
        }
    });
    match (pointers, own, moved) {
        _ if numbers => Elements::Own,
        (true, None, false) if element == Type::I64 => Elements::Pointers(reached.unwrap_or(Type::F32)),
        (false, Some(ty), _) => Elements::Bits(ty),
        (false, None, true) => floats.map_or(Elements::Own, Elements::Bits),
        _ => Elements::Own,
    }
}
