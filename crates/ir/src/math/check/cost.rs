//! How many operations an expansion takes.

use std::collections::HashMap;

use super::CONTRACTS;
use crate::ir::{BinaryOp, Builder, ConvertOp, Kernel, Op, OpKind, Type, UnaryOp, Value};
use crate::math::Function;

/// Operations left after common subexpressions are merged: all, and those on doubles.
///
/// Moves between the halves of a double and its two registers are not counted: bit casts, truncation and extension of integers,
/// 64-bit shifts by 32, 64-bit `or`. Nor are sign changes: operands carry them. A branch counts as one plus its common path; a
/// loop counts as one: its body is rarely run.
fn cost(function: Function, ty: Type) -> (usize, usize) {
    let mut kernel = Kernel::new(function.name());
    let arguments: Vec<Value> = (0..function.arguments()).map(|_| kernel.value(ty)).collect();
    let mut builder = Builder::new(&mut kernel, Kernel::NOWHERE);
    function.emit(&mut builder, &arguments);
    let region = builder.finish();

    let mut leaders: HashMap<Value, Value> = HashMap::new();
    let mut constants: HashMap<(Type, u64), Value> = HashMap::new();
    let mut seen: HashMap<String, Value> = HashMap::new();
    let (mut all, mut doubles) = (0, 0);
    let mut open: Vec<&Op> = region.ops.iter().rev().collect();
    while let Some(op) = open.pop() {
        match &op.kind {
            OpKind::If { then, .. } => {
                all += 1;
                open.extend(then.ops.iter().rev());
                continue;
            }
            OpKind::Loop { .. } => {
                all += 1;
                continue;
            }
            OpKind::Break(..) => continue,
            _ => {}
        }
        assert!(op.kind.is_pure(), "expansions are pure");
        let operand_type = |index: usize| {
            let mut types = Vec::new();
            op.kind.for_each_operand(|value| types.push(kernel.ty(value)));
            types.get(index).copied()
        };
        let result_type = kernel.ty(op.results[0]);
        let mut kind = op.kind.clone();
        kind.map_operands(|value| match kernel.as_constant(value) {
            Some(bits) => *constants.entry((kernel.ty(value), bits)).or_insert(value),
            None => leaders.get(&value).copied().unwrap_or(value),
        });
        let key = format!("{kind:?} {result_type}");
        if let Some(&leader) = seen.get(&key) {
            leaders.insert(op.results[0], leader);
            continue;
        }
        seen.insert(key, op.results[0]);
        let is_move = match kind {
            OpKind::Convert(ConvertOp::Bits | ConvertOp::Truncate | ConvertOp::ExtendU, _) => true,
            OpKind::Binary(BinaryOp::Shl | BinaryOp::ShrU, _, count) => {
                result_type == Type::I64 && kernel.as_constant(count) == Some(32)
            }
            OpKind::Binary(BinaryOp::Or, ..) => result_type == Type::I64,
            OpKind::Unary(UnaryOp::FNeg | UnaryOp::FAbs, _) => true,
            _ => false,
        };
        if !is_move {
            all += 1;
            let selects = matches!(kind, OpKind::Select(..));
            doubles += usize::from(!selects && operand_type(0) == Some(Type::F64));
        }
    }
    (all, doubles)
}

#[test]
fn costs_are_as_documented() {
    let costs = |function| (cost(function, Type::F32).0, cost(function, Type::F64));
    let found: Vec<_> = CONTRACTS
        .iter()
        .map(|c| (c.function, costs(c.function)))
        .collect();
    let promised: Vec<_> = CONTRACTS
        .iter()
        .map(|c| (c.function, (c.cost_f32, c.cost_f64)))
        .collect();
    assert_eq!(found, promised);
}
