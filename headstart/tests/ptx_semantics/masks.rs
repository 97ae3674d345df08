//! Parts of a warp that work together: `masks.cu`, as nvcc compiled it, against the same in Rust; plain, under plans, and as
//! the entry written back into the module. With a GPU, its results are compared, too.

use std::sync::Arc;

use headstart::checker::check;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::sim::functional::{Groups, Options};
use headstart::front::ptx::import;
use headstart::ir::{Kernel, OpKind};
use headstart::prefetch::{self, Plan, PlanTarget};
use headstart::tune::{self, FileSubject, LaunchFile, Subject, Workload};
use headstart_testing::{self as testing, ptxas::Ptxas, run};

const MODULE: &str = include_str!("masks.ptx");

/// A parameter: a buffer of the numbers 0, 1, 2, …; the output, zeros; a number.
enum Given {
    Counting(u32),
    Output(u32),
    Number(u32),
}

use Given::{Counting, Number, Output};

struct Entry {
    name: &'static str,
    given: Vec<Given>,
    /// What a lane's output is.
    expected: Box<dyn Fn(u32) -> u32>,
}

impl Entry {
    fn new(name: &'static str, given: Vec<Given>, expected: impl Fn(u32) -> u32 + 'static) -> Entry {
        Entry {
            name,
            given,
            expected: Box::new(expected),
        }
    }

    fn launch(&self) -> LaunchFile {
        let mut text = "groups = 1\ngroup = 32\n".to_owned();
        for (number, given) in self.given.iter().enumerate() {
            text += &format!("[parameters.param_{number}]\n");
            text += &match given {
                Counting(length) => format!("length = {length}\nfill = \"sequence\"\n"),
                Output(length) => format!("length = {length}\nfill = \"zero\"\noutput = \"bits\"\n"),
                Number(number) => format!("value = {number}\n"),
            };
        }
        LaunchFile::parse(&text, "launch.toml").expect("a launch file")
    }

    fn workload(&self, module: &str) -> Workload {
        let launch = self.launch();
        let imported = import(module, "masks.ptx", Some(self.name), &launch.facts());
        let imported = imported.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        FileSubject::of_module(imported, launch)
            .workload()
            .expect("a workload")
    }

    fn check(&self, workload: &Workload, kernel: &Arc<Kernel>, what: &str) {
        let outputs = run(workload, kernel, Options::CHECKING);
        let outputs = outputs.unwrap_or_else(|error| panic!("{} {what}: {error}", self.name));
        let number = self.given.iter().position(|given| matches!(given, Output(_)));
        let name = format!("param_{}", number.expect("an output"));
        let output = outputs.iter().find(|(other, _)| *other == name);
        let (_, bytes) = output.expect("the output is there");
        let words = super::words_of(bytes);
        let expected: Vec<u32> = (0..words.len() as u32).map(&self.expected).collect();
        assert_eq!(words, expected, "{} {what}", self.name);
    }
}

/// A GPU leaves what the functional engine leaves.
fn agrees(gpu: Option<&CudaDevice>, workload: &Workload, kernel: &Arc<Kernel>, what: &str) {
    let Some(gpu) = gpu else { return };
    let right = run(workload, kernel, Options::FAST).expect("it ran before");
    let bound = workload
        .bind(gpu)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    for _ in 0..20 {
        let found = bound.run(gpu, kernel);
        let (_, found) = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        for ((name, right), found) in right.iter().zip(&found) {
            assert!(right == found, "{what}: `{name}` differs on the GPU");
        }
    }
}

/// `sum`, from 0, once for each row.
fn summed(rows: u32, step: impl Fn(u32, u32) -> u32) -> u32 {
    (0..rows).fold(0, step)
}

fn entries() -> Vec<Entry> {
    let three = |sum: u32| sum.wrapping_mul(3);
    let odd_ones_behind = |row: u32| (row + 1..32).filter(|lane| lane % 2 == 1).count() as u32;
    let uneven = move |lane| summed(lane, |sum, row| three(sum) + odd_ones_behind(row));
    let segments = move |lane: u32| {
        summed(6, |sum, row| {
            let (own, inside, first) = (row * 32 + lane, lane % 8, lane - lane % 8);
            let sum = three(sum).wrapping_add(own + u32::from(inside < 7));
            let sum = sum ^ if inside >= 2 { own - 2 } else { own };
            let sum = sum.wrapping_add(row * 32 + (lane ^ 3));
            sum.wrapping_sub(row * 32 + first + row % 8)
        })
    };
    vec![
        Entry::new(
            "ballot_reduce",
            vec![Counting(140), Output(32), Number(7), Number(20)],
            move |lane| match lane {
                0 => summed(7, |sum, row| {
                    three(sum) + (0..20).map(|lane| row * 20 + lane).sum::<u32>()
                }),
                1..20 => u32::MAX,
                _ => u32::MAX - 1,
            },
        ),
        Entry::new("aggregate", vec![Counting(700), Output(1), Number(700)], |_| {
            (0..700).filter(|value| value % 3 != 0).count() as u32
        }),
        Entry::new("uneven", vec![Counting(32), Counting(1024), Output(32)], uneven),
        Entry::new("ending", vec![Counting(32), Counting(1024), Output(32)], uneven),
        Entry::new(
            "exit_then_shuffle",
            vec![Counting(288), Output(32), Number(20), Number(9)],
            |lane| match lane {
                0..20 => (0..9).map(|row| row * 33).sum(),
                _ => 0,
            },
        ),
        Entry::new(
            "halves",
            vec![Counting(288), Output(32), Number(9)],
            move |lane| {
                summed(9, |sum, row| {
                    let first = row * 32 + lane / 16 * 16;
                    three(sum) + first + 3 + u32::from((first..first + 16).contains(&77))
                })
            },
        ),
        Entry::new(
            "matches",
            vec![Counting(160), Output(32), Number(5)],
            move |lane| summed(5, |sum, _| three(sum) + 8 + 65 * (lane % 2)),
        ),
        Entry::new(
            "data_divergence",
            vec![Counting(352), Output(32), Number(11)],
            |lane| {
                summed(11, |sum, row| {
                    let takes_part = |value: &u32| value % 5 < 3;
                    let own = row * 32 + lane;
                    match takes_part(&own) {
                        true => {
                            sum.wrapping_add((row * 32..).find(takes_part).expect("there are such numbers"))
                        }
                        false => sum.wrapping_sub(own),
                    }
                })
            },
        ),
        Entry::new("sides", vec![Counting(192), Output(32), Number(6)], move |lane| {
            summed(6, |sum, row| {
                let first = |value: u32| value.is_multiple_of(3);
                let other = row * 32 + (lane ^ 9);
                let given = if first(other) { other * 7 } else { other + 1 };
                match first(row * 32 + lane) {
                    true => sum.wrapping_mul(5).wrapping_add(given),
                    false => three(sum).wrapping_sub(given),
                }
            })
        }),
        Entry::new("meeting", vec![Counting(160), Output(32), Number(5)], |lane| {
            summed(5, |sum, row| match lane {
                0..16 => sum + 2 * (row * 32 + lane + 16),
                _ => sum ^ (row * 32 + lane - 16),
            })
        }),
        Entry::new(
            "segments",
            vec![Counting(192), Output(32), Number(6), Number(8)],
            segments,
        ),
    ]
}

/// The plans that are tried: for the loads that matter, and for the loops.
fn plans(workload: &Workload) -> Vec<Plan> {
    let loads = tune::search::main_loads(&workload.kernel);
    let each = |strategy: &str| -> String {
        let each: Vec<String> = loads.iter().map(|load| format!("{load}={strategy}")).collect();
        each.join(",")
    };
    let mut texts = vec!["unroll:2".to_owned(), "unroll:3".to_owned()];
    for strategy in [
        "rolling-registers:3",
        "batched-registers:4",
        "rolling-async:2",
        "cache:L2:2",
    ] {
        texts.push(each(strategy));
    }
    texts.push(format!("unroll:2,{}", each("rolling-registers:4")));
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[test]
fn parts_of_a_warp_compute_the_same_under_every_plan() {
    let ptxas = Ptxas::find();
    let gpu = CudaDevice::open(0).ok();
    for entry in entries() {
        let workload = entry.workload(MODULE);
        entry.check(&workload, &workload.kernel, "plain");
        agrees(gpu.as_ref(), &workload, &workload.kernel, entry.name);
        let target = PlanTarget::of(workload.group);
        let mut legal = vec![Plan::none()];
        for plan in plans(&workload) {
            let Ok(applied) = prefetch::apply(&workload.kernel, &plan, &target) else {
                continue;
            };
            let applied = Arc::new(applied.kernel);
            entry.check(&workload, &applied, &plan.to_string());
            let (launch, _) = testing::bind(&workload).expect("small buffers");
            check(&workload.kernel, &applied, &launch, 32, &Groups::All)
                .unwrap_or_else(|error| panic!("{} {plan}: {error}", entry.name));
            agrees(
                gpu.as_ref(),
                &workload,
                &applied,
                &format!("{} {plan}", entry.name),
            );
            legal.push(plan);
        }
        let ran = if gpu.is_some() { ", on the GPU, too" } else { "" };
        println!("{}: {} plans{ran}", entry.name, legal.len());
        assert!(legal.len() >= 3, "{}: {} plans", entry.name, legal.len());
        // Some of them: a module is written several times to find its assumptions.
        for plan in legal.into_iter().step_by(3) {
            let launch = entry.launch();
            let module = tune::planned_module(MODULE, "masks.ptx", Some(entry.name), &launch, &plan, None);
            let module = module.unwrap_or_else(|error| panic!("{} {plan}: {error}", entry.name));
            let again = entry.workload(&module.text);
            entry.check(&again, &again.kernel, &format!("written under {plan}"));
            if let Some(ptxas) = &ptxas {
                ptxas
                    .assemble_module(&module.text)
                    .unwrap_or_else(|said| panic!("{} {plan}: {said}\n{}", entry.name, module.text));
            }
        }
    }
}

/// A mask that the run computes is a register in PTX, before and after; a constant is the same constant.
#[test]
fn masks_are_kept() {
    for (entry, masks) in [
        ("ballot_reduce", "value -1"),
        ("uneven", "value -1"),
        ("halves", "value"),
        ("ending", "-1"),
        ("meeting", "-1"),
    ] {
        let entry = entries()
            .into_iter()
            .find(|other| other.name == entry)
            .expect("an entry");
        let workload = entry.workload(MODULE);
        let mut found: Vec<String> = Vec::new();
        workload.kernel.body.walk(&mut |op| {
            if let Some(mask) = op.kind.mask() {
                found.push(match workload.kernel.as_constant(mask) {
                    None => "value".to_owned(),
                    Some(bits) => (bits as u32 as i32).to_string(),
                });
            }
            let everybody = matches!(
                op.kind,
                OpKind::Shuffle { mask: None, .. } | OpKind::Vote(_, _, None)
            );
            assert!(!everybody, "{}: an operation without a mask", entry.name);
        });
        found.sort();
        found.dedup();
        found.reverse();
        assert_eq!(found.join(" "), masks, "{}", entry.name);
        let launch = entry.launch();
        let plan = "unroll:2".parse().expect("a plan");
        let module = tune::planned_module(MODULE, "masks.ptx", Some(entry.name), &launch, &plan, None);
        let text = module.expect("a module").text;
        // Copies are of the module's own instructions.
        let (_, body) = text.split_once("// Headstart begins").expect("a planned loop");
        let (body, _) = body.split_once("// Headstart ends").expect("its end");
        let meets = |line: &&str| {
            ["shfl.sync", "vote.sync", "bar.warp"]
                .iter()
                .any(|word| line.contains(word))
        };
        for line in body.lines().filter(meets) {
            assert!(
                MODULE.contains(&format!("{line}\n")),
                "{}: {line}\n{body}",
                entry.name
            );
        }
    }
}

/// What PTX leaves undefined is an error of the kernel.
#[test]
fn what_a_party_may_not_do_is_refused() {
    let said = |body: &str| -> String {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n\
             .reg .b32 %r<9>; .reg .pred %p<4>; .reg .b64 %a<3>;\nmov.u32 %r0, %laneid;\nmov.u32 %r1, 0;\nsetp.lt.u32 %p0, %r0, 9;\n{body}\n\
             ld.param.u64 %a0, [k_param_0];\ncvta.to.global.u64 %a0, %a0;\nmul.wide.u32 %a1, %r0, 4;\n\
             add.s64 %a0, %a0, %a1;\nst.global.u32 [%a0], %r1;\nret;\n}}\n"
        );
        let launch = "groups = 1\ngroup = 32\n[parameters.param_0]\nlength = 32\nfill = \"zero\"\n";
        let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
        let imported = import(&text, "k.ptx", Some("k"), &launch.facts());
        let imported = imported.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let workload = FileSubject::of_module(imported, launch)
            .workload()
            .expect("a workload");
        match run(&workload, &workload.kernel, Options::CHECKING) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    // Lanes 9 and up have their own way to the store: who runs a vote of all waits for them, and they have ended then.
    assert_eq!(said("@%p0 vote.sync.ballot.b32 %r1, %p0, -1;"), "");
    assert_eq!(said("@%p0 shfl.sync.idx.b32 %r1, %r0, 3, 31, 0x1ff;"), "");
    for (body, expected) in [
        (
            "@%p0 shfl.sync.idx.b32 %r1, %r0, 20, 31, -1;",
            "shuffles from lane 20, which has ended or is not in its mask",
        ),
        (
            "@%p0 shfl.sync.idx.b32 %r1, %r0, 20, 31, 0x1ff;",
            "shuffles from lane 20",
        ),
        (
            "shfl.sync.idx.b32 %r1, %r0, 3, 31, 0x1ff;",
            "work-item 9 of work-group 0 (global 9) runs a shuffle with the mask 0x000001ff, which does not name it",
        ),
        (
            "@%p0 bra low; vote.sync.ballot.b32 %r1, %p0, -1; bra both; low: vote.sync.ballot.b32 %r1, %p0, 0xfff; both:",
            "which names work-item 9, and that one waits at k.ptx",
        ),
        (
            "@%p0 bra low; vote.sync.ballot.b32 %r1, %p0, -1; bra both; low: shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; both:",
            "with the mask 0xffffffff, which names work-item 9",
        ),
        (
            "@%p0 bra low; vote.sync.ballot.b32 %r1, %p0, -1; bra both; low: bar.sync 0; both:",
            "runs a vote with the mask 0xffffffff, which names work-item 0, and that one waits at k.ptx",
        ),
        (
            "@!%p0 bra both; bar.sync 0; both:",
            "reaches a barrier that work-item 9 does not reach with it",
        ),
    ] {
        let said = said(body);
        assert!(said.contains(expected), "{body}\n{said}");
    }
    // The two sides vote together.
    let both = "@%p0 bra low; vote.sync.ballot.b32 %r1, %p0, -1; bra both; low: vote.sync.ballot.b32 %r1, %p0, -1; both:";
    assert_eq!(said(both), "");
    // Lanes that have returned are not waited for, at a barrier either.
    assert_eq!(said("@%p0 ret; bar.sync 0;"), "");
}
