//! Captured launches whose kernels follow pointers in memory.

use std::path::Path;
use std::sync::Arc;

use super::{Engine, Perturbed, Settings, Thoroughness, plan};
use crate::tune::Subject;
use crate::tune::captured_subject;
use crate::tune::subject::captured::tests::{allocation, captured};

/// `for (i = 0; i < n; i++, list = list->next) sum = sum * 31 + table[list->value & 15];`
const RING: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry k(.param .u64 list, .param .u64 table, .param .u64 out, .param .u32 n)\n{\n\
    .reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n\
    ld.param.u64 %d1, [list];\nld.param.u64 %d2, [table];\nld.param.u64 %d3, [out];\nld.param.u32 %r6, [n];\nmov.u32 %r1, 0;\nmov.u32 %r7, 0;\n\
    L:\nsetp.ge.s32 %p1, %r7, %r6;\n@%p1 bra D;\nld.global.u32 %r2, [%d1+8];\nand.b32 %r3, %r2, 15;\nmul.wide.u32 %d4, %r3, 4;\n\
    add.s64 %d5, %d2, %d4;\nld.global.u32 %r4, [%d5];\nmad.lo.s32 %r1, %r1, 31, %r4;\nld.global.u64 %d1, [%d1];\n\
    add.s32 %r7, %r7, 1;\nbra L;\n\
    D:\nmov.u32 %r5, %tid.x;\nsetp.ne.s32 %p1, %r5, 0;\n@%p1 bra E;\nst.global.u32 [%d3], %r1;\nE:\nret;\n}\n";

const NODES: u64 = 0x7f00_0000_0000;
const MORE: u64 = 0x7f00_0000_1000;
const TABLE: u64 = 0x7f00_0000_2000;
const OUT: u64 = 0x7f00_0000_3000;

/// A ring of twelve nodes, by turns in one allocation and in another.
fn ring() -> crate::capture::Captured {
    let place = |number: u64| [NODES, MORE][number as usize % 2] + number / 2 * 16;
    let nodes = |first: u64| {
        let own = (first..12).step_by(2);
        let node = |number: u64| [place((number + 1) % 12), 7 * number];
        let words = own.flat_map(node).flat_map(u64::to_le_bytes);
        words.collect::<Vec<u8>>()
    };
    let table = (0..16u32).flat_map(|number| (number * number).to_le_bytes());
    let memory = vec![
        allocation(NODES, nodes(0), None),
        allocation(MORE, nodes(1), None),
        allocation(TABLE, table.collect(), None),
        allocation(OUT, vec![0; 4], None),
    ];
    crate::capture::Captured {
        layout: vec![(0, 8), (8, 8), (16, 8), (24, 4)],
        ..captured("k", RING, &[NODES, TABLE, OUT, 30], memory)
    }
}

#[test]
fn words_that_are_pointers_are_never_drawn() {
    let subject = captured_subject(ring()).expect("a subject");
    let kernel = subject.workload().expect("a workload").kernel;
    let plan = plan("unroll:2");
    let engine = Engine::of_no_device([32, 1, 1]);
    let perturbed = Perturbed::new(&subject, &kernel, engine, [&plan], Settings::default());
    let perturbed = perturbed.unwrap_or_else(|error| panic!("{error}"));
    let launches = &perturbed.launches;
    assert!(launches.kept.len() > 100, "{}", launches.kept.len());
    // Every launch goes round as often as its counter says, whatever the values are.
    assert!(
        launches.dropped.keys().all(|&rule| rule == "not-ended"),
        "{:?}",
        launches.dropped
    );
    let is_drawn = |what: &str| what.contains(&format!("memory at {NODES:#x}"));
    assert!(launches.kept.iter().any(|kept| is_drawn(&kept.variant.what)));

    // A fault that only other values show is found, and repeated.
    let text = crate::ir::print(&kernel);
    assert_eq!(text.matches(", 15:i32").count(), 1, "{text}");
    let wrong = crate::ir::read(&text.replace(", 15:i32", ", 79:i32"), "wrong.hsir").expect("a kernel");
    let error = perturbed.check(&plan, &Arc::new(wrong), Thoroughness::All);
    let message = error.expect_err("it is wrong").to_string();
    let folder = message
        .split("to repeat it: `")
        .nth(1)
        .and_then(|rest| rest.strip_suffix('`'));
    let folder = Path::new(folder.unwrap_or_else(|| panic!("{message}")));
    let repeated = super::super::reproducer::repeat::repeat(folder, &perturbed.engine);
    let repeated = repeated.unwrap_or_else(|error| panic!("{error}"));
    assert!(repeated.is_some(), "{message}");
    std::fs::remove_dir_all(folder).expect("it is there");
}
