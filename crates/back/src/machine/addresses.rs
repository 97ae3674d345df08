//! The costs of addresses.

use super::arithmetic::{Cost, integer};
use super::facts::Facts;
use super::isa::intel::recipe as recipe_intel;
use super::program::Class;
use super::recipe::{self, single};
use super::target::Family;
use crate::ir::{BinaryOp, OpKind, Space, Type, Value};

/// The cost of an address that is computed from a base and an index.
pub(super) fn address_cost(
    facts: &Facts<'_>,
    result: Value,
    base: Value,
    index: Value,
    scale: u32,
    offset: i64,
) -> Cost {
    let constant = facts.kernel.as_constant(index).is_some();
    let global = matches!(facts.kernel.ty(base), Type::Ptr(Space::Global | Space::Generic));
    if facts.target.family == Family::Intel {
        let fits = shifted_fits(facts, index, scale);
        return intel_address_cost(constant, global, scale, offset, fits);
    }
    let in_loads = facts.uses[result]
        .iter()
        .all(|user| names_memory(&user.by.kind, result));
    match (constant, global) {
        // A load holds a constant of 24 bits.
        (true, _) if in_loads && offset.unsigned_abs() < 1 << 23 => Cost::Free,
        (true, global) => Cost::Recipe(integer(facts, global)),
        (false, true) if facts.widened(index).is_some() => Cost::Recipe(single(Class::IntMultiply)),
        (false, true) if scale.is_power_of_two() => Cost::Recipe(recipe::CARRIED_64),
        (false, true) => Cost::Recipe(recipe::SCALE_64),
        (false, false) if scale == 1 && facts.is_immediate(base) && in_loads => Cost::Free,
        (false, false) => Cost::Recipe(single(Class::Int32)),
    }
}

/// Whether an index was masked in 32 bits so that it can be scaled there, before it is widened.
fn shifted_fits(facts: &Facts<'_>, index: Value, scale: u32) -> bool {
    let Some((narrow, false)) = facts.widened(index) else {
        return false;
    };
    let Some(OpKind::Binary(BinaryOp::And, a, b)) = facts.kind(narrow) else {
        return false;
    };
    let mask = [*a, *b]
        .into_iter()
        .find_map(|operand| facts.kernel.as_constant(operand));
    mask.is_some_and(|mask| mask.saturating_mul(u64::from(scale)) <= u64::from(u32::MAX))
}

/// Messages hold no constant: every address is computed.
fn intel_address_cost(constant: bool, global: bool, scale: u32, offset: i64, fits: bool) -> Cost {
    let class = if global { Class::Int64 } else { Class::Int32 };
    match (constant, scale) {
        (true, _) if offset == 0 => Cost::Free,
        (true, _) | (false, 1) => Cost::Recipe(single(class)),
        (false, _) if global && fits => Cost::Recipe(recipe_intel::SHIFTED_ADDRESS_64),
        (false, _) if global => Cost::Recipe(recipe_intel::SCALED_ADDRESS_64),
        (false, _) => Cost::Recipe(recipe_intel::SCALED_ADDRESS_32),
    }
}

/// Whether an operation uses a pointer only to access memory there.
fn names_memory(kind: &OpKind, pointer: Value) -> bool {
    let mut uses = 0;
    kind.for_each_operand(|operand| uses += u32::from(operand == pointer));
    uses == 1 && kind.effects().pointers().any(|own| own == pointer)
}
