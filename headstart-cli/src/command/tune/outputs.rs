//! What `headstart tune` writes beside its report: data, a page, a module, what changes in the module, an answer to ship.

use std::path::PathBuf;

use headstart::back::spirv::SpirvTarget;
use headstart::capture::Captured;
use headstart::names;
use headstart::report::{Report, page};
use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::arguments::{KernelOptions, Tune};
use crate::kernel::{self, Module};
use crate::spirv_module::SpirvModule;
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line};
use headstart_cli::progress::Clock;
use headstart_cli::terminal;

/// Where the results go.
pub struct Outputs {
    json: Option<Destination>,
    html: Option<Destination>,
    output: Option<Destination>,
    diff: Option<Destination>,
    ship: Option<PathBuf>,
    module: Option<Rewritten>,
}

impl Outputs {
    /// # Errors
    /// A file cannot be written, two are one, or the kernel is in no module that can be.
    pub fn of(options: &Tune, which: &KernelOptions) -> Result<Outputs> {
        let named = [
            ("--json", &options.json),
            ("--html", &options.html),
            ("--output", &options.output),
            ("--diff", &options.diff),
        ];
        let [json, html, output, diff] = Destination::apart(named)?;
        let written = [
            ("--json", json.as_ref()),
            ("--html", html.as_ref()),
            ("--output", output.as_ref()),
            ("--diff", diff.as_ref()),
        ];
        kernel::spare(which, &written)?;
        if let Some(ship) = &options.ship {
            Destination::check("--ship", ship)?;
        }
        let module = match output.is_some() || diff.is_some() {
            true => Some(rewritten(which, options)?),
            false => None,
        };
        Ok(Outputs {
            json,
            html,
            output,
            diff,
            ship: options.ship.clone(),
            module,
        })
    }

    /// The module is a captured launch's, of which more is known now.
    pub fn are_of(&mut self, captured: &Captured) -> Result<()> {
        if let Some(Rewritten::Ptx(module)) = &mut self.module {
            *module = Module::of_captured(captured)?;
        }
        Ok(())
    }

    /// Whether a page is written, which shows both kernels in detail.
    pub fn has_page(&self) -> bool {
        self.html.is_some()
    }

    /// Whether one of them is standard output: it stands there alone.
    pub fn take_standard_output(&self) -> bool {
        let all = [&self.json, &self.html, &self.output, &self.diff];
        all.into_iter()
            .flatten()
            .any(|destination| matches!(destination, Destination::Standard))
    }

    /// Writes all of them: what was written, in sentences. `in_detail` is the report that the page shows.
    pub fn write(&self, report: &Report, in_detail: &Report, clock: &mut Clock) -> Result<Vec<String>> {
        let mut written = Vec::new();
        if let Some(html) = &self.html {
            html.write(&terminal::page(&page::html(in_detail)))?;
            clock.over("page made");
        }
        if let Some(json) = &self.json {
            json.write(&json_line(report)?)?;
            written.extend(json.said("the report as data"));
        }
        if let Some(module) = &self.module {
            self.write_module(module, report, &mut written)?;
            clock.over("module written");
        }
        written.extend(self.ship.as_ref().map(|path| {
            format!(
                "Added to {}: the answer, for `tuned` to find.",
                quoted(&path.to_string_lossy())
            )
        }));
        // The page has the most to show: it is named last.
        written.extend(
            self.html
                .as_ref()
                .and_then(|html| html.said("the report as a page")),
        );
        Ok(written)
    }

    fn write_module(&self, module: &Rewritten, report: &Report, written: &mut Vec<String>) -> Result<()> {
        let (bytes, granted, asked) = module.best(report)?;
        if let Some(diff) = &self.diff {
            diff.write(&module.diff(&bytes))?;
            written.extend(diff.said("what changes in the module"));
        }
        if let Some(output) = &self.output {
            output.write_bytes(&bytes)?;
            written.extend(output.said(&serves(report, &granted)));
        }
        for sentence in granted {
            eprintln!("headstart: taken for granted: {sentence}");
        }
        for sentence in asked {
            eprintln!("headstart: to be asked for by the program: {sentence}");
        }
        Ok(())
    }
}

/// What the written module is, and which launches it serves.
fn serves(report: &Report, granted: &[String]) -> String {
    let entry = names::shown(&report.kernel);
    let elsewhere = report
        .best_elsewhere
        .as_ref()
        .filter(|_| report.verdict.is_of_geometry());
    let as_it_came = format!("as it came: {}", report.why_as_it_was());
    // A module of SPIR-V says itself what it rests on.
    let rests_on = match granted.is_empty() {
        true => &report.taken_for_granted[..],
        false => granted,
    };
    let resting = format!(
        "with the plan, for launches of which this holds: {}",
        rests_on.join("; ")
    );
    let what = match (
        report.best.plan.is_none(),
        report.granted().is_some() || !granted.is_empty(),
    ) {
        (true, _) => match elsewhere {
            Some(other) => {
                return format!(
                    "the module of `{entry}` as it came: in this geometry no plan is worth it. For `{}`, tune it with a launch \
                     file of {}",
                    other.plan, other.geometry
                );
            }
            None => &as_it_came,
        },
        (false, true) => &resting,
        (false, false) => "with the plan, for every launch that has the registers for it",
    };
    format!("the module of `{entry}` {what}")
}

/// The module that `-o` and `--diff` write with the best plan carried out.
enum Rewritten {
    Ptx(Module),
    Spirv(SpirvModule, SpirvTarget),
}

impl Rewritten {
    /// What became of the module, as a unified diff.
    fn diff(&self, written: &[u8]) -> String {
        match self {
            Rewritten::Ptx(module) => module.diff(&String::from_utf8_lossy(written)),
            Rewritten::Spirv(..) => String::new(),
        }
    }

    /// The module's bytes, its assumptions, unless it states them itself, and the program's further requests.
    fn best(&self, report: &Report) -> Result<(Vec<u8>, Vec<String>, Vec<String>)> {
        match self {
            Rewritten::Ptx(module) => Ok((module.best(report)?.into_bytes(), Vec::new(), Vec::new())),
            Rewritten::Spirv(module, target) => {
                let best = module.best(report, *target)?;
                Ok((best.bytes(), best.granted, best.asked))
            }
        }
    }
}

/// The module that the options ask to be written.
fn rewritten(which: &KernelOptions, options: &Tune) -> Result<Rewritten> {
    let spirv = kernel::spirv_module(which)?;
    let named = options.output.as_ref().and_then(|path| path.extension());
    let other = match spirv.is_some() {
        true => ("ptx", "SPIR-V"),
        false => ("spv", "PTX"),
    };
    if named.is_some_and(|named| named == other.0) {
        return Err(Error::usage(format!("the module is one of {}", other.1))
            .at("`--output`")
            .accepted(format!("a file that does not end in `.{}`", other.0)));
    }
    match (spirv, &options.diff) {
        (Some(_), Some(_)) => Err(Error::usage("`--diff` shows what changes in a module of PTX")
            .accepted("`-o` for a module of SPIR-V")),
        (Some(module), None) => Ok(Rewritten::Spirv(module, spirv_target(options)?)),
        (None, _) => Module::of(which)?.map(Rewritten::Ptx).ok_or_else(|| {
            Error::usage("`-o` writes a module of PTX or SPIR-V").accepted(
                "a kernel FILE.ptx[:entry], FILE.cu[:entry] or FILE.spv[:entry]; for others, `headstart emit --target ptx`",
            )
        }),
    }
}

/// The target of a SPIR-V module: the device that it is tuned for, or any that takes SPIR-V.
fn spirv_target(options: &Tune) -> Result<SpirvTarget> {
    let Some(name) = options.on.device.as_deref() else {
        return Ok(SpirvTarget::Portable);
    };
    let device = device::find(name, &options.on.model)?;
    device.spirv_target().ok_or_else(|| {
        Error::device(format!("{} does not run SPIR-V", device.name()))
            .accepted("an Intel or OpenCL device, or no `-o`")
    })
}

#[cfg(test)]
mod tests {
    use headstart::prefetch::Plan;
    use headstart::report::Verdict;

    use super::*;

    #[test]
    fn a_written_module_says_what_it_is_for() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../results/tune-attention-sim-h200.json"
        );
        let text = std::fs::read_to_string(file).expect("readable");
        let made: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let mut report: Report = serde_json::from_value(made["report"].clone()).expect("a report");
        report.taken_for_granted = vec!["`keys` has exactly 8 elements".to_owned()];
        let said = serves(&report, &[]);
        assert!(
            said.ends_with("of which this holds: `keys` has exactly 8 elements"),
            "{said}"
        );
        // Where nothing was decided nothing is said of the plans.
        report.best.plan = Plan::none();
        for (verdict, expected) in [
            (Verdict::Undecided, "too few plans were timed"),
            (Verdict::LeaveIt, "no plan is worth it"),
        ] {
            report.verdict = verdict;
            assert!(serves(&report, &[]).contains(expected), "{verdict}");
        }
    }
}
