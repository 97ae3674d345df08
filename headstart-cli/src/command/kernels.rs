//! `headstart kernels`: the gallery, or the entries of a module.

use std::path::Path;

use headstart::report::columns::Columns;
use headstart::report::number::{self, grouped};
use headstart::{Result, names};
use headstart_gallery::kernels;
use headstart_gallery::spatter;
use serde_json::json;

use crate::arguments::BinOptions;
use crate::kernel::Places;
use crate::launched::Launches;
use crate::{arguments, kernel};
use headstart_cli::output::{Destination, json_line, print};

/// The list of the gallery is this wide also in a pipe: it is read in a pager.
const WIDTH: usize = 80;

/// Runs the command.
pub fn run(options: &arguments::Kernels) -> Result<()> {
    if let Some(file) = &options.file {
        return of_module(file, options);
    }
    if let Some(program) = &options.bin {
        return of_program(program, options);
    }
    if let Some(path) = &options.json {
        let kernels: Vec<_> = kernels::all()
            .map(|kernel| {
                let parameters: Vec<_> = kernel
                    .parameters
                    .iter()
                    .map(|parameter| {
                        json!({
                            "name": parameter.name,
                            "meaning": parameter.meaning,
                            "default": parameter.default,
                            "least": parameter.range.start(),
                            "most": parameter.range.end(),
                            "words": parameter.words,
                        })
                    })
                    .collect();
                json!({"name": kernel.name, "summary": kernel.summary, "parameters": parameters})
            })
            .collect();
        return Destination::check("--json", path)?.write(&json_line(&kernels)?);
    }
    let mut text = String::new();
    for kernel in kernels::all() {
        text.push_str(&format!("{}\n    {}\n", kernel.name, kernel.summary));
        for parameter in kernel.parameters {
            let (values, default) = match parameter.words {
                [] => ("…".to_owned(), grouped(parameter.default)),
                words => (words.join(" | "), parameter.written(parameter.default)),
            };
            text.push_str(&format!(
                "    --set {}={values}  {} [{default}]\n",
                parameter.name, parameter.meaning
            ));
        }
        if kernel.takes_trace.is_some() {
            text.push_str("    --trace FILE[#N]  index pattern of an application, in Spatter's JSON\n");
        }
        text.push('\n');
    }
    let traces: Vec<&str> = spatter::shipped().collect();
    text.push_str(&format!("Traces that are shipped: {}\n", traces.join(", ")));
    print(&Columns::new(WIDTH).fitted(&text))
}

/// The kernels that a program launches, each with its largest launch.
fn of_program(program: &Path, options: &arguments::Kernels) -> Result<()> {
    let json = Destination::asked("--json", options.json.as_deref())?;
    let launches = Launches::of(
        program,
        &BinOptions {
            bin: None,
            arguments: options.arguments.clone(),
        },
    )?;
    let (mut text, mut found) = (String::new(), Vec::new());
    for name in &launches.names {
        let workload = kernel::find(&launches.named(name)?, Places::Filled)?.workload()?;
        let (geometry, bytes) = (workload.geometry(), workload.bytes());
        text.push_str(&format!(
            "{name}  {geometry}, {} of data\n",
            number::bytes(bytes as f64)
        ));
        found.push(json!({"name": name, "geometry": geometry, "bytes": bytes}));
    }
    match json {
        Some(destination) => destination.write(&json_line(&found)?),
        None => print(&text),
    }
}

/// The entries of a module, one a line.
fn of_module(file: &str, options: &arguments::Kernels) -> Result<()> {
    let entries = kernel::entries(file)?;
    let shown: Vec<_> = entries
        .iter()
        .map(|name| names::shown(name).into_owned())
        .collect();
    if let Some(path) = &options.json {
        let entries: Vec<_> = entries
            .iter()
            .zip(&shown)
            .map(|(name, shown)| json!({"name": name, "shown": shown}))
            .collect();
        return Destination::check("--json", path)?.write(&json_line(&entries)?);
    }
    print(&shown.iter().map(|name| format!("{name}\n")).collect::<String>())
}
