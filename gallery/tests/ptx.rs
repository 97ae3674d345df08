//! Every default plan of the documents' kernels becomes PTX that NVIDIA's assembler takes, and none spills; their
//! registers are in `ptx.txt`, and `HEADSTART_BLESS=1` rewrites it. Some plans of every workload are assembled, too.
//!
//! All plans of the documents take the assembler minutes: a run takes one in [`PARTS`], others each time
//! (`HEADSTART_SEED` repeats one); `HEADSTART_PART=all` takes them all.

use std::collections::HashSet;
use std::path::Path;

use headstart::back::machine;
use headstart::back::ptx::{Options, PtxTarget, emit};
use headstart::device::model;
use headstart::ir::CacheLevel;
use headstart::prefetch::{self, Plan};
use headstart::tune::Subject;
use headstart::tune::search::main_loads;
use headstart::tune::space::default_plans;
use headstart_gallery::kernels::{GalleryKernel, KERNELS};
use headstart_testing as testing;
use headstart_testing::ptxas::{Assembled, Ptxas};
use rayon::prelude::*;

/// The documents' kernels, whose registers are kept.
const DOCUMENTS: [&str; 5] = ["gather", "gather-hint-l3", "gather-hint-l1", "article", "latency"];
/// Of the documents' plans a run takes one of this many.
const PARTS: usize = 4;

/// Which of a kernel's plans are assembled: the one of this number, and from there one of this many.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    apart: usize,
}

/// Of the workloads' plans.
const WORKLOADS: Part = Part { first: 0, apart: 97 };

/// What came of a kernel's plan.
struct Tried {
    /// Kernel, plan and target.
    name: String,
    /// What the assembler made of it.
    made: Result<Assembled, String>,
    /// The registers of a work-item that our own lowering needs.
    estimate: u32,
}

/// What the assembler made of some of a kernel's plans and of the plain kernel, by kernel, plan and target.
fn assemble(ptxas: &Ptxas, kernel: &'static GalleryKernel, part: Part) -> Vec<Tried> {
    let workload = kernel
        .with(&[], None)
        .and_then(|chosen| chosen.workload())
        .expect("the defaults are right");
    let target = prefetch::PlanTarget::of(workload.group);
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes can be carried out");
    let plans = default_plans(&main_loads(&plain), &[CacheLevel::L1, CacheLevel::L2]).expect("plans");
    // Some techniques have no load that could be fetched ahead: they are assembled as they are.
    let plans = std::iter::once(Plan::none()).chain(plans.into_iter().skip(part.first).step_by(part.apart));
    let derived: Vec<_> = plans
        .filter_map(|plan| {
            Some((
                plan.to_string(),
                prefetch::apply(&plain, &plan, &target).ok()?.kernel,
            ))
        })
        .collect();
    assert!(!derived.is_empty(), "{} takes a plan", kernel.name);
    let model = model::built_in("h200", &[]).expect("the model is there");
    let machine_target = machine::Target::of(&model, 32);
    derived
        .par_iter()
        .flat_map_iter(|(plan, derived)| {
            [PtxTarget::Sm80, PtxTarget::Sm90].into_iter().map(move |target| {
                let options = Options {
                    groups_per_core: Some(1),
                    lines: false,
                    ..Options::new(target)
                };
                let made = emit(derived, &options).map_err(|error| error.to_string());
                let made = made.and_then(|ptx| ptxas.assemble(&ptx, target));
                Tried {
                    name: format!("{} {plan} {}", kernel.name, target.name()),
                    made,
                    estimate: machine::lower(derived, &machine_target)
                        .register_estimate
                        .registers,
                }
            })
        })
        .collect()
}

#[test]
fn no_default_plan_spills() {
    let Some(ptxas) = &Ptxas::find() else { return };
    let is_blessing = std::env::var_os("HEADSTART_BLESS").is_some();
    let all = is_blessing || std::env::var("HEADSTART_PART").is_ok_and(|part| part == "all");
    let part = match all {
        true => Part { first: 0, apart: 1 },
        false => Part {
            first: testing::base_seed() as usize % PARTS,
            apart: PARTS,
        },
    };
    let mut lines = Vec::new();
    let mut complaints = Vec::new();
    let mut errors = Vec::new();
    for kernel in KERNELS.iter().filter(|kernel| DOCUMENTS.contains(&kernel.name)) {
        for Tried { name, made, estimate } in assemble(ptxas, kernel, part) {
            if let (Ok(made), true) = (&made, name.ends_with(PtxTarget::Sm90.name())) {
                errors.push((f64::from(estimate) / f64::from(made.registers) - 1.0).abs());
            }
            match made {
                Ok(Assembled {
                    spilled_bytes: 0,
                    registers,
                    ..
                }) => {
                    lines.push(format!("{name}: {registers} registers\n"));
                }
                Ok(made) => complaints.push(format!("{name} spills: {made:?}")),
                Err(said) => complaints.push(format!("{name}: {said}")),
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx.txt");
    if is_blessing {
        std::fs::write(&golden, lines.concat()).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    let expected: HashSet<&str> = expected.split_inclusive('\n').collect();
    let others: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|line| !expected.contains(line))
        .collect();
    assert!(
        others.is_empty() && (!all || expected.len() == lines.len()),
        "{} differs; HEADSTART_BLESS=1 rewrites it:\n{}",
        golden.display(),
        others.concat()
    );
    errors.sort_by(f64::total_cmp);
    let (median, most) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    println!("estimates of registers are off by {median:.3} in the median, by {most:.3} at most");
    assert!(median <= 0.2, "{median}");
}

#[test]
fn plans_of_the_workloads_are_assembled() {
    let Some(ptxas) = &Ptxas::find() else { return };
    for kernel in KERNELS.iter().filter(|kernel| !DOCUMENTS.contains(&kernel.name)) {
        for Tried { name, made, .. } in assemble(ptxas, kernel, WORKLOADS) {
            made.unwrap_or_else(|said| panic!("{name}: {said}"));
        }
    }
}

/// Rings that no register file has room for.
const SPILLING: [(&str, &str); 4] = [
    ("triad", "unroll:16,b=rolling-registers:16,c=rolling-registers:16"),
    ("triad", "b=rolling-registers:32,c=rolling-registers:32"),
    ("triad", "b=batched-registers:32,c=batched-registers:32"),
    ("article", "arr=batched-registers:64"),
];

/// What does not fit is stored about as often as the assembler stores it.
#[test]
fn spills_are_near_those_of_the_assembler() {
    let Some(ptxas) = &Ptxas::find() else { return };
    let model = model::built_in("h200", &[]).expect("the model is there");
    let mut complaints = Vec::new();
    for (name, plan) in SPILLING {
        let kernel = KERNELS
            .iter()
            .find(|kernel| kernel.name == name)
            .expect("a kernel");
        let workload = kernel
            .with(&[], None)
            .and_then(|chosen| chosen.workload())
            .expect("the defaults are right");
        let target = prefetch::PlanTarget::of(workload.group);
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes can be carried out");
        let plan: Plan = plan.parse().expect("a plan");
        let derived = prefetch::apply(&plain, &plan, &target)
            .unwrap_or_else(|error| panic!("{name} {plan}: {error}"))
            .kernel;
        let options = Options {
            groups_per_core: Some(1),
            lines: false,
            ..Options::new(PtxTarget::Sm90)
        };
        let made = emit(&derived, &options).map_err(|error| error.to_string());
        let made = made.and_then(|ptx| ptxas.assemble(&ptx, PtxTarget::Sm90));
        let made = made.unwrap_or_else(|said| panic!("{name} {plan}: {said}"));
        let theirs = made.spilled_bytes;
        let program = machine::lower(&derived, &machine::Target::of(&model, 32));
        let ours = testing::spilled(&program);
        println!(
            "{name} {plan}: {ours} bytes stored, {theirs} by ptxas; {} beyond the registers; frames of {} and {} bytes",
            program.register_estimate.spilled_bytes, program.frame_bytes, made.frame_bytes
        );
        // The frame decides which caches hold it.
        if !(made.frame_bytes / 2..=2 * made.frame_bytes).contains(&program.frame_bytes) {
            complaints.push(format!(
                "{name} {plan}: frames of {} and {} bytes",
                program.frame_bytes, made.frame_bytes
            ));
        }
        if theirs > 0 && !(theirs / 2..=2 * theirs).contains(&ours) || theirs == 0 && ours > 64 {
            complaints.push(format!("{name} {plan}: {ours} and {theirs}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
