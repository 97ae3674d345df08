//! Which types each operation takes and gives.

use cranelift_entity::EntityRef;

use super::*;
use crate::ir::hint::LscControl;
use crate::ir::kernel::{LoadId, Value};
use crate::ir::op::{BinaryOp, CompareOp, Meeting, NoWrapOp, Wrap};
use crate::ir::together::{MemoryScope, ShuffleOp, VoteOp};

const GLOBAL: Type = Type::Ptr(Space::Global);
const SHARED: Type = Type::Ptr(Space::Shared);
const GENERIC: Type = Type::Ptr(Space::Generic);

/// A kernel whose values are one of each type, in the order of [`Type::ALL`].
fn one_of_each() -> Kernel {
    let mut kernel = Kernel::new("types");
    for ty in Type::ALL {
        kernel.value(ty);
    }
    kernel
}

fn of(ty: Type) -> Value {
    Value::new(
        Type::ALL
            .iter()
            .position(|&other| other == ty)
            .expect("all are there"),
    )
}

#[track_caller]
fn refused(rule: Rule, kind: OpKind, results: usize, named: Option<Type>) {
    match results_of(&one_of_each(), &kind, results, named) {
        Err(violation) => assert_eq!(violation.rule, rule, "{}", violation.what),
        Ok(types) => panic!("{kind:?} makes {types:?}"),
    }
}

/// The types of one operand that each operation takes, out of all types.
fn taken(make: impl Fn(Value) -> OpKind) -> Vec<Type> {
    let kernel = one_of_each();
    let fits = |ty: &Type| results_of(&kernel, &make(of(*ty)), 1, None).is_ok();
    Type::ALL.into_iter().filter(fits).collect()
}

#[test]
fn arithmetic_takes_its_types() {
    let integers = vec![Type::I8, Type::I16, Type::I32, Type::I64];
    let words = vec![Type::I32];
    let single = vec![Type::F32];
    let longs = vec![Type::I64];
    let machine = vec![Type::F32, Type::F64];
    let with_halves = vec![Type::F16, Type::F32, Type::F64];
    let half_or_single = vec![Type::F16, Type::F32];
    let at_most_single = vec![Type::F16, Type::Bf16, Type::F32];
    let floats = vec![Type::F16, Type::Bf16, Type::F32, Type::F64];
    let logical: Vec<Type> = [Type::Bool].into_iter().chain(integers.clone()).collect();
    for &op in UnaryOp::ALL {
        let name = op.name();
        let expected = match name {
            "not" => &logical,
            // The reciprocal of an f64 is not without flushing, nor is 2ˣ of a bf16.
            "approximate.rsqrt" => &machine,
            "approximate.exp2" => &half_or_single,
            "approximate.tanh" => &at_most_single,
            "library.pown" => &machine,
            _ if name.starts_with("library.") => &with_halves,
            _ if op.is_approximation() => &single,
            "normal.rcp" | "normal.sqrt" | "table.exp2" | "table.log2" | "table.rcp" => &single,
            "table.row" => &longs,
            "neg" | "clz" | "popcount" | "reverse_bits" => &integers,
            _ => &floats,
        };
        assert_eq!(&taken(|a| OpKind::Unary(op, a)), expected, "{name}");
    }
    for &op in BinaryOp::ALL {
        let name = op.name();
        let expected = match name {
            "and" | "or" | "xor" => &logical,
            "fadd" | "fsub" | "fmul" | "fdiv" | "fmin" | "fmax" | "fminimum" | "fmaximum" | "copysign" => {
                &floats
            }
            "library.pown" => &machine,
            _ if name.starts_with("library.") => &with_halves,
            _ if op.is_approximation() => &single,
            "dot4.s" | "dot4.u" | "dot4.su" | "dot2.s" | "dot2.u" | "dot2.su" | "dot2.us" => &words,
            _ => &integers,
        };
        assert_eq!(&taken(|a| OpKind::Binary(op, a, a)), expected, "{name}");
        refused(
            Rule::Pure,
            OpKind::Binary(op, of(Type::I32), of(Type::I64)),
            1,
            None,
        );
    }
    for &op in NoWrapOp::ALL {
        assert_eq!(taken(|a| OpKind::NoWrap(op, Wrap::Neither, a, a)), integers);
        let kind = OpKind::NoWrap(op, Wrap::Neither, of(Type::I32), of(Type::I64));
        refused(Rule::Pure, kind, 1, None);
    }
    assert_eq!(taken(|a| OpKind::Fma(a, a, a)), floats);
    refused(
        Rule::Pure,
        OpKind::Fma(of(Type::F32), of(Type::F32), of(Type::F64)),
        1,
        None,
    );
}

#[test]
fn comparisons_take_their_types() {
    for &op in CompareOp::ALL {
        let found = taken(|a| OpKind::Compare(op, a, a));
        let is_float = op.name().starts_with('f');
        assert_eq!(found.contains(&Type::F32), is_float, "{}", op.name());
        assert_eq!(found.contains(&Type::I32), !is_float, "{}", op.name());
        let pointers = matches!(op.name(), "eq" | "ne" | "lt.u" | "le.u");
        assert_eq!(found.contains(&GLOBAL), pointers, "{}", op.name());
        assert_eq!(found.contains(&Type::Bool), matches!(op.name(), "eq" | "ne"));
        assert!(!found.contains(&Type::Token));
        refused(Rule::Pure, OpKind::Compare(op, of(GLOBAL), of(SHARED)), 1, None);
    }
    refused(
        Rule::Pure,
        OpKind::Select(of(Type::I8), of(Type::F32), of(Type::F32)),
        1,
        None,
    );
    refused(
        Rule::Pure,
        OpKind::Select(of(Type::Bool), of(Type::F32), of(Type::F64)),
        1,
        None,
    );
    refused(
        Rule::Tokens,
        OpKind::Select(of(Type::Bool), of(Type::Token), of(Type::Token)),
        1,
        None,
    );
}

#[test]
fn conversions_between_the_wrong_types() {
    use ConvertOp::*;
    for (op, from, to) in [
        (ExtendU, Type::I32, Type::I32),
        (ExtendU, Type::F32, Type::I64),
        (ExtendS, Type::Bool, Type::I32),
        (Truncate, Type::I32, Type::Bool),
        (Truncate, Type::I32, Type::I64),
        (FloatToFloat, Type::F32, Type::F32),
        (SignedToFloat, Type::Bool, Type::F32),
        (UnsignedToFloat, Type::F32, Type::F32),
        (FloatToSigned, Type::F32, Type::Bool),
        (FloatToUnsigned, Type::I32, Type::I64),
        (Bits, Type::I32, Type::I32),
        (Bits, Type::I32, Type::F64),
        (Bits, GLOBAL, SHARED),
        (Bits, Type::Token, Type::I64),
        (Bits, Type::I64, Type::Token),
        (ToGeneric, GENERIC, GENERIC),
        (ToGeneric, GLOBAL, SHARED),
        (FromGeneric, GLOBAL, GLOBAL),
        (FromGeneric, GENERIC, Type::I64),
    ] {
        refused(Rule::Pure, OpKind::Convert(op, of(from)), 1, Some(to));
    }
    refused(Rule::Pure, OpKind::Convert(Bits, of(Type::I32)), 0, None);
}

#[test]
fn identities_and_addresses() {
    refused(Rule::Pure, OpKind::Id(Id::Local(3)), 1, None);
    let address = |base, index| OpKind::address(of(base), of(index), 4, 0);
    refused(Rule::Pure, address(Type::I64, Type::I64), 1, None);
    refused(Rule::Pure, address(GLOBAL, Type::I32), 1, None);
}

#[test]
fn atomics_take_their_types_and_orders() {
    let atomic = |op, ptr, values: &[Type], order| OpKind::Atomic {
        op,
        ptr: of(ptr),
        values: values.iter().map(|&ty| of(ty)).collect(),
        order,
        scope: MemoryScope::Device,
    };
    use MemoryOrder::{Acquire, AcquireRelease, Relaxed, Release};
    let kernel = one_of_each();
    for &op in AtomicOp::ALL {
        let takes = |ty: &Type| {
            let kind = atomic(op, GLOBAL, &vec![*ty; op.operands()], Relaxed);
            results_of(&kernel, &kind, 1, Some(*ty)).is_ok()
        };
        let expected: &[Type] = match op.name() {
            "load" | "store" | "exchange" => &[Type::I32, Type::I64, Type::F32, Type::F64],
            "fadd" => &[Type::F16, Type::Bf16, Type::F32, Type::F64],
            "fadd.f16x2" | "fadd.bf16x2" => &[Type::I32],
            _ => &[Type::I32, Type::I64],
        };
        let found: Vec<Type> = Type::ALL.into_iter().filter(takes).collect();
        assert_eq!(found, expected, "{}", op.name());
    }
    for kind in [
        atomic(AtomicOp::Add, Type::Ptr(Space::Private), &[Type::I32], Relaxed),
        atomic(AtomicOp::Add, Type::I64, &[Type::I32], Relaxed),
        atomic(AtomicOp::Add, GLOBAL, &[], Relaxed),
        atomic(AtomicOp::Add, GLOBAL, &[Type::I32, Type::I32], Relaxed),
        atomic(
            AtomicOp::CompareExchange,
            SHARED,
            &[Type::I32, Type::I64],
            Relaxed,
        ),
        atomic(AtomicOp::Store, GLOBAL, &[Type::I32], Acquire),
        atomic(AtomicOp::Load, GLOBAL, &[], AcquireRelease),
        OpKind::Fence(Relaxed, MemoryScope::Device),
    ] {
        refused(Rule::Atomic, kind, 1, Some(Type::I32));
    }
    refused(
        Rule::Atomic,
        atomic(AtomicOp::Load, GLOBAL, &[], Release),
        0,
        None,
    );
}

#[test]
fn collectives_take_their_types() {
    let shuffle = |value, by| OpKind::Shuffle {
        op: ShuffleOp::Xor,
        value: of(value),
        by: of(by),
        mask: None,
    };
    refused(Rule::Collective, shuffle(Type::F32, Type::I64), 1, None);
    refused(Rule::Collective, shuffle(GLOBAL, Type::I32), 1, None);
    refused(Rule::Collective, shuffle(Type::Token, Type::I32), 1, None);
    refused(
        Rule::Collective,
        OpKind::Vote(VoteOp::All, of(Type::I32), None),
        1,
        None,
    );
    for mask in [Type::I64, Type::Bool] {
        let mask = Some(of(mask));
        let shuffle = OpKind::Shuffle {
            op: ShuffleOp::Up,
            value: of(Type::F32),
            by: of(Type::I32),
            mask,
        };
        refused(Rule::Collective, shuffle, 1, None);
        refused(
            Rule::Collective,
            OpKind::Vote(VoteOp::Any, of(Type::Bool), mask),
            1,
            None,
        );
        refused(Rule::Collective, OpKind::Meet(Meeting::SubGroup(mask)), 0, None);
    }
    let ballot = OpKind::Vote(VoteOp::Ballot, of(Type::Bool), Some(of(Type::I32)));
    assert!(results_of(&one_of_each(), &ballot, 1, None).is_ok_and(|types| types == [Type::I32]));
}

#[test]
fn memory_moves_whole_values() {
    let id = LoadId::new(0);
    let cache = CacheUse::Default;
    let load = |ptr| OpKind::load(of(ptr), id, cache);
    let store = |values: &[Type]| OpKind::store(of(GLOBAL), values.iter().map(|&ty| of(ty)).collect(), cache);
    refused(Rule::Access, load(Type::I64), 1, Some(Type::F32));
    refused(Rule::Access, load(GLOBAL), 3, Some(Type::F32));
    refused(Rule::Access, load(GLOBAL), 0, None);
    refused(Rule::Access, load(GLOBAL), 4, Some(Type::F64));
    refused(Rule::Tokens, load(GLOBAL), 1, Some(Type::Token));
    refused(Rule::Access, store(&[]), 0, None);
    refused(Rule::Access, store(&[Type::F32; 3]), 0, None);
    refused(Rule::Access, store(&[Type::I64; 4]), 0, None);
    refused(Rule::Tokens, store(&[Type::Token]), 0, None);
    refused(Rule::Pure, store(&[Type::F32, Type::I32]), 0, None);
    let block = |ptr| OpKind::load(of(ptr), id, CacheUse::Block);
    refused(Rule::Access, block(SHARED), 1, Some(Type::F32));
    refused(Rule::Access, block(GENERIC), 1, Some(Type::F32));
    refused(Rule::Access, block(GLOBAL), 2, Some(Type::F32));
    refused(Rule::Access, block(GLOBAL), 1, Some(Type::Bool));
    refused(Rule::Access, block(GLOBAL), 1, Some(GLOBAL));
    let stored = |ty| OpKind::store(of(GLOBAL), vec![of(ty)], CacheUse::Block);
    refused(Rule::Access, stored(Type::Bool), 0, None);
    assert!(results_of(&one_of_each(), &stored(Type::F64), 0, None).is_ok());
    let copy = |to, from, bytes| OpKind::Copy {
        to: of(to),
        from: of(from),
        bytes,
        id,
    };
    refused(Rule::Copy, copy(GLOBAL, GLOBAL, 4), 1, None);
    refused(Rule::Copy, copy(SHARED, SHARED, 4), 1, None);
    refused(Rule::Copy, copy(SHARED, GLOBAL, 2), 1, None);
    refused(Rule::Copy, copy(SHARED, GLOBAL, 12), 1, None);
    let asked = |ptr, bytes, count: Option<Type>, level, source, scope| OpKind::Prefetch {
        ptr: of(ptr),
        bytes,
        count: count.map(of),
        hint: CacheHint::to(level),
        source,
        scope,
        id: None,
    };
    let named = HintSource::Named;
    let prefetch = |ptr, bytes| asked(ptr, bytes, None, CacheLevel::L1, named, PrefetchScope::WorkItem);
    let refused_too = |count, level, source, scope| {
        refused(
            Rule::Prefetch,
            asked(GLOBAL, 4, count, level, source, scope),
            0,
            None,
        );
    };
    let alone = PrefetchScope::WorkItem;
    refused_too(Some(Type::I32), CacheLevel::L1, named, alone);
    refused_too(None, CacheLevel::L1, named, PrefetchScope::Bulk);
    refused_too(
        None,
        CacheLevel::L1,
        HintSource::Control(LscControl::L1ucL3c),
        alone,
    );
    refused(Rule::Prefetch, prefetch(SHARED, 4), 0, None);
    refused(Rule::Prefetch, prefetch(GLOBAL, 0), 0, None);
    refused(
        Rule::Prefetch,
        prefetch(GLOBAL, limits::PREFETCH_BYTES + 1),
        0,
        None,
    );
}
