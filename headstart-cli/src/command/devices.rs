//! `headstart devices`: the devices here, simulated ones included, and what becomes of prefetches on each.

use headstart::Result;
use headstart::device::model::{self, DeviceModel, PrefetchInstruction, Reached};
use headstart::report::number;
use serde_json::{Value, json};

use crate::arguments;
use crate::output::{Destination, json_line, print};

/// Runs the command.
pub fn run(options: &arguments::Devices) -> Result<()> {
    let json = options
        .json
        .as_deref()
        .map(|path| Destination::check("--json", path))
        .transpose()?;
    let models: Vec<DeviceModel> = model::built_in_names()
        .map(|name| model::built_in(name, &[]))
        .collect::<Result<_>>()?;
    match json {
        Some(destination) => destination.write(&json_line(&models.iter().map(as_json).collect::<Vec<_>>())?),
        None => print(&models.iter().map(text).collect::<Vec<_>>().join("\n")),
    }
}

fn text(model: &DeviceModel) -> String {
    let description = model.description();
    let mut text = format!(
        "{:<26} {}\n    {} cores, {} of memory at {} GB/s, work-groups of at most {} work-items, {} of shared memory\n",
        description.name,
        description.title,
        description.cores,
        number::capacity(description.memory_bytes),
        number::figures(*model.dram.bandwidth),
        description.max_group_size,
        number::capacity(description.max_shared_bytes),
    );
    for (level, form) in model.prefetch.levels() {
        let reached = match reached(model, form.reaches) {
            Some(cache) => format!("{cache} reached, by {}", instruction(form.by)),
            None => "no effect".to_owned(),
        };
        text.push_str(&format!("    {} asked → {reached}\n", level.name()));
    }
    text
}

fn as_json(model: &DeviceModel) -> Value {
    let description = model.description();
    let levels: serde_json::Map<String, Value> = model
        .prefetch
        .levels()
        .map(|(level, form)| {
            let reached = json!({"reaches": reached(model, form.reaches), "by": instruction(form.by), "source": form.source});
            (level.name().to_owned(), reached)
        })
        .collect();
    json!({
        "device": description.name,
        "title": description.title,
        "cores": description.cores,
        "memory_bytes": description.memory_bytes,
        "bandwidth_gb_s": *model.dram.bandwidth,
        "max_group_size": description.max_group_size,
        "max_shared_bytes": description.max_shared_bytes,
        "sub_group_sizes": description.sub_group_sizes,
        "prefetch": levels,
    })
}

/// The cache that is reached, as its maker calls it; none where a prefetch has no effect.
fn reached(model: &DeviceModel, reached: Reached) -> Option<&str> {
    match reached {
        Reached::L1 => Some("L1"),
        Reached::L2 => Some(&model.l2.name),
        Reached::Nothing => None,
    }
}

fn instruction(instruction: PrefetchInstruction) -> &'static str {
    match instruction {
        PrefetchInstruction::Hint => "the prefetch instruction",
        PrefetchInstruction::ScratchCopy => "an asynchronous copy to a scratch word",
        PrefetchInstruction::Nothing => "nothing",
    }
}
