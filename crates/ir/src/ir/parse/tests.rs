//! Everything that can be written is read back.

mod errors;

use errors::error_of;

use super::parse;
use crate::ir::hint::{CacheHint, CacheLevel, CacheUse, HintSource, LscControl, PrefetchScope};
use crate::ir::kernel::{ArrayData, Kernel, LoadData, Param, PlaceData, Value};
use crate::ir::op::{
    BinaryOp, CompareOp, ConvertOp, LoopWishes, NoWrapOp, OpKind, UnaryOp, UnrollWish, Wrap,
};
use crate::ir::print::{all_ids, print};
use crate::ir::read;
use crate::ir::rule::{FloatRule, Rounding};
use crate::ir::types::{Space, Type};
use crate::ir::{Builder, first_difference, limits, verify};
use crate::random::Random;

/// Prints, reads back, prints again: the same kernel and the same text.
#[track_caller]
fn round_trip(kernel: &Kernel) -> String {
    assert_eq!(verify(kernel), Ok(()));
    let text = print(kernel);
    let again = parse(&text, "printed").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(first_difference(kernel, &again), None, "\n{text}");
    assert_eq!(print(&again), text);
    text
}

fn params(kernel: &mut Kernel, types: &[Type]) {
    for &ty in types {
        let value = kernel.value(ty);
        kernel.params.push(Param {
            name: format!("a {ty}"),
            value,
            facts: None,
        });
    }
}

#[test]
fn every_operation_round_trips() {
    let mut kernel = Kernel::new("every operation");
    let passable: Vec<Type> = Type::ALL
        .into_iter()
        .filter(|ty| !matches!(ty, Type::Token | Type::Ptr(Space::Shared | Space::Private)))
        .collect();
    params(&mut kernel, &passable);
    kernel.float_mode.any_nan = true;
    kernel.float_mode.accuracy = crate::ir::Accuracy::Fast;
    let shared = kernel.arrays.push(ArrayData {
        name: "ring".to_owned(),
        space: Space::Shared,
        element: Type::I32,
        length: 64,
        align: 16,
    });
    let private = kernel.arrays.push(ArrayData {
        name: "ring".to_owned(),
        space: Space::Private,
        element: Type::Bool,
        length: 1,
        align: 1,
    });
    let call = kernel.places.push(PlaceData {
        file: "a \"quoted\"\n file.rs".to_owned(),
        line: 7,
        column: 0,
        inlined_at: None,
    });
    let place = kernel.places.push(PlaceData {
        file: String::new(),
        line: 0,
        column: 0,
        inlined_at: Some(call),
    });
    let load = kernel.loads.push(LoadData {
        constant: true,
        ..LoadData::new("values", place)
    });
    let other_load = kernel.loads.push(LoadData::new("values", Kernel::NOWHERE));
    let value = |kernel: &Kernel, ty: Type| {
        let param = kernel.params.iter().find(|param| kernel.ty(param.value) == ty);
        param.expect("one of each").value
    };
    let p = value(&kernel, Type::Ptr(Space::Global));
    let all: Vec<_> = passable.iter().map(|&ty| value(&kernel, ty)).collect();

    let mut b = Builder::new(&mut kernel, place);
    for id in all_ids() {
        b.id(id);
    }
    for &a in &all {
        for &op in UnaryOp::ALL {
            try_push(&mut b, OpKind::Unary(op, a), None);
        }
        for &op in BinaryOp::ALL {
            try_push(&mut b, OpKind::Binary(op, a, a), None);
        }
        for &op in CompareOp::ALL {
            try_push(&mut b, OpKind::Compare(op, a, a), None);
        }
        for &op in NoWrapOp::ALL {
            for &wrap in Wrap::ALL {
                try_push(&mut b, OpKind::NoWrap(op, wrap, a, a), None);
            }
        }
        for &op in ConvertOp::ALL {
            for to in Type::ALL {
                try_push(&mut b, OpKind::Convert(op, a), Some(to));
            }
        }
        try_push(&mut b, OpKind::Fma(a, a, a), None);
        for rule in rules() {
            push_ruled(&mut b, rule, a);
        }
        let condition = b.kernel.params[0].value;
        try_push(&mut b, OpKind::Select(condition, a, a), None);
        for &cache in CacheUse::ALL {
            let values = vec![a; 2];
            try_push(&mut b, OpKind::store(p, values, cache), None);
            let id = other_load;
            let ty = b.kernel.ty(a);
            try_push(&mut b, OpKind::Load { ptr: p, id, cache }, Some(ty));
        }
    }
    b.at(call);
    let index = value(b.kernel, Type::I64);
    for offset in [0, 1, -1, i64::MIN, i64::MAX] {
        b.push(
            OpKind::address(p, index, u32::MAX, offset),
            &[Type::Ptr(Space::Global)],
        );
    }
    let to = b.array_address(shared);
    b.array_address(private);
    let token = b.copy(to, p, 16, load);
    let none = b.no_token();
    let both = b.join(vec![token, none]);
    b.wait(both);
    for &level in CacheLevel::ALL {
        for nontemporal in [false, true] {
            let hint = CacheHint { level, nontemporal };
            b.prefetch(p, 128, hint, nontemporal.then_some(load));
            for &scope in PrefetchScope::ALL {
                let mut push = |hint: CacheHint, source, count| {
                    let kind = OpKind::Prefetch {
                        ptr: p,
                        bytes: 4,
                        count,
                        hint,
                        source,
                        scope,
                        id: count.map(|_| load),
                    };
                    try_push(&mut b, kind, None);
                };
                push(hint, HintSource::Named, Some(index));
                push(hint, HintSource::Default, None);
                for &control in LscControl::ALL {
                    push(control.nearest(), HintSource::Control(control), Some(index));
                }
            }
        }
    }
    b.barrier();
    b.return_();
    kernel.body = b.finish();
    let text = round_trip(&kernel);
    for expected in [
        "prefetch L1 default 4 at ",
        " by bulk",
        "prefetch L1C_L3C 4 * ",
        " by work_group, @",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        text.contains("load @values constant #0:0:0 in #1:7:0\n"),
        "{text}"
    );
    assert!(text.contains("load @values.2\n"), "{text}");
}

#[test]
fn what_is_carried_round_trips() {
    // Without operands the next line's result is none.
    let text = "hsir 1

kernel @k(
  %m: i32,
) {
  %a = opaque \"mov.u64 =0, %clock64\" nothing unordered alone settled (i64) ()
  %b, %c = opaque \"thing =0, =1, @0, @1\" anything (i32, f32) (%m, 7:i32)
  opaque \"nanosleep.u32 @0\" nothing alone settled () (%b)
  %d = add %m, %b
  return
}
";
    let kernel = parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(round_trip(&kernel), text);
}

#[test]
fn masks_round_trip() {
    let text = "hsir 1

kernel @k(
  %m: i32,
) {
  %a = active
  %b = vote any true among %a
  %c = vote ballot %b among -1:i32
  %d = vote all %b
  %e = shuffle down %c, 1:i32 among %m
  %f = shuffle index %e, 0:i32
  meet subgroup
  meet subgroup among %f
  return
}
";
    let kernel = parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(round_trip(&kernel), text);
    // The mask is an operand like the others.
    let mut operands = Vec::new();
    kernel
        .body
        .walk(&mut |op| op.kind.for_each_operand(|value| operands.push(value)));
    assert!(operands.contains(&kernel.params[0].value));
    let error = error_of(&text.replace("meet subgroup among %f", "meet subgroup among"));
    assert!(error.contains("an operand"), "{error}");
    let wide = text.replace("%m: i32", "%m: i64");
    let kernel = parse(&wide, "k.hsir");
    let refused = kernel.map_or_else(
        |error| error.to_string(),
        |kernel| format!("{:?}", verify(&kernel)),
    );
    assert!(
        refused.contains("the mask of a `shuffle` is an i32, not i64"),
        "{refused}"
    );
}

/// Every rule but the one that says nothing.
fn rules() -> impl Iterator<Item = FloatRule> {
    let all = Rounding::ALL.into_iter().flat_map(move |rounding| {
        (0..8).map(move |flags| FloatRule {
            rounding,
            flush: flags & 1 != 0,
            contract: flags & 2 != 0,
            nan_high: flags & 4 != 0,
        })
    });
    all.filter(|&rule| rule != FloatRule::EXACT)
}

/// Appends every operation on `a` that can have this rule.
fn push_ruled(b: &mut Builder<'_>, rule: FloatRule, a: Value) {
    for &op in UnaryOp::ALL {
        try_push(b, OpKind::Unary(op, a).ruled(rule), None);
    }
    for &op in BinaryOp::ALL {
        try_push(b, OpKind::Binary(op, a, a).ruled(rule), None);
    }
    for &op in CompareOp::ALL {
        try_push(b, OpKind::Compare(op, a, a).ruled(rule), None);
    }
    for &op in ConvertOp::ALL {
        for to in Type::ALL {
            try_push(b, OpKind::Convert(op, a).ruled(rule), Some(to));
        }
    }
    try_push(b, OpKind::Fma(a, a, a).ruled(rule), None);
}

#[test]
fn rules_that_no_device_has_are_refused() {
    for (line, why) in [
        ("%y = add.ftz %n, %n", "`add` of i32 cannot flush"),
        ("%y = fadd.rz %h, %h", "cannot be rounded otherwise"),
        ("%y = fadd.ftz %d, %d", "cannot flush subnormal numbers"),
        ("%y = fmin.rm %x, %x", "cannot be rounded otherwise"),
        ("%y = fdiv.contract %x, %x", "cannot be fused with another"),
        ("%y = fadd.nan %x, %x", "makes no integer of a NaN"),
        ("%y = copysign.ftz %x, %x", "cannot flush subnormal numbers"),
        ("%y = approximate.tanh.ftz %x", "cannot flush subnormal numbers"),
        ("%y = approximate.rcp %d", "flushes subnormal numbers"),
        ("%y = fadd.rn %x, %x", "there is no operation"),
        ("%y = fadd.ftz.ftz %x, %x", "there is no operation"),
        ("%y = fadd.rz.ftz %x, %x", "there is no operation"),
    ] {
        let text = format!("hsir 1\nkernel @k(%x: f32, %d: f64, %h: f16, %n: i32) {{\n{line}\nreturn\n}}\n");
        let error = read(&text, "k.hsir").expect_err(line).to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
}

/// Appends the operation if its types are right.
fn try_push(b: &mut Builder<'_>, kind: OpKind, named: Option<Type>) {
    let count = match kind {
        OpKind::Load { .. } | OpKind::Convert(..) | OpKind::Ruled(..) => 1,
        _ => 0,
    };
    if let Ok(types) = super::super::verify::result_types(b.kernel, &kind, count, named) {
        b.push(kind, &types);
    }
}

#[test]
fn regions_and_exits_round_trip() {
    let mut kernel = Kernel::new("regions");
    params(&mut kernel, &[Type::Bool, Type::I64]);
    let (condition, n) = (kernel.params[0].value, kernel.params[1].value);
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let wishes = |unroll, plan: Option<&str>| LoopWishes {
        unroll,
        plan: plan.map(str::to_owned),
    };
    // Two loops of one name inside each other, and exits of each kind through an `if`.
    let outer_results = [Type::I64];
    b.loop_(
        Some("row".to_owned()),
        vec![n],
        &outer_results,
        wishes(Some(UnrollWish::Keep), None),
        |b, outer, i| {
            let i = i[0];
            b.loop_(
                None,
                vec![],
                &[],
                wishes(Some(UnrollWish::Full), Some("none")),
                |b, middle, _| {
                    b.loop_(
                        Some("row".to_owned()),
                        vec![i],
                        &[],
                        wishes(Some(UnrollWish::By(4)), None),
                        |b, inner, j| {
                            let j = j[0];
                            b.break_if(condition, middle, vec![]);
                            b.break_if(condition, inner, vec![]);
                            b.break_if(condition, outer, vec![j]);
                            b.if_(
                                condition,
                                &[],
                                |b| {
                                    b.continue_(outer, vec![j]);
                                    vec![]
                                },
                                |b| {
                                    b.continue_(middle, vec![]);
                                    vec![]
                                },
                            );
                            b.if_(
                                condition,
                                &[],
                                |b| {
                                    b.continue_(inner, vec![j]);
                                    vec![]
                                },
                                |b| {
                                    b.return_();
                                    vec![]
                                },
                            );
                            b.continue_(inner, vec![i]);
                        },
                    );
                    b.break_(middle, vec![]);
                },
            );
            b.block(Some("out of here".to_owned()), &[], |b, block| {
                b.break_if(condition, block, vec![]);
                b.if_(
                    condition,
                    &[],
                    |_| vec![],
                    |b| {
                        b.barrier();
                        vec![]
                    },
                );
                b.break_(block, vec![]);
            });
            b.block(None, &[Type::Token, Type::Bool], |b, block| {
                let values = vec![b.no_token(), condition];
                b.break_(block, values);
            });
            b.break_(outer, vec![i]);
        },
    );
    b.return_();
    kernel.body = b.finish();
    let text = round_trip(&kernel);
    for expected in [
        "loop 'row (%1 = %\"a i64\") -> i64 unroll keep {",
        "loop '0 unroll full prefetch \"none\" {",
        "loop 'row.2 ",
        "{ break '0 }",
        "{ continue 'row ",
        "block '\"out of here\" {",
        "{ return }",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn every_half_and_many_other_constants_round_trip() {
    let mut random = Random::new(7);
    for ty in Type::ALL {
        let bits: Vec<u64> = match ty {
            Type::Token => vec![0],
            _ if ty.bits() <= 16 => (0..=ty.mask()).collect(),
            _ => {
                let special = [0, 1, 2, 3].map(|shift| ty.mask() << (ty.bits() - 1 - shift) & ty.mask());
                let exponents = (0..64).map(|shift| 1u64 << shift & ty.mask());
                special
                    .into_iter()
                    .chain(exponents)
                    .chain((0..2000).map(|_| random.bits() & ty.mask()))
                    .collect()
            }
        };
        let mut kernel = Kernel::new("constants");
        let label = kernel.label(None, vec![ty; bits.len()]);
        let values = bits.iter().map(|&bits| kernel.constant(ty, bits)).collect();
        let results: Vec<_> = bits.iter().map(|_| kernel.value(ty)).collect();
        let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
        let body = b.region(|b| b.break_(label, values));
        b.append(crate::ir::Op {
            kind: OpKind::Block { label, body },
            results,
            place: Kernel::NOWHERE,
        });
        b.return_();
        kernel.body = b.finish();
        round_trip(&kernel);
    }
}
