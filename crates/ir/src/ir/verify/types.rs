//! The types of operands and results. The parser infers results with it, the verifier checks them.

use super::rule;
use super::violation::{Check, Rule, Violation};
use crate::ir::hint::{CacheHint, CacheLevel, CacheUse, HintSource, PrefetchScope};
use crate::ir::kernel::{Kernel, Value};
use crate::ir::limits;
use crate::ir::line::{self, Piece};
use crate::ir::op::{ConvertOp, Id, Meeting, OpKind, UnaryOp};
use crate::ir::opaque::{Opaque, OpaqueOperands};
use crate::ir::table::Operands;
use crate::ir::together::{AtomicOp, MemoryOrder};
use crate::ir::types::{Space, Type};

/// The types of an operation's results, if its operands are right.
///
/// `results` is the number of values that a load defines, `named` the result type of loads and conversions; the others' results
/// follow from the operands. Operations with regions and terminators have none here: their results and operands are their
/// labels'.
pub(super) fn results_of(
    kernel: &Kernel,
    kind: &OpKind,
    results: usize,
    named: Option<Type>,
) -> Check<Vec<Type>> {
    let ty = |value: &Value| kernel.ty(*value);
    let one = |ty: Type| Ok(vec![ty]);
    match kind {
        OpKind::Id(id) => id_type(*id).and_then(one),
        OpKind::ArrayAddress(array) => one(Type::Ptr(kernel.arrays[*array].space)),
        OpKind::Unary(op, a) => {
            rule::exact(*op, ty(a))?;
            unary(*op, ty(a)).and_then(one)
        }
        OpKind::Binary(op, a, b) => {
            same(op.name(), &[ty(a), ty(b)])?;
            several(op.name(), op.operands(), ty(a)).and_then(one)
        }
        OpKind::NoWrap(op, _, a, b) => {
            same(op.name(), &[ty(a), ty(b)])?;
            several(op.name(), Operands::Integer, ty(a)).and_then(one)
        }
        OpKind::Fma(a, b, c) => {
            same("fma", &[ty(a), ty(b), ty(c)])?;
            several("fma", Operands::Float, ty(a)).and_then(one)
        }
        OpKind::Compare(op, a, b) => {
            same(op.name(), &[ty(a), ty(b)])?;
            several(op.name(), op.operands(), ty(a)).and(one(Type::Bool))
        }
        OpKind::Select(cond, a, b) => {
            wanted("select", "a bool as condition", ty(cond) == Type::Bool, ty(cond))?;
            same("select", &[ty(a), ty(b)])?;
            not_token("select", ty(a)).and_then(one)
        }
        OpKind::Convert(op, a) => {
            let to = named.ok_or_else(|| Rule::Pure.broken("a conversion has one result"))?;
            convert(*op, ty(a), to).and(one(to))
        }
        OpKind::Ruled(rule, plain) => {
            let made = match (&**plain, named) {
                // Operations that require a rule have one.
                (OpKind::Unary(op, a), _) => unary(*op, ty(a)).and_then(one)?,
                (OpKind::Convert(op, a), Some(to)) => {
                    rule::conversion(*rule, *op, ty(a), to).and_then(one)?
                }
                _ => results_of(kernel, plain, results, named)?,
            };
            rule::ruled(kernel, *rule, plain, named).map(|()| made)
        }
        OpKind::Address { base, index, .. } => {
            wanted("address", "an i64 as index", ty(index) == Type::I64, ty(index))?;
            wanted("address", "a pointer as base", ty(base).is_pointer(), ty(base)).and_then(one)
        }
        OpKind::Load { ptr, cache, .. } => {
            let element = named.ok_or_else(|| access_count("load", results))?;
            access("load", ty(ptr), element, results)?;
            block("load", *cache, ty(ptr), element, results)?;
            Ok(vec![element; results])
        }
        OpKind::Store { ptr, values, cache } => {
            Rule::Access.check(!matches!(cache, CacheUse::Control(_)), || {
                format!("{} is a cache control for loads, not for a `store`", cache.name())
            })?;
            let types: Vec<Type> = values.iter().map(ty).collect();
            let &element = types.first().ok_or_else(|| access_count("store", 0))?;
            same("store", &types)?;
            access("store", ty(ptr), element, types.len())?;
            block("store", *cache, ty(ptr), element, types.len())?;
            Ok(Vec::new())
        }
        OpKind::Copy { to, from, bytes, .. } => {
            copy(ty(to), ty(from), *bytes)?;
            one(Type::Token)
        }
        OpKind::Join(tokens) => {
            if tokens.is_empty() {
                return Err(Rule::Tokens.broken("`join` takes at least one token"));
            }
            tokens.iter().try_for_each(|token| is_token("join", ty(token)))?;
            one(Type::Token)
        }
        OpKind::Wait(token) => is_token("wait", ty(token)).map(|()| Vec::new()),
        OpKind::Prefetch {
            ptr,
            bytes,
            count,
            hint,
            source,
            scope,
            ..
        } => {
            prefetch(ty(ptr), *bytes, count.as_ref().map(ty))?;
            hinted(*hint, *source, *scope).map(|()| Vec::new())
        }
        OpKind::Atomic {
            op,
            ptr,
            values,
            order,
            ..
        } => {
            let types: Vec<Type> = values.iter().map(ty).collect();
            let element = atomic(*op, ty(ptr), &types, *order, named)?;
            let results = match op {
                AtomicOp::Load => results,
                _ if op.can_be_several() && op.has_result() => types.len(),
                _ => usize::from(op.has_result()),
            };
            let moved = if op.has_result() { results } else { types.len() };
            if op.can_be_several() && moved > 1 {
                access(op.name(), ty(ptr), element, moved)?;
            }
            Ok(vec![element; results])
        }
        OpKind::Fence(order, _) => {
            Rule::Atomic.check(*order != MemoryOrder::Relaxed, || {
                "a relaxed `fence` orders nothing".to_owned()
            })?;
            Ok(Vec::new())
        }
        OpKind::Shuffle { value, by, mask, .. } => {
            party("shuffle", mask.as_ref().map(ty))?;
            let (value, by) = (ty(value), ty(by));
            Rule::Collective.check(by == Type::I32, || {
                format!("`shuffle` goes by an i32, not by {by}")
            })?;
            Rule::Collective.check(!value.is_pointer() && value != Type::Token, || {
                format!("`shuffle` exchanges numbers and bools, not {value}")
            })?;
            one(value)
        }
        OpKind::Vote(op, value, mask) => {
            party("vote", mask.as_ref().map(ty))?;
            let value = ty(value);
            Rule::Collective.check(value == Type::Bool, || {
                format!("`vote` takes a bool, not {value}")
            })?;
            one(op.result())
        }
        OpKind::Reduce(_, value, mask) => {
            party("reduce", mask.as_ref().map(ty))?;
            Rule::Collective.check(ty(value) == Type::I32, || {
                format!("`reduce` takes an i32, not {}", ty(value))
            })?;
            one(Type::I32)
        }
        OpKind::GroupVote(op, value) => {
            Rule::Collective.check(ty(value) == Type::Bool, || {
                format!("`groupvote` takes a bool, not {}", ty(value))
            })?;
            one(op.result())
        }
        OpKind::Opaque(what, values) => opaque(what, values).map(|()| what.makes.clone()),
        OpKind::Active => one(Type::I32),
        OpKind::Meet(Meeting::SubGroup(mask)) => {
            party("meet subgroup", mask.as_ref().map(ty)).map(|()| Vec::new())
        }
        OpKind::Meet(Meeting::Named { number, sub_groups }) => {
            meet(*number, *sub_groups).map(|()| Vec::new())
        }
        OpKind::Print { text, values } => {
            let types: Vec<Type> = values.iter().map(ty).collect();
            print(text, &types).map(|()| Vec::new())
        }
        OpKind::Barrier
        | OpKind::Block { .. }
        | OpKind::If { .. }
        | OpKind::Loop { .. }
        | OpKind::Break(..)
        | OpKind::Continue(..)
        | OpKind::Depend(_)
        | OpKind::Return
        | OpKind::Trap => Ok(Vec::new()),
    }
}

fn wanted(name: &str, what: &str, fits: bool, found: Type) -> Check<Type> {
    match fits {
        true => Ok(found),
        false => Err(Rule::Pure.broken(format!("`{name}` takes {what}, not {found}"))),
    }
}

fn unary(op: UnaryOp, ty: Type) -> Check<Type> {
    let [one, _] = op.operands().words();
    wanted(op.name(), one, op.operands().fit(ty), ty)
}

/// The common type of the operands.
fn several(name: &str, operands: Operands, ty: Type) -> Check<Type> {
    let [_, several] = operands.words();
    wanted(name, several, operands.fit(ty), ty)
}

fn same(name: &str, types: &[Type]) -> Check<()> {
    match types.iter().all(|ty| *ty == types[0]) {
        true => Ok(()),
        false => {
            let names: Vec<&str> = types.iter().map(|ty| ty.name()).collect();
            let found = names.join(" and ");
            Err(Rule::Pure.broken(format!("`{name}` takes operands of one type, not {found}")))
        }
    }
}

fn not_token(name: &str, ty: Type) -> Check<Type> {
    match ty {
        Type::Token => Err(Rule::Tokens.broken(format!("`{name}` cannot handle tokens"))),
        other => Ok(other),
    }
}

fn is_token(name: &str, ty: Type) -> Check<()> {
    match ty {
        Type::Token => Ok(()),
        other => Err(Rule::Tokens.broken(format!("`{name}` takes tokens, not {other}"))),
    }
}

fn id_type(id: Id) -> Check<Type> {
    match id {
        Id::Local(dimension)
        | Id::Group(dimension)
        | Id::GroupSize(dimension)
        | Id::GroupCount(dimension)
            if dimension > 2 =>
        {
            Err(Rule::Pure.broken(format!(
                "dimension {dimension} does not exist; there are 0, 1 and 2"
            )))
        }
        _ => Ok(Type::I32),
    }
}

pub(super) fn convert(op: ConvertOp, from: Type, to: Type) -> Check<()> {
    let generic = Type::Ptr(Space::Generic);
    let storable = |ty: Type| ty.is_integer() || ty.is_float() || ty.is_pointer();
    let fits = match op {
        ConvertOp::ExtendU => {
            (from.is_integer() || from == Type::Bool) && to.is_integer() && from.bits() < to.bits()
        }
        ConvertOp::ExtendS => from.is_integer() && to.is_integer() && from.bits() < to.bits(),
        ConvertOp::Truncate => from.is_integer() && to.is_integer() && from.bits() > to.bits(),
        ConvertOp::FloatToFloat => from.is_float() && to.is_float() && from != to,
        ConvertOp::SignedToFloat | ConvertOp::UnsignedToFloat => from.is_integer() && to.is_float(),
        ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned => from.is_float() && to.is_integer(),
        ConvertOp::Bits => {
            let pointers = from.is_pointer() && to.is_pointer();
            storable(from) && storable(to) && from.bits() == to.bits() && from != to && !pointers
        }
        ConvertOp::ToGeneric => from.is_pointer() && from != generic && to == generic,
        ConvertOp::FromGeneric => from == generic && to.is_pointer() && to != generic,
    };
    match fits {
        true => Ok(()),
        false => Err(Rule::Pure.broken(format!("`{}` cannot take {from} to {to}", op.name()))),
    }
}

fn access_count(name: &str, count: usize) -> Violation {
    Rule::Access.broken(format!("`{name}` moves 1, 2 or 4 values, not {count}"))
}

fn access(name: &str, ptr: Type, element: Type, count: usize) -> Check<()> {
    if !ptr.is_pointer() {
        return Err(Rule::Access.broken(format!("`{name}` takes a pointer, not {ptr}")));
    }
    if !matches!(count, 1 | 2 | 4) {
        return Err(access_count(name, count));
    }
    not_token(name, element)?;
    match element.bytes() * count as u32 {
        bytes if bytes > limits::ACCESS_BYTES => Err(Rule::Access.broken(format!(
            "`{name}` moves at most {} bytes, not {bytes}",
            limits::ACCESS_BYTES
        ))),
        _ => Ok(()),
    }
}

/// An access of a whole sub-group, if it is one.
fn block(name: &str, cache: CacheUse, ptr: Type, element: Type, count: usize) -> Check<()> {
    if cache != CacheUse::Block {
        return Ok(());
    }
    let check = |holds: bool, what: String| Rule::Access.check(holds, || what);
    check(
        ptr == Type::Ptr(Space::Global),
        format!("a `{name}` of a block is in global memory, not behind a {ptr}"),
    )?;
    check(
        element.is_integer() || element.is_float(),
        format!("a `{name}` of a block moves numbers of 8 to 64 bits, not {element}"),
    )?;
    check(
        count == 1,
        format!("a `{name}` of a block moves 1 value for each work-item, not {count}"),
    )
}

/// The type of the value in memory.
fn atomic(op: AtomicOp, ptr: Type, values: &[Type], order: MemoryOrder, named: Option<Type>) -> Check<Type> {
    let name = op.name();
    let check = |holds: bool, what: String| Rule::Atomic.check(holds, || what);
    let fits = matches!(ptr, Type::Ptr(Space::Global | Space::Shared | Space::Generic));
    check(
        fits,
        format!("`atomic {name}` takes a global, shared or generic pointer, not {ptr}"),
    )?;
    let (wanted, found) = (op.operands(), values.len());
    check(
        wanted == found || wanted == 1 && op.can_be_several() && found > 0,
        format!("`atomic {name}` takes {wanted} values, not {found}"),
    )?;
    let ty = values.first().copied().or(named);
    let ty = ty.ok_or_else(|| Rule::Atomic.broken(format!("`atomic {name}` has one result")))?;
    check(
        values.iter().all(|&value| value == ty),
        format!("`atomic {name}` takes values of one type"),
    )?;
    check(
        op.takes(ty),
        format!("`atomic {name}` cannot have values of type {ty}"),
    )?;
    check(
        op.can_be(order),
        format!("`atomic {name}` cannot be {}", order.name()),
    )?;
    Ok(ty)
}

/// A carried instruction has a text, and no more registers than instructions can have.
fn opaque(what: &Opaque, values: &OpaqueOperands) -> Check<()> {
    let most = limits::OPAQUE_VALUES;
    Rule::Collective.check(what.makes.len() <= most && values.0.len() <= most, || {
        format!("an `opaque` operation has at most {most} results and {most} operands")
    })?;
    Rule::Collective.check(!what.makes.contains(&Type::Token), || {
        "an `opaque` operation makes no token".to_owned()
    })?;
    Rule::Collective.check(what.operands() <= values.0.len(), || {
        format!(
            "the text names {} operands, and {} are given",
            what.operands(),
            values.0.len()
        )
    })?;
    Rule::Size.check(
        what.text.len() <= limits::NAME_BYTES * 8 && !what.text.is_empty(),
        || {
            format!(
                "the text of an `opaque` operation has 1 to {} bytes",
                limits::NAME_BYTES * 8
            )
        },
    )
}

/// Who takes part is named by 32 bits.
fn party(name: &str, mask: Option<Type>) -> Check<()> {
    match mask {
        None | Some(Type::I32) => Ok(()),
        Some(other) => Err(Rule::Collective.broken(format!("the mask of a `{name}` is an i32, not {other}"))),
    }
}

fn meet(number: u32, sub_groups: u32) -> Check<()> {
    let fits = (1..=limits::NAMED_BARRIERS).contains(&number) && sub_groups > 0;
    Rule::Collective.check(fits, || {
        format!(
            "a named barrier is 1 to {} for at least one sub-group, not {number} for {sub_groups}",
            limits::NAMED_BARRIERS
        )
    })
}

fn print(text: &str, types: &[Type]) -> Check<()> {
    let pieces = line::pieces(text).ok_or_else(|| Rule::Print.broken("a brace in a line is out of place"))?;
    let shown = || pieces.iter().filter_map(Piece::shown);
    let small = text.len() <= limits::LINE_BYTES && types.len() <= limits::LINE_VALUES;
    Rule::Print.check(small, || {
        format!(
            "a line has at most {} bytes and {} values",
            limits::LINE_BYTES,
            limits::LINE_VALUES
        )
    })?;
    Rule::Print.check(shown().count() == types.len(), || {
        format!(
            "a line with {} places is given {} values",
            shown().count(),
            types.len()
        )
    })?;
    let wrong = shown().zip(types).find(|(shown, ty)| !shown.takes(**ty));
    match wrong {
        Some((shown, ty)) => Err(Rule::Print.broken(format!("`{{{}}}` cannot show {ty}", shown.letter()))),
        None => Ok(()),
    }
}

fn copy(to: Type, from: Type, bytes: u32) -> Check<()> {
    if to != Type::Ptr(Space::Shared) || from != Type::Ptr(Space::Global) {
        return Err(Rule::Copy.broken(format!(
            "`copy` goes to ptr.shared from ptr.global, not to {to} from {from}"
        )));
    }
    match bytes {
        4 | 8 | 16 => Ok(()),
        other => Err(Rule::Copy.broken(format!("`copy` moves 4, 8 or 16 bytes, not {other}"))),
    }
}

fn prefetch(ptr: Type, bytes: u32, count: Option<Type>) -> Check<()> {
    if !matches!(ptr, Type::Ptr(Space::Global | Space::Generic)) {
        return Err(Rule::Prefetch.broken(format!("`prefetch` takes ptr.global or ptr.generic, not {ptr}")));
    }
    if let Some(other) = count.filter(|&count| count != Type::I64) {
        return Err(Rule::Prefetch.broken(format!("`prefetch` counts with an i64, not {other}")));
    }
    match bytes {
        1..=limits::PREFETCH_BYTES => Ok(()),
        other => Err(Rule::Prefetch.broken(format!(
            "`prefetch` takes 1 to {} bytes, not {other}",
            limits::PREFETCH_BYTES
        ))),
    }
}

/// A prefetch's request does not contradict itself.
fn hinted(hint: CacheHint, source: HintSource, scope: PrefetchScope) -> Check<()> {
    Rule::Prefetch.check(
        scope != PrefetchScope::Bulk || hint.level == CacheLevel::L2,
        || format!("a bulk `prefetch` goes to L2, not {}", hint.level.name()),
    )?;
    match source {
        HintSource::Control(control) => Rule::Prefetch.check(hint == control.nearest(), || {
            format!("{} is not nearest to {}", hint.level.name(), control.name())
        }),
        HintSource::Default => Rule::Prefetch.check(!hint.nontemporal, || {
            "a `prefetch` without a level is not nontemporal".to_owned()
        }),
        HintSource::Named => Ok(()),
    }
}

#[cfg(test)]
mod tests;
