//! `headstart devices`: the devices here, simulated ones included, and the effect of prefetches on each.

use headstart::Result;
use headstart::device::model::{self, Listed};
use headstart::report::columns::Columns;
use headstart::report::number;
use headstart::tune::kinds::{ASYNCHRONOUS_COPIES, KINDS, KnownDevice};
use serde_json::{Map, Value, json};

use crate::arguments;
use headstart_cli::output::{Destination, json_line, print};

/// Runs the command.
pub fn run(options: &arguments::Devices) -> Result<()> {
    let json = Destination::asked("--json", options.json.as_deref())?;
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
    let mut all = Vec::new();
    for kind in KINDS {
        all.extend(kind.here()?);
    }
    match json {
        Some(destination) => destination.write(&json_line(
            &all.iter().map(|device| as_json(&**device)).collect::<Vec<_>>(),
        )?),
        None => print(
            &all.iter()
                .map(|device| text(&**device))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
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

fn text(device: &dyn KnownDevice) -> String {
    let (description, facts) = (device.description(), device.facts());
    let number = |name: &str| facts.get(name).and_then(Value::as_f64);
    let bandwidth = number("bandwidth_gb_s").map(|rate| format!(" at {} GB/s", number::figures(rate)));
    let l2 = number("l2_bytes").map(|bytes| format!(", L2 of {}", number::capacity(bytes as u64)));
    let driver = facts
        .get("driver")
        .and_then(Value::as_str)
        .map(|driver| format!(", driver {driver}"));
    let mut text = format!(
        "{:<26} {}\n    {} cores, {} of memory{}{}, work-groups of at most {} work-items, {} of shared memory{}\n",
        description.name,
        description.title,
        description.cores,
        number::capacity(description.memory_bytes),
        bandwidth.unwrap_or_default(),
        l2.unwrap_or_default(),
        description.max_group_size,
        number::capacity(description.max_shared_bytes),
        driver.unwrap_or_default(),
    );
    if facts.get(ASYNCHRONOUS_COPIES) == Some(&json!(false)) {
        text.push_str("    no asynchronous copies to shared memory: each is a load and a store\n");
    }
    for row in device.reaches() {
        let reached = match (&row.reached, row.by) {
            (Some(cache), by) => format!("{cache} reached, by {by}"),
            (None, "nothing") => "no effect".to_owned(),
            (None, by) => format!("no known effect, by {by}"),
        };
        let why = row
            .because
            .filter(|(how, _)| *how == "why")
            .map(|(_, why)| format!(": {why}"));
        text.push_str(&format!(
            "    {} asked → {reached}{}\n",
            row.asked.name(),
            why.unwrap_or_default()
        ));
    }
    text
}

fn as_json(device: &dyn KnownDevice) -> Value {
    let description = device.description();
    let mut levels = Map::new();
    for row in device.reaches() {
        let mut reached = json!({"reaches": row.reached, "by": row.by});
        if let Some((how, what)) = row.because {
            reached[how] = what.into();
        }
        levels.insert(row.asked.name().to_owned(), reached);
    }
    let mut all = device.facts();
    for (name, value) in [
        ("device", json!(description.name)),
        ("title", json!(description.title)),
        ("cores", json!(description.cores)),
        ("memory_bytes", json!(description.memory_bytes)),
        ("max_group_size", json!(description.max_group_size)),
        ("max_shared_bytes", json!(description.max_shared_bytes)),
        ("sub_group_sizes", json!(description.sub_group_sizes)),
        ("prefetch", Value::Object(levels)),
    ] {
        all.insert(name.to_owned(), value);
    }
    Value::Object(all)
}
