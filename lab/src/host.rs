//! `headstart-lab bench --suite host`: the techniques of the host's side, each in a process of its own, on a GPU or on the
//! simulator.
//!
//! The process of a technique runs its variants, and writes a line of JSON for each; output that kernels print in between is
//! discarded.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use headstart::{Error, Result};
use headstart_gallery::host::{Host, Ran, TECHNIQUES, Taken, Technique};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments;
use headstart_cli::device;
use headstart_cli::output::explain_command;
use headstart_cli::output::{Destination, json_line, print, print_as_it_is};
use headstart_cli::published;

/// The longest that a technique may take on a GPU, all of its ways together.
const PATIENCE: Duration = Duration::from_secs(120);

/// The same on the simulator.
const SIMULATED: Duration = Duration::from_secs(1200);

/// The results of a variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    technique: String,
    way: String,
    /// `ok`, `left out` or `failed`.
    status: String,
    /// Why it was left out or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Its time: the round of the median time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<Taken>,
    /// The times of all rounds, in nanoseconds, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    times_ns: Vec<f64>,
}

/// Runs the suite, and writes the results after each technique.
///
/// # Errors
/// There is no such device, or the file cannot be written. A technique's failure is stored as its result.
pub fn run(options: &arguments::Bench) -> Result<()> {
    let destination = Destination::asked("--json", options.json.as_deref())?;
    let chosen = device::find(&options.device, &[])?;
    let title = match (chosen.gpu(), chosen.model()) {
        (Some(facts), _) => facts.name.clone(),
        (_, Some(model)) => model.description().name,
        _ => {
            return Err(
                Error::usage("the host's techniques are for NVIDIA's GPUs and simulated devices")
                    .accepted("`--device cuda:N` or `--device sim:NAME`"),
            );
        }
    };
    let wanted = |technique: &Technique| {
        let mut cases = options.case.iter();
        options.case.is_empty() || cases.any(|text| technique.page.contains(text.as_str()))
    };
    let mut records = Vec::new();
    for technique in TECHNIQUES.into_iter().filter(|technique| wanted(technique)) {
        print(&format!("\n{}\n", technique.title))?;
        let patience = match chosen.gpu() {
            Some(_) => PATIENCE,
            None => SIMULATED,
        };
        let found = in_its_own_process(technique, &options.device, options.rounds, patience)?;
        for (at, record) in found.iter().enumerate() {
            print(&line(record))?;
            let own = record.taken.as_ref().filter(|_| chosen.gpu().is_none());
            let is_like = |earlier: &&Record| {
                own.zip(earlier.taken.as_ref())
                    .is_some_and(|(own, one)| own.is_like(one))
            };
            if let Some(earlier) = found[..at].iter().find(is_like) {
                print(&format!(
                    "{:15}as `{}`: the host's own part of it is not modelled\n",
                    "", earlier.way
                ))?;
            }
        }
        records.extend(found);
        let report = json!({
            "command": published::command(crate::PROGRAM),
            "date": published::date(),
            "driver": chosen.gpu().and_then(|_| published::driver()),
            "version": env!("CARGO_PKG_VERSION"),
            "device": title,
            "host": records,
        });
        if let Some(destination) = &destination {
            destination.write(&json_line(&report)?)?;
        }
    }
    Ok(())
}

/// A way, for people.
fn line(record: &Record) -> String {
    match &record.taken {
        Some(taken) => format!(
            "  {} µs, kernels {:9.1} · {} in, {} out · {} compiled, {} buffers · {}\n",
            taken
                .time_ns
                .map_or(format!("{:>10}", "–"), |time| format!("{:10.1}", time * 1e-3)),
            taken.kernels_ns * 1e-3,
            taken.bytes_in,
            taken.bytes_out,
            taken.compiled,
            taken.buffers,
            record.way
        ),
        None => format!(
            "  {}: {}: {}\n",
            record.way,
            record.status,
            record.reason.as_deref().unwrap_or_default()
        ),
    }
}

/// A process that is ended when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Goes through a technique in another process. A way of which nothing is heard has failed.
fn in_its_own_process(
    technique: &Technique,
    device: &str,
    rounds: u32,
    patience: Duration,
) -> Result<Vec<Record>> {
    let program = std::env::current_exe().map_err(|error| Error::device(format!("no worker: {error}")))?;
    let arguments = [
        "host-technique",
        technique.page,
        "--device",
        device,
        "--rounds",
        &rounds.to_string(),
    ];
    let mut command = Command::new(program);
    command
        .args(arguments.map(OsStr::new))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    explain_command(&command);
    let child = command
        .spawn()
        .map_err(|error| Error::device(format!("no worker: {error}")))?;
    let mut child = Ended(child);
    let output = child
        .0
        .stdout
        .take()
        .ok_or_else(|| Error::bug("a program has no pipe"))?;
    let (sender, lines) = channel();
    // The thread ends with the program's output.
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(|line| line.ok()) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let start = Instant::now();
    let mut found: Vec<Record> = Vec::new();
    let reason = loop {
        match lines.recv_timeout(patience.saturating_sub(start.elapsed())) {
            Ok(line) => found.extend(serde_json::from_str::<Record>(&line)),
            Err(RecvTimeoutError::Timeout) => break format!("it takes more than {} s", patience.as_secs()),
            Err(RecvTimeoutError::Disconnected) => break "the process ended".to_owned(),
        }
    };
    for way in technique.ways {
        if !found.iter().any(|record| record.way == way.name) {
            found.push(record(technique, way.name, Err(&reason)));
        }
    }
    Ok(found)
}

/// A way that was not measured.
fn record(technique: &Technique, way: &str, why: std::result::Result<&str, &str>) -> Record {
    let (status, reason) = match why {
        Ok(reason) => ("left out", reason),
        Err(reason) => ("failed", reason),
    };
    Record {
        technique: technique.page.to_owned(),
        way: way.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        taken: None,
        times_ns: Vec::new(),
    }
}

/// Goes through a technique in this process: `headstart-lab host-technique`.
///
/// # Errors
/// There is no such technique or device.
pub fn serve(options: &arguments::HostTechnique) -> Result<()> {
    let technique = TECHNIQUES
        .into_iter()
        .find(|technique| technique.page == options.technique);
    let technique = technique.ok_or_else(|| Error::usage("there is no such technique"))?;
    let chosen = device::find(&options.device, &[])?;
    let (host, rounds) = match (chosen.gpu(), chosen.model()) {
        (Some(facts), _) => (Host::gpu(facts.ordinal), options.rounds),
        // Every round would be the same.
        (_, Some(model)) => (Host::simulated(model.clone()), 0),
        _ => return Err(Error::usage("not on OpenCL devices")),
    };
    // A GPU's context stays as long as one device is open: creating it in each round is not measured.
    let _kept = host.open()?;
    for way in technique.ways {
        let found = measured(technique, way, &host, rounds)
            .unwrap_or_else(|error| record(technique, way.name, Err(&error.to_string())));
        let text = serde_json::to_string(&found);
        let text = text.map_err(|error| Error::bug(format!("a result does not become JSON: {error}")))?;
        // Words of this are compared: they stay as they are, whatever the device calls things.
        print_as_it_is(&format!("\n{text}\n"))?;
    }
    Ok(())
}

/// A way, once to warm up and then this many times.
fn measured(
    technique: &Technique,
    way: &headstart_gallery::host::TechniqueVariant,
    host: &Host,
    rounds: u32,
) -> Result<Record> {
    if let Ran::LeftOut(reason) = (way.run)(host)? {
        return Ok(record(technique, way.name, Ok(reason)));
    }
    let mut all = vec![host.taken()];
    for _ in 0..rounds {
        (way.run)(host)?;
        all.push(host.taken());
    }
    // The first round warms up, where there are others.
    if all.len() > 1 {
        all.remove(0);
    }
    let time = |taken: &Taken| taken.time_ns.unwrap_or(0.0);
    let times_ns = all.iter().filter_map(|taken| taken.time_ns).collect();
    all.sort_by(|one, other| time(one).total_cmp(&time(other)));
    Ok(Record {
        technique: technique.page.to_owned(),
        way: way.name.to_owned(),
        status: "ok".to_owned(),
        reason: None,
        taken: Some(all[all.len() / 2].clone()),
        times_ns,
    })
}
