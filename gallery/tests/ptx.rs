//! Every default plan of the documents' kernels becomes PTX that NVIDIA's assembler takes, and none spills; their
//! registers are in `ptx.txt`, and `HEADSTART_BLESS=1` rewrites it. Some plans of every workload are assembled, too.

use std::path::Path;

use headstart::back::ptx::{Options, Target, emit};
use headstart::ir::CacheLevel;
use headstart::prefetch::{self, Plan};
use headstart::testing::ptxas::{Assembled, Ptxas};
use headstart::tune::Subject;
use headstart::tune::search::main_loads;
use headstart::tune::space::default_plans;
use headstart_gallery::kernels::{GalleryKernel, KERNELS};
use rayon::prelude::*;

/// The documents' kernels, whose registers are kept.
const DOCUMENTS: [&str; 5] = ["gather", "gather-hint-l3", "gather-hint-l1", "article", "latency"];
/// Of the workloads' plans one of so many is assembled.
const APART: usize = 97;

/// What the assembler made of a kernel's plans, by kernel, plan and target.
fn assemble(
    ptxas: &Ptxas,
    kernel: &'static GalleryKernel,
    apart: usize,
) -> Vec<(String, Result<Assembled, String>)> {
    let workload = kernel
        .with(&[], None)
        .and_then(|chosen| chosen.workload())
        .expect("the defaults are right");
    let target = prefetch::Target {
        group_size: Some(workload.group),
        ..prefetch::Target::default()
    };
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes can be carried out");
    let plans = default_plans(&main_loads(&plain), &[CacheLevel::L1, CacheLevel::L2]).expect("plans");
    // Some techniques have no load that could be fetched ahead: they are assembled as they are.
    let plans = std::iter::once(Plan::none()).chain(plans.into_iter().step_by(apart));
    let derived: Vec<_> = plans
        .filter_map(|plan| {
            Some((
                plan.to_string(),
                prefetch::apply(&plain, &plan, &target).ok()?.kernel,
            ))
        })
        .collect();
    assert!(!derived.is_empty(), "{} takes a plan", kernel.name);
    derived
        .par_iter()
        .flat_map_iter(|(plan, derived)| {
            [Target::Sm80, Target::Sm90].into_iter().map(move |target| {
                let options = Options {
                    groups_per_core: Some(1),
                    lines: false,
                    ..Options::new(target)
                };
                let made = emit(derived, &options).map_err(|error| error.to_string());
                let made = made.and_then(|ptx| ptxas.assemble(&ptx, target));
                (format!("{} {plan} {}", kernel.name, target.name()), made)
            })
        })
        .collect()
}

#[test]
fn no_default_plan_spills() {
    let Some(ptxas) = &Ptxas::find() else { return };
    let mut lines = Vec::new();
    let mut complaints = Vec::new();
    for kernel in KERNELS.iter().filter(|kernel| DOCUMENTS.contains(&kernel.name)) {
        for (name, made) in assemble(ptxas, kernel, 1) {
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
    let found: String = lines.concat();
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        std::fs::write(&golden, &found).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        expected == found,
        "{} differs; HEADSTART_BLESS=1 rewrites it",
        golden.display()
    );
}

#[test]
fn plans_of_the_workloads_are_assembled() {
    let Some(ptxas) = &Ptxas::find() else { return };
    for kernel in KERNELS.iter().filter(|kernel| !DOCUMENTS.contains(&kernel.name)) {
        for (name, made) in assemble(ptxas, kernel, APART) {
            made.unwrap_or_else(|said| panic!("{name}: {said}"));
        }
    }
}
