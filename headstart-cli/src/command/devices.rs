//! `headstart devices`: the devices here, simulated ones included, and what becomes of prefetches on each.

use headstart::back::{ptx, spirv};
use headstart::device::cuda::device::describe;
use headstart::device::cuda::gpu::{self, GpuFacts};
use headstart::device::model::{self, DeviceModel, Listed, PrefetchInstruction, Reached};
use headstart::device::opencl::platform::{self, OpenClFacts};
use headstart::ir::CacheLevel;
use headstart::report::columns::Columns;
use headstart::report::number;
use headstart::{Error, Result};
use serde_json::{Value, json};

use crate::arguments;
use crate::output::{Destination, json_line, print};

/// The levels that can be asked for.
const LEVELS: [CacheLevel; 4] = [CacheLevel::L1, CacheLevel::L2, CacheLevel::L3, CacheLevel::L4];

/// Runs the command.
pub fn run(options: &arguments::Devices) -> Result<()> {
    let json = options
        .json
        .as_deref()
        .map(|path| Destination::check("--json", path))
        .transpose()?;
    if let Some(name) = &options.model {
        let listed = model::listing(name, &[])?;
        return match json {
            Some(destination) => {
                let all: Vec<Value> = listed.iter().map(number_as_json).collect();
                destination.write(&json_line(&all)?)
            }
            None => print(&listed.iter().map(number_text).collect::<String>()),
        };
    }
    let models: Vec<DeviceModel> = model::built_in_names()
        .map(|name| model::built_in(name, &[]))
        .collect::<Result<_>>()?;
    // Without a driver there are none; `--device cuda:0` says why.
    let gpus: Vec<GpuFacts> = (0..gpu::count().unwrap_or(0))
        .map(|ordinal| gpu::facts(ordinal).map_err(Error::from))
        .collect::<Result<_>>()?;
    let opencl: Vec<OpenClFacts> = (0..platform::count().unwrap_or(0))
        .map(platform::facts)
        .collect::<Result<_>>()?;
    match json {
        Some(destination) => {
            let all: Vec<Value> = gpus
                .iter()
                .map(gpu_as_json)
                .chain(opencl.iter().map(opencl_as_json))
                .chain(models.iter().map(as_json))
                .collect();
            destination.write(&json_line(&all)?)
        }
        None => {
            let here = gpus.iter().map(gpu_text).chain(opencl.iter().map(opencl_text));
            let all: Vec<String> = here.chain(models.iter().map(text)).collect();
            print(&all.join("\n"))
        }
    }
}

fn number_text(number: &Listed) -> String {
    let unit = match number.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    format!(
        "{} = {}{unit}\n{}{}",
        number.path,
        number.value,
        Columns::UNLIMITED.wrapped(&number.meaning, "    ", "    "),
        Columns::UNLIMITED.wrapped(&format!("source: {}", number.source), "    ", "      ")
    )
}

fn number_as_json(number: &Listed) -> Value {
    json!({
        "path": number.path,
        "value": number.value,
        "unit": number.unit,
        "source": number.source,
        "meaning": number.meaning,
    })
}

fn gpu_text(facts: &GpuFacts) -> String {
    let description = describe(facts);
    let mut text = format!(
        "{:<26} {}\n    {} cores, {} of memory, L2 of {}, work-groups of at most {} work-items, {} of shared memory\n",
        description.name,
        description.title,
        description.cores,
        number::capacity(description.memory_bytes),
        number::capacity(facts.l2_bytes),
        description.max_group_size,
        number::capacity(description.max_shared_bytes),
    );
    for level in LEVELS {
        let (reached, by) = ptx::reached(level);
        text.push_str(&format!(
            "    {} asked → {} reached, by {by}\n",
            level.name(),
            reached.name()
        ));
    }
    text
}

fn gpu_as_json(facts: &GpuFacts) -> Value {
    let description = describe(facts);
    let levels: serde_json::Map<String, Value> = LEVELS
        .into_iter()
        .map(|level| {
            let (reached, by) = ptx::reached(level);
            (
                level.name().to_owned(),
                json!({"reaches": reached.name(), "by": by}),
            )
        })
        .collect();
    json!({
        "device": description.name,
        "title": description.title,
        "cores": description.cores,
        "memory_bytes": description.memory_bytes,
        "l2_bytes": facts.l2_bytes,
        "driver": facts.driver,
        "capability": facts.capability,
        "max_group_size": description.max_group_size,
        "max_shared_bytes": description.max_shared_bytes,
        "sub_group_sizes": description.sub_group_sizes,
        "prefetch": levels,
    })
}

fn opencl_text(facts: &OpenClFacts) -> String {
    let description = facts.description();
    let mut text = format!(
        "{:<26} {}\n    {} cores, {} of memory, work-groups of at most {} work-items, {} of shared memory, driver {}\n",
        description.name,
        description.title,
        description.cores,
        number::capacity(description.memory_bytes),
        description.max_group_size,
        number::capacity(description.max_shared_bytes),
        facts.driver,
    );
    for level in LEVELS {
        let (reached, by, why) = spirv::reached(facts.target(), level);
        let reached = reached.map_or("no known effect", CacheLevel::name);
        text.push_str(&format!(
            "    {} asked → {reached}, by {by}: {why}\n",
            level.name()
        ));
    }
    text
}

fn opencl_as_json(facts: &OpenClFacts) -> Value {
    let description = facts.description();
    let levels: serde_json::Map<String, Value> = LEVELS
        .into_iter()
        .map(|level| {
            let (reached, by, why) = spirv::reached(facts.target(), level);
            (
                level.name().to_owned(),
                json!({"reaches": reached.map(CacheLevel::name), "by": by, "why": why}),
            )
        })
        .collect();
    json!({
        "device": description.name,
        "title": description.title,
        "cores": description.cores,
        "memory_bytes": description.memory_bytes,
        "driver": facts.driver,
        "spirv": facts.spirv,
        "max_group_size": description.max_group_size,
        "max_shared_bytes": description.max_shared_bytes,
        "sub_group_sizes": description.sub_group_sizes,
        "prefetch": levels,
    })
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
