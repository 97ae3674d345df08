//! PTX of one's own: a plan is carried out on an entry of a module, and the new module takes the old one's place.
//!
//!     cargo run --release --example ptx

use headstart::Result;
use headstart::device::sim::Simulator;
use headstart::front::ptx::import;
use headstart::prefetch::Plan;
use headstart::tune::{FileSubject, LaunchFile, Subject, planned_module};

/// Written by hand here; a compiler's output is taken as well.
const MODULE: &str = include_str!("gather.ptx");

/// How the entry is launched, and what PTX does not say: which memory nothing writes, and what shares none.
const LAUNCH: &str = r#"
groups = 4
group = 64
readonly = ["indices", "values"]
unaliased = ["sums"]

[parameters.indices]
length = 8192
fill = "indices"
below = 65536

[parameters.values]
length = 65536
fill = "fractions"

[parameters.sums]
length = 256
output = "bits"

[parameters.items]
value = 32
"#;

/// What the module's entry computes, on the simulator.
fn outputs(module: &str, launch: &LaunchFile) -> Result<Vec<Vec<u8>>> {
    let imported = import(module, "gather.ptx", Some("gather"), &launch.facts())?;
    let workload = FileSubject::of_module(imported, launch.clone()).workload()?;
    let device = Simulator::untimed();
    let (_, outputs) = workload.bind(&device)?.run(&device, &workload.kernel)?;
    Ok(outputs)
}

fn main() -> Result<()> {
    let launch = LaunchFile::parse(LAUNCH, "the launch")?;
    let plan: Plan = "values=rolling-async:4".parse()?;
    // Refused where the plan is not legal for this entry; `tuned_module` searches for the plan, too.
    let planned = planned_module(MODULE, "gather.ptx", Some("gather"), &launch, &plan, None)?;

    println!("plan: {}", planned.plan);
    for granted in &planned.granted {
        println!("taken for granted: {granted}");
    }
    // The program loads `planned.text` in place of the old module. A note at its top lists the assumptions and the checks.
    let same = outputs(MODULE, &launch)? == outputs(&planned.text, &launch)?;
    println!("the same bits: {same}");
    assert!(same && planned.text.contains("cp.async"));
    Ok(())
}
