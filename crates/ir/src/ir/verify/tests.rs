//! For each rule, kernels that break it and nothing before it. Rules 16 to 20 are also tested in `types`.

use super::*;
use crate::error::Fault;
use crate::ir::kernel::{Label, LoadId, PlaceData, Region, Value};
use crate::ir::op::Op;
use crate::ir::types::Space;
use crate::ir::{limits, parse};

const BASE: &str = "hsir 1
kernel @base(
  %p: ptr.global f32[%n] align 4 readonly unaliased,
  %n: i64,
  %narrow: i32,
  %which: bool,
) group 64,1,1 sub_group 32 {
  shared @ring: f32[64] align 16
  load @p
  %x = load f32 %p, @p
  %sum = loop 'items (%i = 0:i64, %acc = %x) -> f32 unroll 4 {
    %more = lt.s %i, %n
    if %more { yield } else { break %acc }
    %next = add %i, 1:i64
    %acc1 = fadd %acc, %x
    continue %next, %acc1
  }
  %slot = array @ring
  %token = copy 4 to %slot from %p, @p
  wait %token
  prefetch L1 4 at %p
  store %slot, %sum
  return
}";

fn base() -> Kernel {
    parse(BASE, "base").expect("the kernel is well written")
}

fn value(kernel: &Kernel, name: &str) -> Value {
    let named = |value: &Value| kernel.values[*value].name.as_deref() == Some(name);
    kernel.values.keys().find(named).expect("the value is there")
}

/// The n-th operation of the body.
fn op(kernel: &mut Kernel, index: usize) -> &mut Op {
    &mut kernel.body.ops[index]
}

/// The body of the loop, second in the kernel's.
fn loop_body(kernel: &mut Kernel) -> &mut Region {
    op(kernel, 1)
        .kind
        .regions_mut()
        .next()
        .expect("a loop has a body")
}

/// The kernel changed like this breaks this rule, and is the fault of the right one.
#[track_caller]
fn breaks(rule: Rule, change: impl FnOnce(&mut Kernel)) {
    let mut kernel = base();
    change(&mut kernel);
    assert_broken(rule, &kernel);
}

/// The kernel with this written differently breaks this rule.
#[track_caller]
fn breaks_as_text(rule: Rule, from: &str, to: &str) {
    assert!(BASE.contains(from));
    let text = BASE.replacen(from, to, 1);
    assert_broken(rule, &parse(&text, "base").expect("it parses"));
}

#[track_caller]
fn assert_broken(rule: Rule, kernel: &Kernel) {
    let error = verify(kernel).expect_err("a rule is broken");
    let number = format!("(rule {} of the IR)", rule as u32);
    assert!(error.to_string().ends_with(&number), "{error}");
    assert_eq!(error.fault(), Fault::Input);
    let derived = verify_derived(kernel).expect_err("a rule is broken");
    let ours = rule != Rule::Size;
    assert_eq!(derived.fault() == Fault::Bug, ours);
}

#[test]
fn the_base_obeys() {
    assert_eq!(verify(&base()), Ok(()));
}

#[test]
fn rule_1_sizes() {
    breaks(Rule::Size, |kernel| {
        kernel.name = "n".repeat(limits::NAME_BYTES + 1)
    });
    breaks_as_text(Rule::Size, "shared @ring: f32[64]", "shared @ring: f32[262145]");
    breaks_as_text(Rule::Size, "shared", "private @big: i64[65537] align 8 shared");
    breaks(Rule::Size, |kernel| {
        let ring = kernel.arrays.values().next().expect("there is one").clone();
        for _ in 0..limits::ARRAYS {
            kernel.arrays.push(ring.clone());
        }
    });
    breaks(Rule::Size, |kernel| {
        let mut inner = std::mem::take(&mut kernel.body);
        for _ in 0..=limits::NESTING {
            let label = kernel.label(None, Vec::new());
            let block = Op {
                kind: OpKind::Block { label, body: inner },
                results: Vec::new(),
                place: Kernel::NOWHERE,
            };
            inner = Region {
                ops: vec![block, ret()],
            };
        }
        kernel.body = inner;
    });
    breaks(Rule::Size, |kernel| {
        let barrier = Op::new(OpKind::Barrier, Vec::new(), Kernel::NOWHERE);
        kernel.body.ops = vec![barrier; limits::OPERATIONS];
        kernel.body.ops.push(ret());
    });
    breaks(Rule::Size, |kernel| {
        let mut call = Kernel::NOWHERE;
        for line in 0..=limits::INLINED_CALLS as u32 {
            call = kernel.places.push(PlaceData {
                file: String::new(),
                line,
                column: 1,
                inlined_at: Some(call),
            });
        }
    });
}

fn ret() -> Op {
    Op::new(OpKind::Return, Vec::new(), Kernel::NOWHERE)
}

#[test]
fn rule_2_tables() {
    let nothing = Value::from_u32(1 << 20);
    breaks(Rule::Tables, |kernel| kernel.places.clear());
    breaks(Rule::Tables, |kernel| kernel.params[0].value = nothing);
    breaks(Rule::Tables, |kernel| op(kernel, 0).results[0] = nothing);
    breaks(Rule::Tables, |kernel| {
        op(kernel, 0).kind.map_operands(|_| nothing)
    });
    breaks(Rule::Tables, |kernel| {
        let op = op(kernel, 0);
        let OpKind::Load { id, .. } = &mut op.kind else {
            panic!("{op:?}")
        };
        *id = LoadId::from_u32(7);
    });
    breaks(Rule::Tables, |kernel| kernel.arrays.clear());
    breaks(Rule::Tables, |kernel| kernel.labels.clear());
    breaks(Rule::Tables, |kernel| {
        op(kernel, 0).place = crate::ir::Place::from_u32(9)
    });
    breaks(Rule::Tables, |kernel| {
        let own = Some(Kernel::NOWHERE);
        kernel.places[Kernel::NOWHERE].inlined_at = own;
    });
    breaks(Rule::Tables, |kernel| {
        kernel.loads[LoadId::from_u32(0)].place = crate::ir::Place::from_u32(9);
    });
    breaks(Rule::Tables, |kernel| {
        kernel.params[0].facts.as_mut().expect("p has facts").length = Some(nothing);
    });
}

#[test]
fn rule_3_parameters() {
    breaks(Rule::Params, |kernel| kernel.params[1].name.clear());
    breaks(Rule::Params, |kernel| kernel.params[1].name = "p".to_owned());
    breaks(Rule::Params, |kernel| {
        kernel.params[2].value = kernel.params[1].value
    });
    breaks(Rule::Params, |kernel| {
        kernel.params[2].value = kernel.constant(Type::I32, 1)
    });
    breaks_as_text(Rule::Params, "%which: bool", "%which: token");
    breaks_as_text(Rule::Params, "%which: bool", "%which: ptr.shared");
}

#[test]
fn rule_4_facts() {
    breaks_as_text(Rule::Facts, "%n: i64", "%n: i64 f32[] align 4");
    breaks_as_text(Rule::Facts, "f32[%n] align", "token[%n] align");
    breaks_as_text(Rule::Facts, "align 4", "align 6");
    breaks_as_text(Rule::Facts, "f32[%n]", "f32[%narrow]");
    breaks_as_text(Rule::Facts, "f32[%n]", "f32[-1:i64]");
    breaks(Rule::Facts, |kernel| {
        let inside = value(kernel, "next");
        kernel.params[0].facts.as_mut().expect("p has facts").length = Some(inside);
    });
}

#[test]
fn rule_5_arrays() {
    breaks(Rule::Arrays, |kernel| {
        kernel
            .arrays
            .values_mut()
            .for_each(|array| array.space = Space::Global);
    });
    breaks(Rule::Arrays, |kernel| {
        kernel.arrays.values_mut().for_each(|array| array.length = 0);
    });
    breaks_as_text(Rule::Arrays, "shared", "shared @tokens: token[1] align 8 shared");
    breaks_as_text(Rule::Arrays, "align 16", "align 2");
    breaks_as_text(Rule::Arrays, "align 16", "align 24");
}

#[test]
fn rule_6_geometry() {
    breaks_as_text(Rule::Geometry, "group 64,1,1", "group 64,65,1");
    breaks_as_text(
        Rule::Geometry,
        "group 64,1,1",
        "group 4294967295,4294967295,4294967295",
    );
    breaks(Rule::Geometry, |kernel| kernel.group_size = Some([0, 1, 1]));
    breaks_as_text(Rule::Geometry, "sub_group 32", "sub_group 24");
    breaks_as_text(Rule::Geometry, "sub_group 32", "sub_group 256");
    breaks_as_text(Rule::Geometry, "sub_group 32", "sub_group 32 registers 23");
    breaks_as_text(Rule::Geometry, "sub_group 32", "sub_group 32 registers 256");
}

#[test]
fn rule_7_constants() {
    breaks(Rule::Constants, |kernel| {
        let constant = kernel.constant(Type::I8, 1);
        kernel.values[constant].constant = Some(256);
    });
    breaks_as_text(Rule::Constants, "wait %token", "wait 1:token");
}

#[test]
fn rule_8_terminators() {
    breaks_as_text(Rule::Terminators, "  return\n", "");
    breaks_as_text(Rule::Terminators, "{ yield }", "{ }");
    breaks_as_text(Rule::Terminators, "{ yield }", "{ yield yield }");
    breaks(Rule::Terminators, |kernel| kernel.body.ops.clear());
}

#[test]
fn rule_9_definitions() {
    breaks(Rule::Definitions, |kernel| {
        let again = op(kernel, 0).clone();
        kernel.body.ops.insert(0, again);
    });
    breaks(Rule::Definitions, |kernel| {
        let constant = kernel.constant(Type::Ptr(Space::Shared), 0);
        op(kernel, 2).results[0] = constant;
    });
    breaks(Rule::Definitions, |kernel| {
        let (n, constant) = (kernel.params[1].value, kernel.constant(Type::I64, 0));
        for taken in [n, constant] {
            let OpKind::Loop { params, .. } = &mut op(kernel, 1).kind else {
                panic!()
            };
            params[0] = taken;
        }
    });
}

#[test]
fn rule_10_uses() {
    // Before the definition, and after the region of the definition.
    breaks(Rule::Uses, |kernel| kernel.body.ops.swap(2, 3));
    breaks(Rule::Uses, |kernel| {
        let inside = value(kernel, "acc1");
        let OpKind::Store { values, .. } = &mut op(kernel, 6).kind else {
            panic!()
        };
        values[0] = inside;
    });
    // A loop's result inside the loop, a loop's parameter after it.
    breaks(Rule::Uses, |kernel| {
        let sum = value(kernel, "sum");
        loop_body(kernel).ops[3].kind.map_operands(|_| sum);
    });
    breaks(Rule::Uses, |kernel| {
        let acc = value(kernel, "acc");
        let OpKind::Store { values, .. } = &mut op(kernel, 6).kind else {
            panic!()
        };
        values[0] = acc;
    });
}

#[test]
fn rule_11_labels() {
    breaks(Rule::Labels, |kernel| {
        let OpKind::If { label, .. } = loop_body(kernel).ops[1].kind else {
            panic!()
        };
        let body = Region {
            ops: vec![Op {
                kind: OpKind::Break(label, Vec::new()),
                ..ret()
            }],
        };
        let block = Op {
            kind: OpKind::Block { label, body },
            ..ret()
        };
        kernel.body.ops.insert(0, block);
    });
}

#[test]
fn rule_12_break() {
    breaks_as_text(Rule::Break, "break %acc", "break");
    breaks_as_text(Rule::Break, "break %acc", "break %i");
    breaks_as_text(Rule::Break, "break %acc", "break %acc, %acc");
    breaks(Rule::Break, |kernel| {
        let items = op(kernel, 1).kind.label().expect("a loop has a label");
        *kernel.body.ops.last_mut().expect("not empty") = Op {
            kind: OpKind::Break(items, Vec::new()),
            ..ret()
        };
    });
    breaks(Rule::Break, |kernel| {
        *kernel.body.ops.last_mut().expect("not empty") = Op {
            kind: OpKind::Break(Label::from_u32(99), Vec::new()),
            ..ret()
        };
    });
}

#[test]
fn rule_13_continue() {
    breaks_as_text(Rule::Continue, "continue %next, %acc1", "continue %next");
    breaks_as_text(Rule::Continue, "continue %next, %acc1", "continue %acc1, %next");
    // An `if` cannot be continued.
    breaks(Rule::Continue, |kernel| {
        let only_if = &mut loop_body(kernel).ops[1];
        let label = only_if.kind.label().expect("an if has a label");
        let then = only_if.kind.regions_mut().next().expect("an if has two");
        then.ops[0].kind = OpKind::Continue(label, Vec::new());
    });
}

#[test]
fn rule_14_loops() {
    breaks(Rule::Loops, |kernel| {
        let OpKind::Loop { initial, .. } = &mut op(kernel, 1).kind else {
            panic!()
        };
        initial.pop();
    });
    breaks(Rule::Loops, |kernel| {
        let OpKind::Loop { initial, .. } = &mut op(kernel, 1).kind else {
            panic!()
        };
        initial.swap(0, 1);
    });
    breaks(Rule::Loops, |kernel| {
        let OpKind::Loop { wishes, .. } = &mut op(kernel, 1).kind else {
            panic!()
        };
        wishes.unroll = Some(crate::ir::UnrollWish::By(0));
    });
}

#[test]
fn rule_15_results() {
    breaks(Rule::Results, |kernel| op(kernel, 1).results.clear());
    breaks(Rule::Results, |kernel| {
        let sum = value(kernel, "sum");
        kernel.values[sum].ty = Type::F64;
    });
    breaks(Rule::Results, |kernel| {
        let extra = kernel.value(Type::I32);
        op(kernel, 2).results.push(extra);
    });
    breaks(Rule::Results, |kernel| {
        let extra = kernel.value(Type::I32);
        kernel.body.ops.last_mut().expect("not empty").results.push(extra);
    });
    breaks(Rule::Results, |kernel| {
        let more = value(kernel, "more");
        kernel.values[more].ty = Type::I8;
    });
}

#[test]
fn rule_19_tokens() {
    let token = |kernel: &mut Kernel| kernel.constant(Type::Token, 0);
    breaks(Rule::Tokens, |kernel| {
        let token = token(kernel);
        let which = kernel.params[3].value;
        op(kernel, 2).kind = OpKind::Select(which, token, token);
    });
    breaks(Rule::Tokens, |kernel| {
        let token = token(kernel);
        let OpKind::Store { values, .. } = &mut op(kernel, 6).kind else {
            panic!()
        };
        values[0] = token;
    });
    breaks(Rule::Tokens, |kernel| {
        op(kernel, 4).kind = OpKind::Join(Vec::new())
    });
    breaks(Rule::Tokens, |kernel| {
        let n = kernel.params[1].value;
        op(kernel, 4).kind = OpKind::Wait(n);
    });
    breaks(Rule::Tokens, |kernel| {
        let n = kernel.params[1].value;
        op(kernel, 4).kind = OpKind::Join(vec![n]);
    });
    breaks(Rule::Tokens, |kernel| {
        let x = value(kernel, "x");
        kernel.values[x].ty = Type::Token;
    });
}

#[test]
fn rule_21_conditions() {
    breaks_as_text(Rule::Condition, "if %more", "if %i");
}
