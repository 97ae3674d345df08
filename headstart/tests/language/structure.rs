//! The IR of a kernel besides its results: facts of parameters, places, names, requests.

use headstart::device::TypedBuffer;
use headstart::ir::{Kernel, LoopWishes, OpKind, UnrollWish};
use headstart::prelude::*;

#[device_fn]
fn fetch(values: &[f32], at: usize) -> f32 {
    values[at]
}

#[kernel(work_group = (2 * N, height), sub_group = 16, accuracy = Accuracy::OpenCl)]
fn described<const N: usize>(
    indices: &[u32],
    out: &mut [f32],
    items: u32,
    out_length: u32,
    #[constant] height: u32,
) {
    let mut sum = 0.0;
    'rows: for i in 0..items as usize {
        #[unroll(4)]
        for j in 0..4 {
            sum += indices[i + j] as f32;
            sum += fetch(out, i);
        }
        #[unroll]
        while sum > 1e9 {
            sum *= 0.5;
        }
        #[unroll(0)]
        #[prefetch("unroll:2,indices=cache:L1:4")]
        loop {
            if indices[i] > out_length {
                continue 'rows;
            }
            break;
        }
    }
    out[global_id()] = sum + height as f32;
}

fn loops(kernel: &Kernel) -> Vec<(Option<String>, LoopWishes)> {
    let mut loops = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, wishes, .. } = &op.kind {
            loops.push((kernel.labels[*label].name.clone(), wishes.clone()));
        }
    });
    loops
}

#[test]
fn the_ir_says_what_the_source_says() {
    let kernel = described::kernel::<8>(4).expect("it is right");
    headstart::ir::verify(&kernel).expect("it keeps the rules");
    assert_eq!(
        (kernel.group_size, kernel.sub_group_size),
        (Some([16, 4, 1]), Some(16))
    );
    assert_eq!(kernel.float_mode.accuracy, Accuracy::OpenCl);

    let names: Vec<&str> = kernel.params.iter().map(|param| param.name.as_str()).collect();
    // The length of `out` makes room for the parameter of that name.
    assert_eq!(
        names,
        [
            "indices",
            "indices_length",
            "out",
            "out_length_",
            "items",
            "out_length"
        ]
    );
    let facts = |name| {
        kernel
            .param(name)
            .and_then(|param| param.facts)
            .expect("a pointer")
    };
    assert!(facts("indices").read_only && facts("indices").unaliased);
    assert!(!facts("out").read_only && facts("out").unaliased);
    assert_eq!(
        facts("out").length,
        kernel.param("out_length_").map(|param| param.value)
    );

    let wishes = |unroll, plan: Option<&str>| LoopWishes {
        unroll,
        plan: plan.map(str::to_owned),
    };
    let expected = [
        (Some("rows"), wishes(None, None)),
        (Some("j"), wishes(Some(UnrollWish::By(4)), None)),
        (None, wishes(Some(UnrollWish::Full), None)),
        (
            None,
            wishes(Some(UnrollWish::Keep), Some("unroll:2,indices=cache:L1:4")),
        ),
    ];
    let expected = expected.map(|(name, wishes)| (name.map(str::to_owned), wishes));
    assert_eq!(loops(&kernel), expected);
}

/// A loop with a plan, and one that is to vanish.
#[kernel]
fn asks(indices: &[u32], values: &[u32], sums: &mut [u32], items: u32) {
    let mut sum = 0u32;
    #[prefetch("values=rolling-registers:3")]
    for j in 0..items as usize {
        sum = sum
            .wrapping_mul(3)
            .wrapping_add(values[indices[global_id() * items as usize + j] as usize]);
    }
    #[unroll]
    for shift in 0..5 {
        sum ^= sum >> (3 + shift);
    }
    sums[global_id()] = sum;
}

#[test]
fn what_is_asked_of_loops_is_done_by_compiling() {
    let asked = asks::kernel().expect("it is right");
    assert_eq!(loops(&asked).len(), 2);
    for device in crate::agree::devices() {
        let compiled = asks::compile(&*device).expect("compiles");
        let kernel = compiled.program().kernel();
        let (before, after) = (headstart::ir::print(&asked), headstart::ir::print(kernel));
        assert_ne!(before, after);
        // The ring takes its first values before the loop; of the other loop its body is left, five times.
        assert!(
            loops(kernel)
                .iter()
                .all(|(_, wishes)| *wishes == LoopWishes::default()),
            "{after}"
        );
        assert!(
            after.matches("xor").count() >= before.matches("xor").count() + 4,
            "{after}"
        );
        let loads = |text: &str| text.matches("= load ").count();
        assert!(loads(&after) > loads(&before), "{after}");
        let queue = device.queue().expect("a queue");
        let (items, indices) = (7u32, (0..64 * 7).map(|i| i * 5 % 61).collect::<Vec<u32>>());
        let numbers: Vec<u32> = (0..61).map(|i| i * i + 1).collect();
        let expected: Vec<u32> = indices
            .chunks(items as usize)
            .map(|row| {
                let sum = row.iter().fold(0u32, |sum, &i| {
                    sum.wrapping_mul(3).wrapping_add(numbers[i as usize])
                });
                (0..5).fold(sum, |sum, shift| sum ^ sum >> (3 + shift))
            })
            .collect();
        let indices = TypedBuffer::from_slice(&*device, &indices).expect("fits");
        let values = TypedBuffer::from_slice(&*device, &numbers).expect("fits");
        let mut sums = TypedBuffer::uninitialized(&*device, 64).expect("fits");
        let arguments = asks::arguments(&indices, &values, &mut sums, items);
        let event = compiled.launch(&*queue, Geometry::new(2, 32), arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sums.read(&*queue).expect("written"), expected);
    }
}

#[test]
fn loads_know_their_line_and_the_calls_around_them() {
    let kernel = described::kernel::<8>(4).expect("it is right");
    let load = |name: &str| {
        kernel
            .loads
            .values()
            .find(|load| load.name == name)
            .expect("it is loaded")
    };
    let line = |needle: &str| {
        let found = include_str!("structure.rs")
            .lines()
            .position(|line| line.contains(needle));
        found.expect("the needle stands in this file") + 1
    };
    let direct = kernel.describe_place(load("indices").place);
    assert_eq!(
        direct,
        format!(
            "headstart/tests/language/structure.rs:{}:20",
            line("sum += indices[i + j]")
        )
    );
    let inlined = kernel.describe_place(load("out").place);
    let (inside, call) = (line("    values[at]"), line("sum += fetch(out, i)"));
    assert!(inlined.contains(&format!("structure.rs:{inside}:5")), "{inlined}");
    assert!(inlined.contains(&format!("structure.rs:{call}:20)")), "{inlined}");
}

#[test]
fn a_name_stays_a_name() {
    let text = headstart::ir::print(&described::kernel::<8>(4).expect("it is right"));
    for name in ["%sum", "%i", "%j", "'rows"] {
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
}

/// Loops whose variables are needed for different reasons.
#[kernel]
#[allow(unused)]
fn carried(input: &[u32], out: &mut [u32], n: u32) {
    let mut sum = 0;
    let mut unchanged = 5;
    let mut scratch;
    let mut unused = 1;
    for i in 0..n {
        // Assigned before every use: nothing to carry.
        scratch = input[i as usize];
        if scratch == 77 {
            // Assigned only where the work-item ends.
            unchanged = scratch;
            out[0] = unchanged;
            return;
        }
        unused += scratch;
        if scratch > 5 && i < 100 {
            sum += scratch;
        }
    }
    out[global_id()] = sum + unchanged;
}

#[test]
fn loops_carry_what_they_need() {
    let kernel = carried::kernel().expect("it is right");
    let mut seen = (0, 0, 0, 0);
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Loop { params, .. } => seen.0 += params.len(),
        OpKind::If { .. } => seen.1 += op.results.len(),
        OpKind::Block { .. } => seen.2 += 1,
        OpKind::Binary(headstart::ir::BinaryOp::And, ..) => seen.3 += 1,
        _ => {}
    });
    // The sum and the counter; the sum out of its `if`; no block; `&&` without a branch.
    assert_eq!(seen, (2, 1, 0, 1), "{}", headstart::ir::print(&kernel));
}
