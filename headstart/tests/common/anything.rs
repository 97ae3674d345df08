//! What must hold of any kernel that verifies, however senseless: nothing panics, and a refusal
//! does not blame Headstart.

use std::sync::Arc;

use headstart::back::{machine, ptx};
use headstart::device::Launch;
use headstart::device::sim::functional::{CompiledKernel, Groups, Options};
use headstart::ir::{self, Kernel};
use headstart::prefetch::{PlanTarget, apply};
use headstart::tune::LaunchFile;
use headstart::{Error, Fault};
use headstart_testing::{Random, bind, random_plan};

/// Operations of a kernel that is still looked at: the passes may copy them many times.
const OPERATIONS: usize = 500;
/// Operations that a sub-group runs before it is stopped.
const STEPS: u64 = 2_000;

/// Plans, lowers, emits and runs a verified kernel. True if a plan was legal.
pub fn check(kernel: &Kernel, seed: u64) -> bool {
    let mut operations = 0;
    kernel.body.walk(&mut |_| operations += 1);
    if operations > OPERATIONS {
        return false;
    }
    run(kernel);
    emit(kernel);
    let mut random = Random::new(seed);
    let mut legal = false;
    for _ in 0..2 {
        let plan = random_plan(&mut random, kernel);
        match apply(kernel, &plan, &PlanTarget::default()) {
            Ok(applied) => {
                legal |= !plan.is_none();
                ir::verify(&applied.kernel).unwrap_or_else(|error| panic!("{plan}: {error}"));
                emit(&applied.kernel);
                run(&applied.kernel);
            }
            Err(error) => not_ours(&error, &plan.to_string()),
        }
    }
    legal
}

fn not_ours(error: &Error, what: &str) {
    assert_ne!(error.fault(), Fault::Bug, "{what}: {error}");
    assert!(error.to_string().lines().count() <= 1, "{what}: {error}");
}

fn emit(kernel: &Kernel) {
    machine::lower(kernel, &machine::Target::nvidia());
    machine::lower(kernel, &machine::Target::intel(16, 8 << 10));
    if let Err(error) = ptx::emit(kernel, &ptx::Options::new(ptx::PtxTarget::Sm80)) {
        not_ours(&error, "emitting PTX");
    }
}

/// One work-group of few work-items, on data that fit no kernel in particular.
fn run(kernel: &Kernel) {
    let small = kernel.shared_bytes() <= 64 << 10 && kernel.private_bytes() <= 4 << 10;
    let items = kernel
        .group_size
        .map_or(8, |[x, y, z]| u64::from(x) * u64::from(y) * u64::from(z));
    let kernel = Arc::new(kernel.clone());
    if !small || items > 64 {
        return;
    }
    let mut workload = match LaunchFile::default().workload(&kernel) {
        Ok(workload) => workload,
        Err(error) => return not_ours(&error, "the default launch"),
    };
    workload.groups = [1; 3];
    workload.group = kernel.group_size.unwrap_or([8, 1, 1]);
    let outcome = bind(&workload).and_then(|(launch, _)| {
        let launch = Launch {
            operation_limit: Some(STEPS),
            ..launch
        };
        let compiled = CompiledKernel::new(Arc::clone(&kernel));
        compiled.run(
            &launch,
            kernel.sub_group_size.unwrap_or(8).min(32),
            Options::CHECKING,
            &Groups::All,
        )
    });
    if let Err(error) = outcome {
        not_ours(&error, "running");
    }
}
