//! Launches on memory at addresses of a program's choosing: pointers that lie in memory lead where they did.

use std::sync::Arc;

use super::Case;
use crate::device::{Argument, Buffer, Fill};
use crate::functional::{BufferMemory, CompiledKernel, Footprint, Noted, Options};
use crate::ir::Type;
use headstart_front::ptx::{Facts, read};

/// `while (p) { s += p->value; p = p->next; } out[0] = s;`
const LIST: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sum(.param .u64 list, .param .u64 out)\n{\n\
    .reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\nld.param.u64 %rd1, [list];\nld.param.u64 %rd2, [out];\n\
    mov.u32 %r1, 0;\nL:\nsetp.eq.s64 %p1, %rd1, 0;\n@%p1 bra D;\nld.global.u32 %r2, [%rd1+8];\nadd.s32 %r1, %r1, %r2;\n\
    ld.global.u64 %rd1, [%rd1];\nbra L;\nD:\nst.global.u32 [%rd2], %r1;\nret;\n}\n";

const HERE: u64 = 0x7f3a_5000_0200;
const THERE: u64 = 0x3_0000_0000;
const OUT: u64 = 0x7f3a_5000_0400;

fn placed(bytes: &[u8]) -> Buffer {
    let fill = Fill::Bytes(bytes.into());
    let memory = BufferMemory::new(Type::I8, bytes.len() as u64, fill).expect("fits");
    Buffer::new(Type::I8, bytes.len() as u64, Arc::new(memory))
}

/// The same with a prefetch of each node's value before its use, or of the value of the next node, if there is one.
fn with_prefetch(own: bool) -> String {
    let load = "ld.global.u64 %rd1, [%rd1];";
    let (before, after) = if own {
        ("prefetch.global.L1 [%rd1+8];", "")
    } else {
        ("", "prefetch.global.L1 [%rd1+8];")
    };
    LIST.replace(load, &format!("{before}\n{load}\n{after}"))
}

/// A list of three in two allocations, whose last one leads to `end`.
fn list(end: u64) -> Case {
    list_for(LIST, end)
}

fn list_for(ptx: &str, end: u64) -> Case {
    let node = |next: u64, value: u64| [next.to_le_bytes(), value.to_le_bytes()].concat();
    let here = placed(&[node(THERE, 5), node(end, 70)].concat());
    let there = placed(&node(HERE + 16, 600));
    let out = placed(&[0; 4]);
    let kernel = read(ptx, "list.ptx", None, &Facts::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut case = Case::of(kernel, 1, 1);
    let ty = case.kernel.params[0].facts.expect("a pointer").element;
    case.launch.arguments = vec![
        Argument::Part(here.seen_as(ty), 0),
        Argument::Part(out.seen_as(Type::I32), 0),
    ];
    case.launch.memory = vec![(HERE, here), (THERE, there), (OUT, out)];
    case
}

fn sum(case: &Case) -> Vec<u8> {
    let memory: Arc<BufferMemory> = case.launch.memory[2].1.implementation().expect("the simulator's");
    let mut bytes = vec![0; 4];
    memory.copy_out(0, &mut bytes).expect("filled");
    bytes
}

#[test]
fn a_list_is_followed_through_its_own_pointers() {
    for options in [Options::CHECKING, Options::FAST] {
        let case = Case { options, ..list(0) };
        case.run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sum(&case), 675u32.to_le_bytes());
    }
}

#[test]
fn a_pointer_that_leads_out_of_all_memory_is_caught() {
    for (end, told) in [
        (HERE + 32, "out of bounds"),
        (0x10_0000, "at address 0x100008, which is in no buffer"),
    ] {
        let error = list(end).error();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_prefetch_is_looked_up_where_the_memory_lies() {
    let case = list_for(&with_prefetch(true), 0);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sum(&case), 675u32.to_le_bytes());
    // The last one has no next.
    let error = list_for(&with_prefetch(false), 0).error();
    assert!(error.contains("prefetches 1 bytes at address 0x8"), "{error}");
}

#[test]
fn what_a_launch_touches_is_counted_where_the_memory_lies() {
    let case = list(0);
    let compiled = CompiledKernel::new(Arc::clone(&case.kernel));
    let sizes = [32, 16, 4];
    let footprint = Footprint::new(&sizes, 32, 1 << 20).expect("small buffers");
    let steps = compiled.steps_of(&case.launch, 32, case.options, &[0], Some(&footprint));
    assert_eq!(steps.expect("it runs").len(), 1);
    assert_eq!(footprint.bytes(), 3 * 32, "a line of each buffer");
}

#[test]
fn a_null_pointer_may_be_passed_and_not_followed() {
    let mut case = list(0);
    case.launch.arguments[0] = Argument::Address(0);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sum(&case), [0; 4]);
    // A number leads where a buffer would.
    case.launch.arguments[0] = Argument::Address(THERE);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sum(&case), 670u32.to_le_bytes());
    case.launch.arguments[0] = Argument::Address(16);
    assert!(case.error().contains("at address 0x18, which is in no buffer"));
}

#[test]
fn what_a_launch_asks_for_is_noted_in_order() {
    let case = list(0);
    let compiled = CompiledKernel::new(Arc::clone(&case.kernel));
    let noted = |one_in| Noted {
        line: 32,
        sector: 8,
        is_noted: |line, one_in| line.is_multiple_of(one_in),
        one_in,
        most_steps: u64::MAX,
    };
    let run = |one_in| {
        let found = compiled.requests_of(&case.launch, 32, case.options, &[0], noted(one_in), None);
        found.expect("it runs").remove(0)
    };
    let (steps, of_sub_groups) = run(1);
    assert!(steps > 0);
    let requests = of_sub_groups.concat();
    let lines: Vec<u64> = requests.iter().map(|request| request.line()).collect();
    let mut distinct = lines.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 3, "a line of each buffer");
    assert!(requests.is_sorted_by_key(|request| request.after));
    assert!(
        requests.last().is_some_and(|last| last.writes()),
        "the sum comes last"
    );
    assert!(requests.iter().all(|request| request.sectors() != 0));
    let some = run(2).1.concat();
    assert!(some.iter().all(|request| request.line().is_multiple_of(2)));
    assert_eq!(
        some.len(),
        lines.iter().filter(|line| line.is_multiple_of(2)).count()
    );
}
