//! Everything that can be written is read back; everything wrong is said where it is.

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

/// A kernel with these operations.
fn around(operations: &str) -> String {
    format!(
        "hsir 1\nkernel @k(%p: ptr.global f32[] align 4, %n: i64, %c: bool) {{\nload @p\nshared @ring: f32[4] align 16\n\
         {operations}\nreturn\n}}\n"
    )
}

#[track_caller]
fn error_of(text: &str) -> String {
    match parse(text, "k.hsir").and_then(|kernel| verify(&kernel)) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.lines().count() == 1, "{message}");
            message
        }
        Ok(()) => panic!("it is accepted: {text}"),
    }
}

/// The operations, on line 5 of a kernel, are refused at this column with this message.
#[track_caller]
fn refused(operations: &str, column: usize, what: &str) {
    let message = error_of(&around(operations));
    let expected = format!("k.hsir:5:{column}: {what}");
    assert!(
        message.starts_with(&expected),
        "expected {expected}\n   found {message}"
    );
}

#[test]
fn errors_say_what_and_where() {
    refused(
        "%x = frob %n, %n",
        6,
        "there is no operation `frob`; operations: array, ",
    );
    refused("%x = lt %n, %n", 6, "there is no operation `lt`; did you mean `");
    refused(
        "%x = add %n, %N",
        14,
        "`%N` is not defined before this; did you mean `%n`?",
    );
    refused(
        "%x = add %n, 1:i32",
        6,
        "`add` takes operands of one type, not i64 and i32",
    );
    refused(
        "%x = add %n, 1",
        14,
        "a constant is written with its type, as in `1:i32`",
    );
    refused("%x = fadd %n, %n", 6, "`fadd` takes floats, not i64");
    refused("%x = load f32 %p, @q", 19, "there is no load `@q`; declare it");
    refused(
        "%x = load f33 %p, @p",
        11,
        "a type is expected, not `f33`; types: bool, ",
    );
    refused("%x = array @rong", 12, "there is no array `@rong`");
    refused("%n = neg %n", 1, "the name `%n` is taken");
    refused("%x, %y = neg %n", 10, "the operation has 1 results, not 2");
    refused("neg %n", 1, "the operation has 1 results, not 0");
    refused("%x = store %p, 1.0:f32", 6, "the operation has 0 results, not 1");
    refused("yield", 1, "`yield` belongs directly in a block or `if`");
    refused("break", 1, "there is no loop around this");
    refused("loop 'a { break 'b }", 17, "no label `'b` is around this");
    refused(
        "if %c { %x = neg %n yield } %y = neg %x",
        38,
        "`%x` is defined in a region that has ended",
    );
    refused(
        "block 'a { yield } block 'a { yield }",
        26,
        "the name `'a` is taken",
    );
    refused(
        "%x = add %n, 99999999999999999999:i64",
        14,
        "this is not a number of type i64",
    );
    refused(
        "%x = add %n, 18446744073709551615:i64 %y = extend.u 256:i8 to i32",
        53,
        "the number does not fit i8",
    );
    refused("%x = neg -129:i8", 10, "the number does not fit i8");
    refused(
        "%x = fneg 1e39:f32",
        11,
        "the number does not fit f32; infinity is written `inf`",
    );
    refused(
        "%x = fneg infinity:f32",
        11,
        "an operand is expected, not `infinity`",
    );
    refused("%x = not 1:bool", 10, "a `bool` is written `true` or `false`");
    refused("%x = neg ~", 10, "`~` has no meaning here");
    refused("wait %n", 1, "`wait` takes tokens, not i64");
    refused(
        "prefetch L5 4 at %p",
        10,
        "a cache level is expected, not `L5`; levels: L1, L2, L3, L4; cache controls: LSC_DEFAULT, L1UC_L3UC, L1UC_L3C, \
         L1C_L3UC, L1C_L3C, L1S_L3UC, L1S_L3C, L1IAR_L3C",
    );
    refused(
        "loop unroll 0 { break }",
        13,
        "`keep`, `auto`, `full` or a number of iterations cannot be `0`; from 1 to",
    );
    refused("barrier #1:2:3", 10, "there is no source file #1");
    refused("} }", 3, "the end of the file is expected, not `}`");
    refused(
        "%x = address %p + %n * 4294967296",
        24,
        "a scale in bytes cannot be `4294967296`; from 0 to",
    );
}

#[test]
fn errors_in_the_head() {
    let begins = |text: &str, expected: &str| {
        let message = error_of(text);
        assert!(message.starts_with(expected), "{message}");
    };
    begins(
        "",
        "k.hsir:1:1: `hsir` is expected, not the end of the file; the first line",
    );
    begins(
        "hsir 2",
        "k.hsir:1:6: version `2` of the text form is not known; the first line",
    );
    begins(
        "hsir 1\nkernel @k(%n: i64, %n: i64) { return }",
        "k.hsir:2:20: the name `%n` is taken",
    );
    begins(
        "hsir 1\nkernel @k(%p: ptr.global f32[%n] align 4) { return }",
        "k.hsir:2:30: the length `%n` is not a parameter",
    );
    begins(
        "hsir 1\nkernel @k() sub_group 8 group 8,1,1 { return }",
        "k.hsir:2:25: `{` is expected, not `group`",
    );
    begins(
        "hsir 1\nkernel @k() { return ",
        "k.hsir:2:22: an operation or `}` is expected, not the end",
    );
}

#[test]
fn hostile_text_ends_soon() {
    let nested = |open: &str, count: usize| around(&open.repeat(count));
    assert!(error_of(&nested("block {", 1 << 20)).contains("more than 200 regions"));
    assert!(error_of(&nested("if %c { yield } else {", 1 << 20)).contains("more than 200 regions"));
    let name = "x".repeat(limits::NAME_BYTES + 1);
    assert!(error_of(&around(&format!("%{name} = neg %n"))).contains("a name is longer than 1024 bytes"));
    assert!(error_of(&around(&format!("%\"{name}\" = neg %n"))).contains("longer than 1024 bytes"));
    assert!(
        error_of(&around("shared @big: f64[4294967295] align 8"))
            .contains("shared arrays take 34359738376 bytes")
    );
    let arrays = (0..limits::ARRAYS + 1).map(|number| format!("shared @a{number}: f32[1] align 4\n"));
    let text = around("").replace(
        "shared @ring",
        &format!("{}shared @ring", arrays.collect::<String>()),
    );
    assert!(error_of(&text).contains(&format!("more than {} arrays", limits::ARRAYS)));
    assert!(error_of(&around("barrier\n").repeat(1 << 20)).contains("the text has"));
    let calls = format!("barrier #0:1:1{}", " in #0:1:1".repeat(1000));
    assert!(error_of(&around(&calls)).contains("inlined through more than 64 calls"));
    assert!(
        error_of(&around(&"barrier ".repeat(limits::OPERATIONS + 1)))
            .contains("more than 1048576 operations")
    );
}

#[test]
fn reading_fills_in_places() {
    let text = around("%x = load f32 %p, @p\nstore %p, %x");
    let kernel = read(&text, "k.hsir").expect("it is a good kernel");
    let place = |index: usize| kernel.describe_place(kernel.body.ops[index].place);
    assert_eq!(
        (place(0).as_str(), place(1).as_str()),
        ("k.hsir:5:1", "k.hsir:6:1")
    );
    let load = kernel.loads.values().next().expect("there is a load");
    assert_eq!(kernel.describe_place(load.place), "k.hsir:5:1");
    // An operation's error is reported at its line.
    let error = read(&around("if %c { }"), "k.hsir").expect_err("an empty region");
    assert!(error.to_string().starts_with("k.hsir:5:1: "), "{error}");
    let nowhere = parse(&text, "k.hsir").expect("it is a good kernel");
    assert_eq!(nowhere.body.ops[0].place, Kernel::NOWHERE);
}

#[test]
fn a_block_behind_an_access_is_no_use_of_caches() {
    let text = "hsir 1\nkernel @k(%p: ptr.global i32[] align 4) {\nload @p\nstore %p, 1:i32\nblock 'a {\n%x = load i32 %p, @p\n\
                block {\nyield\n}\nstore %p, %x block\nyield\n}\nreturn\n}\n";
    let kernel = parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
    round_trip(&kernel);
}
