//! The better kernel of a captured launch, left beside it for `headstart exec`.

use std::fs;

use headstart::capture::Captured;
use headstart::device::cuda::failure::Failure;
use headstart::device::cuda::gpu::{Gpu, GpuFacts};
use headstart::device::cuda::ptxas::assembled_for;
use headstart::report::{Report, Verdict};
use headstart::suggest::quoted;
use headstart::{Error, Result, tune};

use crate::command::capture::toml_string;
use crate::command::exec::{TUNED, TUNED_CODE, TUNED_MODULE};
use crate::command::expected;

/// What was left beside a captured launch.
pub enum Placed {
    /// A better kernel.
    Better {
        /// What it assumes, a sentence each.
        rests_on: Vec<String>,
        /// Why it was not assembled ahead, if that was wanted.
        not_assembled: Option<String>,
    },
    /// Nothing, for this reason: the original stays.
    Kept(String),
    /// Nothing: the search has not found out.
    Open(String),
}

/// Leaves the better kernel beside a captured launch, or nothing where there is none.
///
/// The machine code is made here, so that the program compiles nothing: by the assembler that the environment names, or by the
/// driver of the GPU that plans were tried on.
///
/// # Errors
/// The folder cannot be written.
pub fn place(captured: &Captured, report: &Report, gpu: Option<&GpuFacts>) -> Result<Placed> {
    let (module, facts) = (captured.folder.join(TUNED_MODULE), captured.folder.join(TUNED));
    let code = captured.folder.join(TUNED_CODE);
    let unwritable = |error: std::io::Error| {
        let shown = captured.folder.to_string_lossy();
        Error::device(format!("the tuned kernel cannot be written: {error}")).at(quoted(&shown))
    };
    for old in [&module, &code, &facts] {
        match fs::remove_file(old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
    }
    if report.verdict == Verdict::Undecided {
        return Ok(Placed::Open("undecided".to_owned()));
    }
    if report.best.plan.is_none() {
        return Ok(match &report.partial {
            Some(partial) if partial.tried > 0 && partial.open_kinds.is_empty() => Placed::Kept(format!(
                "no plan is faster: {} of {} were tried, some of every kind",
                partial.tried, partial.of
            )),
            Some(partial) => Placed::Open(format!(
                "no plan is faster so far: {} of {} were tried",
                partial.tried, partial.of
            )),
            None if report.trials.iter().all(|trial| trial.plan.is_none()) => {
                Placed::Kept("no loop of it loads from global memory".to_owned())
            }
            None => Placed::Kept("no plan is faster".to_owned()),
        });
    }
    let subject = tune::captured_subject(captured.clone())?;
    let planned = tune::best_planned(&subject, report)?;
    let exchange = match tune::exchange(captured, &subject, &planned) {
        Ok(exchange) => exchange,
        Err(error) => return Ok(Placed::Kept(error.to_string())),
    };
    let list = |lines: &[String]| {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("  {},\n", toml_string(line)))
            .collect();
        format!("[\n{}]", lines.concat())
    };
    let addresses = exchange.addresses.iter();
    let addresses: Vec<String> = addresses.map(|(kept_in, of)| format!("{kept_in} {of}")).collect();
    let text = format!(
        "# Written by `headstart tune`; read by `headstart exec`.\nkernel = {}\nimage = {}\nplan = {}\ndevice = {}\n\
         speedup = {:.4}\nfacts = {}\nrests_on = {}\naddresses = {}\n",
        toml_string(&captured.kernel),
        toml_string(&captured.image),
        toml_string(&planned.plan.to_string()),
        toml_string(&report.device),
        report.best.speedup,
        list(&exchange.facts),
        list(&exchange.sentences),
        list(&addresses)
    );
    fs::write(&module, &exchange.module).map_err(unwritable)?;
    let assembled = match assembled_for(&format!("sm_{}", captured.capability), &exchange.module) {
        Ok(None) => compiled(captured, &exchange.module, gpu),
        named => named,
    };
    let mut not_assembled = None;
    match assembled {
        Ok(Some(bytes)) => fs::write(&code, bytes).map_err(unwritable)?,
        Ok(None) => {}
        Err(failure) => not_assembled = Some(failure.what),
    }
    fs::write(&facts, text).map_err(unwritable)?;
    Ok(Placed::Better {
        rests_on: exchange.sentences,
        not_assembled,
    })
}

impl Placed {
    /// What was left, in sentences.
    pub fn said(&self, captured: &Captured, report: &Report) -> String {
        let (rests_on, not_assembled) = match self {
            Placed::Kept(why) | Placed::Open(why) => {
                let mut why = why.clone();
                if let Some(first) = why.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                return format!("{why}: `headstart exec` keeps the original kernel.\n");
            }
            Placed::Better {
                rests_on,
                not_assembled,
            } => (rests_on, not_assembled),
        };
        let mut said = not_assembled.as_ref().map_or(String::new(), |why| {
            format!("Not assembled ahead, the driver will compile it: {why}.\n")
        });
        said.push_str("The tuned kernel assumes the following, checked at every launch:\n");
        for sentence in rests_on {
            said.push_str(&format!("  {sentence}\n"));
        }
        said.push_str(&expected::sentence(captured, report.best.speedup).unwrap_or_default());
        let parent = captured
            .folder
            .parent()
            .map_or_else(String::new, |parent| parent.to_string_lossy().into_owned());
        said.push_str(&format!("Next: headstart exec --with {parent} -- PROGRAM\n"));
        said
    }
}

/// The module as the driver's compiler makes machine code of it, where a GPU of the captured kind is at hand.
fn compiled(
    captured: &Captured,
    module: &str,
    gpu: Option<&GpuFacts>,
) -> std::result::Result<Option<Vec<u8>>, Failure> {
    let is_as_captured = |gpu: &&GpuFacts| {
        let (major, minor) = gpu.capability;
        10 * major + minor == captured.capability
    };
    match gpu.filter(is_as_captured) {
        Some(gpu) => Gpu::open(gpu.ordinal)?.assemble(module).map(Some),
        None => Ok(None),
    }
}
