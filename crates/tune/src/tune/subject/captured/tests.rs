//! Launches written by hand: what is known of them, their replay, and what their tuned kernels rest on.

use super::*;
use crate::device::sim::Simulator;
use crate::tune::modules::granted::Granted;
use crate::tune::planned_module;
use crate::tune::subject::Subject;

/// `while (p) { s += p->value; p = p->next; } out[0] = s;`
const LIST: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sum(.param .u64 list, .param .u64 out)\n{\n\
    .reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\nld.param.u64 %rd1, [list];\nld.param.u64 %rd2, [out];\n\
    mov.u32 %r1, 0;\nL:\nsetp.eq.s64 %p1, %rd1, 0;\n@%p1 bra D;\nld.global.u32 %r2, [%rd1+8];\nadd.s32 %r1, %r1, %r2;\n\
    ld.global.u64 %rd1, [%rd1];\nbra L;\nD:\nst.global.u32 [%rd2], %r1;\nret;\n}\n";
/// `while (i < n) { s += table[i]; out[tid] = s; if (s > 10⁵) break; i++; }`
const SUMS: &str = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 table, .param .u64 out, \
    .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<12>;\nld.param.u64 %rd2, [out];\n\
    ld.param.u32 %r1, [n];\nld.param.u64 %rd3, [table];\nmov.u32 %r6, %tid.x;\nmul.wide.u32 %rd8, %r6, 4;\n\
    add.s64 %rd9, %rd2, %rd8;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\nsetp.ge.s32 %p1, %r2, %r1;\n@%p1 bra D;\n\
    mul.wide.s32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd3, %rd4;\nld.global.u32 %r4, [%rd5];\nadd.s32 %r3, %r3, %r4;\n\
    st.global.u32 [%rd9], %r3;\nsetp.gt.s32 %p2, %r3, 100000;\n@%p2 bra D;\nadd.s32 %r2, %r2, 1;\nbra L;\nD:\nret;\n}\n";

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(in crate::tune) fn allocation(address: u64, before: Vec<u8>, after: Option<Vec<u8>>) -> Allocation {
    let before: Arc<[u8]> = before.into();
    Allocation {
        address,
        after: after.map_or_else(|| Arc::clone(&before), Arc::from),
        before,
        is_foreign: false,
    }
}

/// A launch of one work-group of 32 whose parameters are these words.
pub(in crate::tune) fn captured(
    kernel: &str,
    module: &str,
    parameters: &[u64],
    memory: Vec<Allocation>,
) -> Captured {
    Captured {
        folder: "cap/k".into(),
        kernel: kernel.to_owned(),
        image: "ab".to_owned(),
        number: 0,
        device: "a GPU".to_owned(),
        capability: 90,
        driver: 13000,
        groups: [1; 3],
        group: [32, 1, 1],
        shared_bytes: 0,
        attributes: Vec::new(),
        parameters: parameters.iter().flat_map(|word| word.to_le_bytes()).collect(),
        layout: (0..parameters.len() as u64)
            .map(|number| (8 * number, 8))
            .collect(),
        memory,
        variables: Vec::new(),
        has_run: true,
        module: Some(module.to_owned()),
        contraction: Contraction::Unknown,
    }
}

/// `SUMS` of 1, 2, … 40 by 32 work-items; its parameters lead to these addresses.
fn sums(table: u64, out: u64, memory: Vec<Allocation>) -> Captured {
    Captured {
        layout: vec![(0, 8), (8, 8), (16, 4)],
        ..captured("k", SUMS, &[table, out, 40], memory)
    }
}

const TABLE: u64 = 0x7f00_0000_0000;
const OUT: u64 = 0x7f00_0000_1000;

fn apart() -> Captured {
    let table: Vec<u32> = (1..=40).collect();
    let memory = vec![
        allocation(TABLE, words(&table), None),
        allocation(OUT, vec![0; 128], Some(words(&[820; 32]))),
    ];
    sums(TABLE, OUT, memory)
}

#[test]
fn what_is_known_follows_from_where_parameters_lead() {
    let subject = captured_subject(apart()).expect("a subject");
    let facts = subject.launch().facts();
    assert_eq!(facts.parameters["table"].length, Some(40));
    assert!(facts.parameters["table"].unaliased && facts.parameters["out"].unaliased);
    assert!(
        subject.workload().expect("a workload").placed.is_none(),
        "it may run anywhere"
    );
    // Into the middle of an allocation, and both into one: 40 words are read, and 32 written.
    for (table, out, is_apart) in [
        (TABLE + 16, OUT, true),
        (TABLE + 16, TABLE + 176, true),
        (TABLE + 16, TABLE + 172, false),
        (TABLE + 128, TABLE, true),
        (TABLE + 124, TABLE, false),
    ] {
        let one = allocation(TABLE, vec![0; 0x2000], None);
        let subject = captured_subject(sums(table, out, vec![one])).expect("a subject");
        let facts = subject.launch().facts();
        assert_eq!(facts.parameters["table"].length, None);
        for name in ["table", "out"] {
            assert_eq!(
                facts.parameters[name].unaliased, is_apart,
                "{name}, {table:#x} and {out:#x}"
            );
        }
        assert!(subject.workload().expect("a workload").placed.is_some());
    }
    // What others may write is known by nothing.
    let mut foreign = apart();
    foreign.memory[0].is_foreign = true;
    let subject = captured_subject(foreign).expect("a subject");
    assert!(!subject.launch().facts().parameters.contains_key("table"));
}

/// The table's 40 words lie in front of where its parameter points, which is where the next allocation begins.
#[test]
fn a_pointer_past_the_end_of_its_array_is_of_the_array() {
    let end = TABLE + 160;
    let table: Vec<u32> = (1..=40).collect();
    let next = |bytes: usize| allocation(end, vec![0; bytes], None);
    let text = SUMS.replace("[%rd5]", "[%rd5+-160]");
    let facts_for = |text: &str, out: u64, next: Allocation| {
        let far = allocation(OUT, vec![0; 128], Some(words(&[820; 32])));
        let memory = vec![allocation(TABLE, words(&table), None), next, far];
        let own = Captured {
            module: Some(text.to_owned()),
            ..sums(end, out, memory)
        };
        let subject = captured_subject(own.clone()).expect("a subject");
        (
            own,
            subject.launch().facts(),
            subject.workload().expect("a workload"),
        )
    };
    // Into the next one is apart from the table, although both parameters lead there; the table is not.
    let (_, facts, _) = facts_for(&text, end, next(128));
    assert!(facts.parameters["table"].unaliased && facts.parameters["out"].unaliased);
    let (_, facts, _) = facts_for(&text, TABLE, next(128));
    assert!(!facts.parameters["table"].unaliased && !facts.parameters["out"].unaliased);
    let (own, facts, workload) = facts_for(&text, OUT, next(128));
    assert!(facts.parameters["table"].unaliased && facts.parameters["out"].unaliased);
    assert_eq!(facts.parameters["table"].length, None, "it is the next one's");
    assert!(workload.placed.is_some(), "what it reads has to be there");
    let ran = replay(own, &Simulator::untimed()).expect("it runs");
    assert_eq!((ran.differences, ran.changed), (vec![], 64));
    // An index that is loaded may lead anywhere in its array, whichever that is.
    let loaded = SUMS.replace(
        "ld.global.u32 %r4, [%rd5];",
        "ld.global.u32 %r4, [%rd5];\nmul.wide.s32 %rd4, %r4, 4;\nadd.s64 %rd5, %rd3, %rd4;\nld.global.u32 %r4, [%rd5];",
    );
    for (out, is_apart) in [(TABLE, false), (end, false), (OUT, true)] {
        let (_, facts, _) = facts_for(&loaded, out, next(256));
        assert_eq!(facts.parameters["table"].unaliased, is_apart, "{out:#x}");
    }
    let foreign = Allocation {
        is_foreign: true,
        ..next(256)
    };
    let (_, facts, _) = facts_for(&loaded, OUT, foreign);
    assert!(!facts.parameters["out"].unaliased, "the table may be others'");
}

#[test]
fn a_launch_that_is_run_again_leaves_what_it_left() {
    let device = Simulator::untimed();
    let ran = replay(apart(), &device).expect("it runs");
    assert_eq!((ran.bytes, ran.changed), (288, 64));
    assert_eq!(ran.differences, []);
    let mut other = apart();
    other.memory[1].after = words(&[821; 32]).into();
    let ran = replay(other, &device).expect("it runs");
    assert_eq!(ran.differences.len(), 1);
    assert_eq!((ran.differences[0].address, ran.differences[0].bytes), (OUT, 32));
}

#[test]
fn a_kernel_that_follows_what_it_loads_runs_where_it_was_and_is_known_by_nothing() {
    let node = |next: u64, value: u64| [next.to_le_bytes(), value.to_le_bytes()].concat();
    let memory = vec![
        allocation(TABLE, node(TABLE + 0x200, 5), None),
        allocation(TABLE + 0x200, node(0, 70), None),
        allocation(OUT, vec![0; 4], Some(words(&[75]))),
    ];
    let list = Captured {
        group: [1; 3],
        ..captured("sum", LIST, &[TABLE, OUT], memory)
    };
    let subject = captured_subject(list.clone()).expect("a subject");
    assert!(subject.launch().facts().parameters.is_empty());
    assert!(subject.workload().expect("a workload").placed.is_some());
    assert_eq!(
        replay(list.clone(), &Simulator::untimed())
            .expect("it runs")
            .differences,
        []
    );
    let clusters = Captured {
        attributes: vec![CLUSTER],
        ..list.clone()
    };
    assert!(
        captured_subject(clusters)
            .expect_err("clusters")
            .to_string()
            .contains("clusters")
    );
    let code = Captured { module: None, ..list };
    assert!(
        captured_subject(code)
            .expect_err("no PTX")
            .to_string()
            .contains("only machine code")
    );
}

/// `for (i = 0; i < n; i++) out[tid] = s += taps.of[i] * table[i];`, with `taps` passed by value and indexed.
const TAPS: &str = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .align 4 .b8 taps[160], \
    .param .u64 table, .param .u64 out, .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<16>;\n\
    mov.b64 %rd1, taps;\nld.param.u64 %rd2, [out];\nld.param.u32 %r1, [n];\nld.param.u64 %rd3, [table];\n\
    mov.u32 %r6, %tid.x;\nmul.wide.u32 %rd8, %r6, 4;\nadd.s64 %rd9, %rd2, %rd8;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\n\
    setp.ge.s32 %p1, %r2, %r1;\n@%p1 bra D;\nmul.wide.s32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd3, %rd4;\nadd.s64 %rd6, %rd1, %rd4;\n\
    ld.global.u32 %r4, [%rd5];\nld.param.u32 %r5, [%rd6];\nmad.lo.s32 %r3, %r4, %r5, %r3;\nst.global.u32 [%rd9], %r3;\nadd.s32 %r2, %r2, 1;\nbra L;\nD:\n\
    ret;\n}\n";

/// What launches have to meet, without what these facts are computed by.
fn demands(exchange: &Exchange) -> Vec<&str> {
    let facts = exchange.facts.iter().map(String::as_str);
    facts
        .filter(|fact| !fact.starts_with("reach ") && !fact.starts_with("terms "))
        .collect()
}

#[test]
fn a_structure_whose_address_is_taken_is_memory_of_the_launch() {
    let table: Vec<u32> = (1..=40).collect();
    let sum: u32 = table.iter().map(|value| value * (value + 5)).sum();
    let taps: Vec<u32> = table.iter().map(|value| value + 5).collect();
    let memory = vec![
        allocation(TABLE, words(&table), None),
        allocation(OUT, vec![0; 128], Some(words(&[sum; 32]))),
    ];
    let mut passed = words(&taps);
    passed.extend([TABLE, OUT, 40].iter().flat_map(|word: &u64| word.to_le_bytes()));
    let own = Captured {
        parameters: passed,
        layout: vec![(0, 160), (160, 8), (168, 8), (176, 4)],
        ..captured("k", TAPS, &[], memory)
    };
    let ran = replay(own.clone(), &Simulator::untimed()).expect("it runs");
    assert_eq!((ran.differences, ran.changed), (vec![], 64));
    // The better kernel rests on nothing about the structure: no pointer leads there.
    let subject = captured_subject(own.clone()).expect("a subject");
    let plan = "table=rolling-registers:3".parse().expect("a plan");
    let planned = planned_module(TAPS, "k.ptx", Some("k"), subject.launch(), &plan, None);
    let planned = planned.unwrap_or_else(|error| panic!("{error}"));
    let exchange = exchange(&own, &subject, &planned).expect("all of it can be looked at");
    assert_eq!(demands(&exchange), ["group 32 1 1", "apart 1 0 2 0"]);
    let short = Captured {
        parameters: vec![0; 100],
        ..own
    };
    let refused = captured_subject(short).expect_err("bytes are missing");
    assert!(refused.to_string().contains("have 100 bytes"), "{refused}");
}

#[test]
fn what_a_better_kernel_rests_on_is_looked_at() {
    let captured = apart();
    let subject = captured_subject(captured.clone()).expect("a subject");
    let plan = "table=rolling-registers:3".parse().expect("a plan");
    let planned = planned_module(SUMS, "k.ptx", Some("k"), subject.launch(), &plan, None);
    let planned = planned.unwrap_or_else(|error| panic!("{error}"));
    let exchange = exchange(&captured, &subject, &planned).expect("all of it can be looked at");
    assert_eq!(
        demands(&exchange),
        ["group 32 1 1", "apart 0 0 1 0", "ends 0 0 40 4"]
    );
    assert_eq!(exchange.sentences.len(), 3);
    // Where its work-groups may wait for each other, as many as of the original have to be resident.
    let waiting = |for_each_other| {
        let waits = "its work-groups wait at k.ptx:7".to_owned();
        let mut waiting = planned.clone();
        waiting.granted.push(Granted::Residency {
            waits,
            for_each_other,
        });
        super::exchange(&captured, &subject, &waiting)
    };
    let resident = waiting(true).expect("all of it can be looked at");
    assert_eq!(
        demands(&resident),
        ["group 32 1 1", "apart 0 0 1 0", "ends 0 0 40 4", "resident"]
    );
    assert_eq!(resident.sentences.len(), 4);
    // Where others are waited for, the driver's occupancy does not say that they have room.
    let refused = waiting(false).expect_err("it cannot be looked at").to_string();
    assert!(
        refused.contains("no more registers and shared memory than it did as it was"),
        "{refused}"
    );
    // What is reached goes by the third parameter.
    let reached = exchange.facts.iter().filter(|fact| fact.starts_with("reach "));
    assert_eq!(reached.count(), 2);
    let mut terms = exchange.facts.iter().filter(|fact| fact.starts_with("terms "));
    assert!(
        terms.next().is_some_and(|fact| fact.contains(" p:2:0:4")),
        "{:?}",
        exchange.facts
    );
}
