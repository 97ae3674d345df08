//! `headstart run`: one plan: its time, what the device counted, a checksum of each output.

use headstart::prefetch::Plan;
use headstart::report::number;
use headstart::{Result, tune};
use serde_json::json;

use crate::arguments::Run;
use crate::device::Chosen;
use crate::kernel::{self, Places};
use crate::output::{Destination, json_line, print};

/// Runs the command.
pub fn run(options: &Run) -> Result<()> {
    let plan: Plan = options.plan.parse()?;
    let subject = kernel::find(&options.kernel, Places::Filled)?;
    let device = Chosen::find(&options.device)?;
    let json = options.json.as_deref().map(|path| Destination::check("--json", path)).transpose()?;

    let simulated = device.bench()?;
    let bench = simulated.as_bench();
    let workload = subject.workload()?;
    let plain = bench.plain(&workload)?;
    let derived = bench.derive(&workload, &plain, &plan)?;
    let bound = workload.bind(bench.device)?;
    // Everything is computed and checked first: a kernel that goes wrong has no time.
    let prepared = bound.prepare(bench.device)?;
    let names: Vec<String> = prepared.outputs.iter().map(|output| output.name.clone()).collect();
    let outputs = bound.run(bench.device, &derived.kernel)?.1;
    let timed = bench.time(&bound, &derived.kernel)?;
    let checksums: Vec<(String, String)> =
        names.into_iter().zip(&outputs).map(|(name, bytes)| (name, tune::checksum(bytes))).collect();
    let counters = simulated.counters(&timed, None);

    if let Some(destination) = json {
        let counted: serde_json::Map<String, serde_json::Value> =
            counters.iter().map(|counter| (counter.name.clone(), json!(counter.plain))).collect();
        let sums: serde_json::Map<String, serde_json::Value> =
            checksums.iter().map(|(name, sum)| (name.clone(), json!(sum))).collect();
        return destination.write(&json_line(&json!({
            "kernel": subject.name(),
            "device": device.name(),
            "plan": derived.plan,
            "geometry": workload.geometry(),
            "time_ns": timed.time_ns,
            "checksums": sums,
            "counters": counted,
        }))?);
    }
    let mut text = format!(
        "{} on {}, {}\nplan      {}\ntime      {}\n",
        subject.name(),
        device.name(),
        workload.geometry(),
        derived.plan,
        number::duration(timed.time_ns)
    );
    for (name, sum) in &checksums {
        text.push_str(&format!("output    {name} {sum}\n"));
    }
    for counter in &counters {
        let value = format!("{} {}", number::figures(counter.plain), counter.unit);
        text.push_str(&format!("counted   {}: {}\n", counter.name, value.trim_end()));
    }
    text.push_str(&format!("{}\n", simulated.note()));
    print(&text)
}
