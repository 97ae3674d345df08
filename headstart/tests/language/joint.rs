//! `joint:…` and `bulk:L2:…`: the derived code, and the refusals.

use std::sync::Arc;

use headstart::checker;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Groups;
use headstart::device::{Argument, Device, Fill, Launch, Pattern};
use headstart::ir::{self, Kernel, OpKind, PrefetchScope, Type};
use headstart::prefetch::{self, Plan, PlanTarget};
use headstart::prelude::*;

use crate::agree::lowers;

/// Work-items read side by side.
#[kernel(work_group = 64, sub_group = 32)]
fn rows(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[j * global_size() + global_id()];
    }
    out[global_id()] = sum;
}

/// All read the same.
#[kernel(work_group = 64)]
fn same(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[j];
    }
    out[global_id()] = sum;
}

/// Each sub-group has a stretch of its own, as in Intel's example; the values lie anywhere.
#[kernel(work_group = 64, sub_group = 32)]
fn stretches(values: &[f32], out: &mut [f32], items: u32) {
    let first = sub_group_local_id() + global_id() / 32 * 32 * items as usize;
    let mut sum = 0.0;
    for j in 0..items as usize {
        let index = values[first + j * 32] as usize;
        sum += out[index % 1];
    }
    out[global_id()] = sum;
}

/// A gap between neighbours.
#[kernel(work_group = 64)]
fn gaps(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[j * global_size() + 2 * local_id()];
    }
    out[global_id()] = sum;
}

/// Work-items go round as often as their number says.
#[kernel(work_group = 64)]
fn ragged(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize + local_id() {
        sum += values[j];
    }
    out[global_id()] = sum;
}

/// Some have ended before.
#[kernel(work_group = 64)]
fn ended(values: &[f32], out: &mut [f32], items: u32) {
    if global_id() >= 100 {
        return;
    }
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[j];
    }
    out[global_id()] = sum;
}

fn derive(kernel: &Kernel, plan: &str) -> headstart::Result<Kernel> {
    let plan: Plan = plan.parse().expect("a plan");
    let target = PlanTarget::of([64, 1, 1]);
    prefetch::apply(kernel, &plan, &target).map(|applied| applied.kernel)
}

/// The prefetches that a plan adds, and that results and bounds stay right at several trip counts.
fn derived(kernel: headstart::Result<Kernel>, plan: &str) -> (Kernel, Vec<PrefetchScope>) {
    let kernel = Arc::new(kernel.expect("builds"));
    let derived = Arc::new(derive(&kernel, plan).unwrap_or_else(|error| panic!("{plan}: {error}")));
    let device = Simulator::untimed();
    let filled = |length, pattern| {
        device
            .allocate(Type::F32, length, Fill::Pattern(pattern))
            .expect("fits")
    };
    for items in [0u64, 1, 2, 3, 7, 40] {
        let length = (128 * items).max(1);
        let arguments = vec![
            Argument::Buffer(filled(length, Pattern::Fractions { low: 1.0 })),
            Argument::Scalar(Type::I64, length),
            Argument::Buffer(filled(128, Pattern::Constant(0))),
            Argument::Scalar(Type::I64, 128),
            Argument::Scalar(Type::I32, items),
        ];
        let launch = Launch::new(2, 64, arguments);
        checker::check(&kernel, &derived, &launch, 32, &Groups::All)
            .unwrap_or_else(|error| panic!("{plan}, {items} items: {error}\n{}", ir::print(&derived)));
    }
    let mut scopes = Vec::new();
    derived.body.walk(&mut |op| {
        if let OpKind::Prefetch { scope, .. } = &op.kind {
            scopes.push(*scope);
        }
    });
    lowers(Ok(Kernel::clone(&derived)));
    (Kernel::clone(&derived), scopes)
}

#[test]
fn groups_prefetch_what_they_will_read() {
    use PrefetchScope::{Bulk, SubGroup, WorkGroup};
    for (plan, expected) in [
        ("values=joint:L2:3", SubGroup),
        ("values=joint:L3:2/nt", SubGroup),
        ("values=joint:L1:2/group", WorkGroup),
        ("values=bulk:L2:4", Bulk),
    ] {
        let (kernel, scopes) = derived(rows::kernel(), plan);
        assert_eq!(scopes, [expected], "{plan}: {}", ir::print(&kernel));
        // 32 or 64 floats: the sizes are required, so no count is computed.
        let bytes = if expected == WorkGroup { "256 at" } else { "128 at" };
        assert!(
            ir::print(&kernel).contains(bytes),
            "{plan}: {}",
            ir::print(&kernel)
        );
    }
    let (_, scopes) = derived(rows::kernel(), "unroll:4,values=joint:L2:8");
    assert_eq!(scopes.len(), 4);
    // Work-groups of known size, sub-groups of any: the last one may be smaller.
    let (kernel, scopes) = derived(same::kernel(), "values=joint:L2:16");
    assert_eq!(scopes, [SubGroup]);
    assert!(
        ir::print(&kernel).contains("and "),
        "only the step that enters a line: {}",
        ir::print(&kernel)
    );
    let (_, scopes) = derived(same::kernel(), "values=bulk:L2:4");
    assert_eq!(scopes, [Bulk]);
    let (_, scopes) = derived(same::kernel(), "values=joint:L2:4/group");
    assert_eq!(scopes, [WorkGroup]);
    // The number of a sub-group is the same for its work-items.
    let stretches = stretches::kernel().expect("builds");
    assert!(derive(&stretches, "values=joint:L2:2").is_ok());
    let refused = derive(&stretches, "values=joint:L2:2/group")
        .expect_err("they lie apart")
        .to_string();
    assert!(
        refused.contains("the addresses of its work-items diverge"),
        "{refused}"
    );
}

#[test]
fn nontemporal_loads_stream() {
    let (kernel, _) = derived(rows::kernel(), "values=cache:L2:3/nt");
    let text = ir::print(&kernel);
    assert!(text.contains("@values streaming"), "{text}");
    let (kernel, _) = derived(rows::kernel(), "values=cache:L2:3");
    assert!(!ir::print(&kernel).contains("streaming"));
}

#[test]
fn what_diverges_is_refused() {
    for (kernel, expected) in [
        (gaps::kernel(), "its work-items read 4 bytes each, 8 bytes apart"),
        (ragged::kernel(), "may not all come here"),
        (ended::kernel(), "may not all come here"),
    ] {
        let kernel = kernel.expect("builds");
        for plan in ["values=joint:L2:3", "values=joint:L2:3/group", "values=bulk:L2:3"] {
            let error = derive(&kernel, plan).expect_err(plan).to_string();
            assert!(
                error.contains(expected) && error.contains("joint.rs:"),
                "{plan}: {error}"
            );
        }
        assert!(derive(&kernel, "values=cache:L2:3").is_ok());
    }
}

/// A fence in each iteration, behind the load.
#[kernel(work_group = 64)]
fn fenced(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[j * global_size() + global_id()];
        fence(Ordering::AcqRel);
    }
    out[global_id()] = sum;
}

/// The same, prefetched by hand, and only once.
#[kernel(work_group = 64)]
fn fenced_by_hand(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        if j + 2 < items as usize {
            prefetch(&values[(j + 2) * global_size() + global_id()], L1);
        }
        sum += values[j * global_size() + global_id()];
        fence(Ordering::AcqRel);
    }
    out[global_id()] = sum;
}

/// A fence in front of the load.
#[kernel(work_group = 64)]
fn fenced_before(values: &[f32], out: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        fence(Ordering::AcqRel);
        sum += values[j * global_size() + global_id()];
    }
    out[global_id()] = sum;
}

/// What a run of a kernel has to say.
fn notes(kernel: &Kernel) -> Vec<String> {
    use headstart::device::Command;
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let filled = |length| {
        device
            .allocate(Type::F32, length, Fill::Pattern(Pattern::Constant(0)))
            .expect("fits")
    };
    let items = 9u64;
    let arguments = vec![
        Argument::Buffer(filled(128 * items)),
        Argument::Scalar(Type::I64, 128 * items),
        Argument::Buffer(filled(128)),
        Argument::Scalar(Type::I64, 128),
        Argument::Scalar(Type::I32, items),
    ];
    let program = device.compile(&Arc::new(kernel.clone())).expect("compiles");
    let launch = Launch::new(2, 64, arguments);
    let outcome = queue.submit(Command::Launch(program, launch), &[]).wait();
    outcome.unwrap_or_else(|error| panic!("{error}")).notes.clone()
}

#[test]
fn hints_are_issued_again_behind_fences() {
    let by_hand = notes(&fenced_by_hand::kernel().expect("builds"));
    assert_eq!(by_hand.len(), 1, "{by_hand:?}");
    for plan in ["values=cache:L1:2", "values=cache:L1:1"] {
        for kernel in [fenced::kernel, fenced_before::kernel] {
            let (kernel, scopes) = derived(kernel(), plan);
            let found = notes(&kernel);
            assert!(found.is_empty(), "{plan}: {found:?}\n{}", ir::print(&kernel));
            assert!(scopes.len() > 1, "{plan}: {}", ir::print(&kernel));
        }
    }
    let plain = Arc::new(fenced::kernel().expect("builds"));
    let refused =
        derive(&plain, "unroll:2,values=cache:L1:4").expect_err("what is left would lose its hints");
    assert!(refused.to_string().contains("a fence may undo"), "{refused}");
    // L2 keeps what it has.
    let (_, scopes) = derived(fenced::kernel(), "values=cache:L2:2");
    assert_eq!(scopes.len(), 1);
}
