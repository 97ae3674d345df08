//! `headstart kernels`: the gallery.

use headstart::Result;
use headstart::report::number::grouped;
use headstart_gallery::kernels;
use headstart_gallery::spatter;
use serde_json::json;

use crate::arguments;
use crate::output::{Destination, json_line, print};

/// Runs the command.
pub fn run(options: &arguments::Kernels) -> Result<()> {
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
                words => (words.join("|"), parameter.written(parameter.default)),
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
    print(&text)
}
