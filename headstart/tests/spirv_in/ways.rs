//! The search's settings beside the plan: the sub-group size goes into the module, the others are reported.

use std::fs;

use headstart::back::spirv::{Spirv, SpirvTarget};
use headstart::device::opencl::device::OpenClDevice;
use headstart::front::spirv::Module;
use headstart::report::{LaunchSettings, Report, SettingsTrial, Ways};
use headstart::tune::{self, FileSubject, SimulatedBench, Subject};
use headstart_testing::ocloc::Ocloc;
use headstart_testing::spirv_val::SpirvVal;
use headstart_testing::tools;
use rspirv::dr::Operand;
use rspirv::spirv::{Capability, ExecutionMode};

use crate::corpus::{folder, launch, run, simulator};

const PLAN: &str = "values=cache:L1:4";

fn subject() -> FileSubject {
    let bytes = fs::read(folder().join("memory.spv")).expect("readable");
    let launch = launch("gather");
    let module = Module::new(&bytes, "memory.spv").expect("a module");
    let imported = module.import(Some("gather"), &launch.facts()).expect("an entry");
    FileSubject::of_spirv(imported, launch)
}

/// The report of a search that has one plan, and of ways of which this one is best.
fn report(subject: &FileSubject, plan: &str, way: LaunchSettings) -> Report {
    let model = headstart::device::model::built_in("pvc-1550", &[]).expect("a model");
    let bench = SimulatedBench::new(model);
    let plans = [PLAN.parse().expect("a plan")];
    let report = tune::tune(subject, &bench, Some(&plans), &()).expect("it is searched");
    let best = SettingsTrial {
        way,
        plan: plan.parse().expect("a plan"),
        time_ns: report.baseline_ns / 2.0,
        speedup: 2.0,
    };
    let ways = Ways {
        trials: vec![best.clone()],
        best: Some(best),
        left_out: Vec::new(),
    };
    report.with_ways(ways, None)
}

/// The sizes that a module requires for the entry, with the capability for it.
fn required(words: &[u32]) -> Vec<u32> {
    let module = rspirv::dr::load_words(words).expect("a module");
    let capability = Operand::Capability(Capability::SubgroupDispatch);
    let has = module
        .capabilities
        .iter()
        .any(|one| one.operands[0] == capability);
    let mode = Operand::ExecutionMode(ExecutionMode::SubgroupSize);
    let modes = module
        .execution_modes
        .iter()
        .filter(|one| one.operands[1] == mode);
    let sizes: Vec<u32> = modes
        .filter_map(|one| match one.operands[2] {
            Operand::LiteralBit32(size) => Some(size),
            _ => None,
        })
        .collect();
    assert_eq!(has, !sizes.is_empty());
    sizes
}

#[test]
fn the_module_requires_the_sub_group_size_that_was_chosen() {
    let subject = subject();
    let narrow = LaunchSettings {
        sub_group: Some(16),
        ..LaunchSettings::default()
    };
    let original = subject.spirv().expect("a module").clone();
    assert!(required(&original.words).is_empty());
    for plan in ["none", PLAN] {
        let best = tune::best_spirv(&subject, &report(&subject, plan, narrow), SpirvTarget::IntelLsc);
        let best = best.unwrap_or_else(|error| panic!("{plan}: {error}"));
        // With the plan of the loads that its addresses come from.
        assert!(best.plan.to_string().starts_with(plan), "{}", best.plan);
        assert_eq!(required(&best.words), [16], "{plan}");
        assert!(best.asked.is_empty(), "{:?}", best.asked);
        if let Some(Err(said)) = SpirvVal::find().map(|validator| validator.check_words(&best.words)) {
            panic!("{plan}: {said}");
        }
        let module = Module::new(&best.bytes(), "better.spv").expect("a module");
        let again = module
            .import(Some("gather"), &subject.launch().facts())
            .expect("an entry");
        assert_eq!(again.kernel.sub_group_size, Some(16), "{plan}");
        if plan == "none" {
            // The mode, three words and a header; the capability, two.
            assert_eq!(best.words.len(), original.words.len() + 4 + 2);
        }
    }
}

#[test]
fn what_a_module_cannot_say_is_told() {
    let subject = subject();
    let way = LaunchSettings {
        sub_group: None,
        large_registers: true,
        group: Some(256),
    };
    for plan in ["none", PLAN] {
        let best = tune::best_spirv(&subject, &report(&subject, plan, way), SpirvTarget::IntelLsc);
        let best = best.unwrap_or_else(|error| panic!("{plan}: {error}"));
        let [registers, group] = &best.asked[..] else {
            panic!("{:?}", best.asked);
        };
        assert!(registers.contains("-cl-intel-256-GRF-per-thread"), "{registers}");
        assert!(group.contains("work-groups of 256"), "{group}");
        assert!(required(&best.words).is_empty());
    }
}

/// Intel's compiler takes the size from the module.
#[test]
fn the_compiler_makes_code_for_that_size() {
    let Some(ocloc) = Ocloc::newest() else { return };
    let subject = subject();
    for size in [16, 32] {
        let way = LaunchSettings {
            sub_group: Some(size),
            ..LaunchSettings::default()
        };
        for plan in ["none", PLAN] {
            let best = tune::best_spirv(&subject, &report(&subject, plan, way), SpirvTarget::IntelLsc);
            let spirv = Spirv {
                words: best.expect("it is written").words,
                text: String::new(),
                entry: "gather".to_owned(),
                build_options: "",
                hints: Vec::new(),
            };
            let assembly = ocloc
                .compile(&spirv, "pvc")
                .unwrap_or_else(|said| panic!("{said}"));
            let own = format!("({size}|M0)");
            let loads = assembly
                .text
                .lines()
                .filter(|line| line.contains("load.ugm.d32.a64"));
            let widths: Vec<&str> = loads.collect();
            assert!(
                !widths.is_empty() && widths.iter().all(|line| line.contains(&own)),
                "{plan} with {size}\n{}",
                widths.join("\n")
            );
        }
    }
}

/// The bits are those of any other size.
#[test]
fn a_device_computes_the_same_with_it() {
    let device = match OpenClDevice::open(0) {
        Ok(device) => device,
        Err(error) => return tools::skip("opencl", &error.to_string()),
    };
    let subject = subject();
    let workload = subject.workload().expect("a workload");
    let original = subject.spirv().expect("a module").clone();
    let bytes = fs::read(folder().join("memory.spv")).expect("readable");
    let module = Module::new(&bytes, "memory.spv").expect("a module");
    let imported = module
        .import(Some("gather"), &subject.launch().facts())
        .expect("an entry");
    let right = run(&device, &workload, &imported, &original.words).expect("it runs");
    let simulator = simulator();
    let bound = workload.bind(&simulator).expect("bound");
    assert!(bound.run(&simulator, &workload.kernel).expect("it runs").1 == right);
    for size in [16, 32] {
        let way = LaunchSettings {
            sub_group: Some(size),
            ..LaunchSettings::default()
        };
        for plan in ["none", PLAN] {
            let best = tune::best_spirv(&subject, &report(&subject, plan, way), SpirvTarget::Portable);
            let best = best.expect("it is written");
            let found = run(&device, &workload, &imported, &best.words);
            let found = found.unwrap_or_else(|error| panic!("{plan} with {size}: {error}"));
            assert!(found == right, "{plan} with {size}: other bits");
        }
    }
}
