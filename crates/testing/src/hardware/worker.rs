//! The process that has the GPU: it runs jobs, and ends when a kernel faults or hangs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::job::{Arena, Job, Passed, Ran, Reply, Trial};
use crate::device::cuda::failure::{Failure, FailureKind};
use crate::device::cuda::gpu::Gpu;
use crate::device::cuda::launch::{Arguments, Geometry};
use crate::device::cuda::memory::Buffer;
use crate::device::cuda::module::Function;

/// How long a launch may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes that are shown of a difference.
const SHOWN: usize = 16;

/// Runs the jobs of `input`, a line each, and answers each with lines. Once the context is lost, the process ends: to give
/// anything back would wait for a kernel that may never end.
///
/// # Errors
/// The caller no longer listens, or its files are gone.
pub fn serve(input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(failure) => return say(&mut output, &Reply::NoGpu(failure.what)),
    };
    say(&mut output, &Reply::Opened(gpu.facts().clone()))?;
    for line in input.lines() {
        let job: Job = serde_json::from_str(&line?)?;
        run(&gpu, &job, &mut output)?;
        say(&mut output, &Reply::Over)?;
    }
    Ok(())
}

fn say(output: &mut impl Write, reply: &Reply) -> std::io::Result<()> {
    writeln!(output, "{}", serde_json::to_string(reply)?)?;
    output.flush()
}

/// Where a context was lost.
struct Lost {
    image: usize,
    launch: usize,
    failure: Failure,
}

/// Runs a job.
fn run(gpu: &Gpu, job: &Job, output: &mut impl Write) -> std::io::Result<()> {
    let data = std::fs::read(&job.data)?;
    let results = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&job.results)?;
    let mut images: HashMap<usize, Function> = HashMap::new();
    let mut unloadable: Vec<usize> = Vec::new();
    for trial in &job.trials {
        for &image in &trial.images {
            if images.contains_key(&image) || unloadable.contains(&image) {
                continue;
            }
            match loaded(gpu, &job.images[image], &trial.entry) {
                Ok(function) => {
                    images.insert(image, function);
                }
                Err(why) => {
                    unloadable.push(image);
                    say(output, &Reply::NotLoaded { image, why })?;
                }
            }
        }
    }
    let arenas = job.trials.iter().flat_map(|trial| &trial.launches);
    let most = arenas.map(|arena| arena.bytes).max().unwrap_or(0);
    let mut memory = gpu
        .allocate(most as usize)
        .map_err(|failure| std::io::Error::other(failure.what))?;
    for trial in &job.trials {
        let mut functions = Vec::new();
        for &image in &trial.images {
            let function = images.get(&image).map(|module| module.beside(&trial.entry));
            match function {
                Some(Ok(function)) => functions.push((image, function)),
                Some(Err(failure)) => say(
                    output,
                    &Reply::NotLoaded {
                        image,
                        why: failure.what,
                    },
                )?,
                None => {}
            }
        }
        // Nothing to compare with.
        let number = trial.number;
        if functions.first().map(|(image, _)| image) != trial.images.first() {
            let (ran, images) = (false, Vec::new());
            say(output, &Reply::Done { number, ran, images })?;
            continue;
        }
        match tried(&mut memory, trial, &functions, &data, &results)? {
            Ok((ran, images)) => say(output, &Reply::Done { number, ran, images })?,
            Err(Lost {
                image,
                launch,
                failure,
            }) => {
                let why = failure.what;
                say(
                    output,
                    &Reply::Lost {
                        number,
                        image,
                        launch,
                        why,
                    },
                )?;
                std::process::exit(0);
            }
        }
    }
    Ok(())
}

fn loaded(gpu: &Gpu, image: &Path, entry: &str) -> Result<Function, String> {
    let bytes = std::fs::read(image).map_err(|error| error.to_string())?;
    let function = match bytes.starts_with(b"\x7fELF") {
        true => gpu.load_image(&bytes, entry),
        false => gpu.load(&String::from_utf8_lossy(&bytes), entry),
    };
    function.map_err(|failure| [failure.what, failure.log].join("\n").trim().to_owned())
}

type Outcomes = Vec<(usize, Vec<Ran>)>;

/// Runs an entry in all images, under all launches; true if the first one ran under each.
fn tried(
    memory: &mut Buffer,
    trial: &Trial,
    functions: &[(usize, Function)],
    data: &[u8],
    results: &File,
) -> std::io::Result<Result<(bool, Outcomes), Lost>> {
    let mut ran_all = true;
    let mut outcomes: Outcomes = functions
        .iter()
        .skip(1)
        .map(|(image, _)| (*image, Vec::new()))
        .collect();
    for (launch, arena) in trial.launches.iter().enumerate() {
        let before = &data[arena.at as usize..(arena.at + arena.bytes) as usize];
        let lost = |image: usize, failure| Lost {
            image,
            launch,
            failure,
        };
        let mut run = |number: usize| -> Result<Result<Vec<u8>, String>, Lost> {
            let (image, function) = &functions[number];
            match launched(memory, function, trial, arena, before) {
                Ok(after) => Ok(Ok(after)),
                Err(failure) if failure.kind == FailureKind::Resources => Ok(Err(failure.what)),
                Err(failure) => Err(lost(*image, failure)),
            }
        };
        let wanted = match run(0) {
            Ok(Ok(wanted)) => wanted,
            Ok(Err(why)) => {
                ran_all = false;
                outcomes
                    .iter_mut()
                    .for_each(|(_, ran)| ran.push(Ran::Refused(why.clone())));
                continue;
            }
            Err(lost) => return Ok(Err(lost)),
        };
        results.write_all_at(&wanted, arena.at)?;
        for number in 1..functions.len() {
            let found = match run(number) {
                Ok(found) => found,
                Err(lost) => return Ok(Err(lost)),
            };
            let ran = match found {
                Err(why) => Ran::Refused(why),
                Ok(found) if found == wanted => Ran::Same,
                Ok(found) => match run(0) {
                    Ok(again) => differing(&found, &wanted, again.as_ref() == Ok(&wanted)),
                    Err(lost) => return Ok(Err(lost)),
                },
            };
            outcomes[number - 1].1.push(ran);
        }
    }
    Ok(Ok((ran_all, outcomes)))
}

fn differing(found: &[u8], wanted: &[u8], steady: bool) -> Ran {
    let differ = |at: &usize| found[*at] != wanted[*at];
    let at = (0..found.len()).find(differ).unwrap_or(0) / 4 * 4;
    let shown = at..(at + SHOWN).min(found.len());
    Ran::Differs {
        at: at as u64,
        bytes: (0..found.len()).filter(differ).count() as u64,
        found: found[shown.clone()].to_vec(),
        wanted: wanted[shown].to_vec(),
        steady,
    }
}

/// The arena after a launch.
fn launched(
    memory: &mut Buffer,
    function: &Function,
    trial: &Trial,
    arena: &Arena,
    before: &[u8],
) -> Result<Vec<u8>, Failure> {
    memory.write(before)?;
    let mut arguments = Arguments::new();
    for passed in &arena.arguments {
        match passed {
            Passed::Address(offset) => arguments.push_address(memory.address() + offset),
            Passed::Number(bytes) => arguments.push(bytes),
        }
    }
    let geometry = Geometry {
        groups: [trial.groups, 1, 1],
        group: [trial.group, 1, 1],
        dynamic_shared_bytes: 0,
        cooperative: false,
    };
    function.launch(geometry, &arguments)?;
    memory.gpu().wait(LIMIT)?;
    let mut after = vec![0; before.len()];
    memory.read(&mut after)?;
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_where_it_begins() {
        let wanted = [0u8; 40];
        let mut found = wanted;
        (found[21], found[39]) = (7, 1);
        let expected = Ran::Differs {
            at: 20,
            bytes: 2,
            found: found[20..36].to_vec(),
            wanted: wanted[20..36].to_vec(),
            steady: true,
        };
        assert_eq!(differing(&found, &wanted, true), expected);
    }
}
