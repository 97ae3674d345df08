//! An entry on its way: read, given plans, laid out in arenas, run by the functional engine, compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::job::{Arena, Passed};
use crate::device::Argument;
use crate::device::sim::functional::{CompiledKernel, Groups, Options};
use crate::error::{Error, Fault, Result};
use crate::front::ptx::{self, Facts, Imported, Origin};
use crate::ir::{Fused, Kernel, OpKind};
use crate::prefetch::{Plan, PlanTarget, apply};
use crate::source::campaign::{OPERATIONS, Prepared, SUB_GROUP, rule};
use crate::source::launches::{LaunchOutcome, bytes_of};
use crate::tune::drop_in;
use crate::{Random, random_plan, random_plan_of_any};

/// Plans that are drawn until enough of them are legal.
const DRAWN: usize = 30;
/// Shared memory of a work-group that each launch may have.
const SHARED_BYTES: u64 = 48 << 10;
/// Choices of open sums that are tried.
const CHOICES: usize = 16;
/// Alignment of arrays in an arena, and the bytes before and behind each.
const ALIGNED: u64 = 256;
/// What those hold.
const BETWEEN: u8 = 0xa5;

/// A legal plan, and the module that it gives.
pub(crate) struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The module's text.
    pub text: String,
}

/// What came of drawing plans.
#[derive(Default)]
pub(crate) struct Drawn {
    /// Those that are legal.
    pub legal: Vec<Planned>,
    /// Of the others what refused them, by the rule's first words.
    pub refused: BTreeMap<String, u64>,
    /// Bugs of ours, by plan.
    pub bugs: Vec<(String, String)>,
}

/// Whether a loop of the kernel loads anything.
pub(crate) fn has_looped_load(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { body, .. } = &op.kind {
            body.walk(&mut |op| found |= matches!(op.kind, OpKind::Load { .. }));
        }
    });
    found
}

/// Draws plans for an entry until this many are legal.
pub(crate) fn planned(imported: &Imported, group: u32, random: &mut Random, wanted: usize) -> Drawn {
    let target = PlanTarget {
        group_size: Some([group, 1, 1]),
        line: 128,
    };
    let mut drawn = Drawn::default();
    let mut seen: Vec<Plan> = Vec::new();
    for _ in 0..DRAWN {
        if drawn.legal.len() == wanted {
            break;
        }
        let plan = match random.chance(50) {
            true => random_plan(random, &imported.kernel),
            false => random_plan_of_any(random, &imported.kernel),
        };
        if plan.is_none() || seen.contains(&plan) {
            continue;
        }
        seen.push(plan.clone());
        let written = apply(&imported.kernel, &plan, &target).and_then(|applied| {
            if applied.kernel.shared_bytes() > SHARED_BYTES {
                return Err(Error::usage(
                    "it takes more shared memory than each launch may have",
                ));
            }
            drop_in::placed(&imported.original, &imported.kernel, &applied.kernel)
        });
        match written {
            Ok(written) => drawn.legal.push(Planned {
                plan,
                text: written.text,
            }),
            Err(error) if error.fault() == Fault::Bug => {
                drawn.bugs.push((plan.to_string(), error.to_string()))
            }
            Err(error) => *drawn.refused.entry(rule(&error)).or_default() += 1,
        }
    }
    drawn
}

/// Where the arrays of a launch lie in its arena.
pub(crate) struct Laid {
    /// For the worker.
    pub arena: Arena,
    /// Where each array starts in the arena.
    pub starts: Vec<u64>,
}

/// Lays out a launch, and adds it to the data of a job.
pub(crate) fn laid(prepared: &Prepared, tried: &LaunchOutcome, data: &mut Vec<u8>) -> Laid {
    let (program, launch) = (&prepared.program, &tried.launch);
    let at = data.len() as u64;
    let mut starts = Vec::new();
    let mut bytes = vec![BETWEEN; ALIGNED as usize];
    for (number, array) in program.arrays.iter().enumerate() {
        let buffer = launch.buffer(number);
        if buffer != number {
            starts.push(starts[buffer]);
            continue;
        }
        starts.push(bytes.len() as u64);
        bytes.extend(bytes_of(array.element, &launch.contents[number]));
        let end = (bytes.len() as u64 + ALIGNED).next_multiple_of(ALIGNED);
        bytes.resize(end as usize, BETWEEN);
    }
    data.extend_from_slice(&bytes);
    let addresses = starts.iter().map(|&start| Passed::Address(start));
    let scalars = program.scalars.iter().zip(&launch.scalars);
    let numbers = scalars
        .map(|(scalar, bits)| Passed::Number(bits.to_le_bytes()[..scalar.ty.ir().bytes() as usize].to_vec()));
    Laid {
        arena: Arena {
            at,
            bytes: bytes.len() as u64,
            arguments: addresses.chain(numbers).collect(),
        },
        starts,
    }
}

/// What the functional engine says of a kernel under a launch: the bytes of each array that is written, none of others.
pub(super) fn run(prepared: &Prepared, imported: &Imported, tried: &LaunchOutcome) -> Result<Vec<Vec<u8>>> {
    let compiled = CompiledKernel::new(Arc::new(imported.kernel.clone()));
    run_compiled(prepared, imported, &compiled, tried)
}

fn run_compiled(
    prepared: &Prepared,
    imported: &Imported,
    compiled: &CompiledKernel,
    tried: &LaunchOutcome,
) -> Result<Vec<Vec<u8>>> {
    let (mut launch, memories) = tried.launch.bind(&prepared.program)?;
    launch.operation_limit = Some(OPERATIONS);
    // A pointer that leads to the kernel's own memory or to a variable is no array of the launch.
    let passed = std::mem::take(&mut launch.arguments);
    launch.arguments = arguments(imported, passed)?;
    compiled.run(&launch, SUB_GROUP, Options::CHECKING, &Groups::All)?;
    let arrays = prepared.program.arrays.iter().zip(&memories);
    let bytes = arrays.map(|(array, memory)| {
        let mut bytes = vec![0; if array.written { memory.bytes() as usize } else { 0 }];
        memory.copy_out(0, &mut bytes)?;
        Ok(bytes)
    });
    bytes.collect()
}

/// What the engine says of a planned module, read again, beside the entry as it was: why it is another kernel, with the launch.
/// Nothing where the engine does not run the entry, or the assembler may make several things of it.
pub(crate) fn differs(
    prepared: &Prepared,
    imported: &Imported,
    facts: &Facts,
    planned: &Planned,
    wanted: &[Vec<Vec<u8>>],
) -> Option<(usize, String)> {
    if !imported.original.open_sums.is_empty() {
        return None;
    }
    let name = prepared.program.name();
    // What is known of the entry's own counters is not known of those in a plan's copies.
    let facts = Facts {
        no_overflow: false,
        ..facts.clone()
    };
    let read =
        ptx::Module::new(&planned.text, "planned.ptx").and_then(|module| module.import_alone(&name, &facts));
    let read = match read {
        Ok(read) => read,
        Err(error) => return Some((0, error.to_string())),
    };
    let compiled = CompiledKernel::new(Arc::new(read.kernel.clone()));
    let mut launches = prepared.tried.iter().zip(wanted).enumerate();
    launches.find_map(|(launch, (tried, wanted))| {
        let why = match run_compiled(prepared, &read, &compiled, tried) {
            Ok(bytes) if bytes == *wanted => return None,
            Ok(bytes) => {
                let arrays = prepared.program.arrays.iter().zip(bytes.iter().zip(wanted));
                let differ = arrays.filter(|(_, (own, wanted))| own != wanted);
                let names: Vec<&str> = differ.map(|(array, _)| array.name).collect();
                format!("other bytes in {}", names.join(", "))
            }
            Err(error) => error.to_string(),
        };
        Some((launch, why))
    })
}

/// What the engine leaves of the entry under each launch; nothing if it does not run one.
pub(crate) fn ran(prepared: &Prepared, imported: &Imported) -> Option<Vec<Vec<Vec<u8>>>> {
    let compiled = CompiledKernel::new(Arc::new(imported.kernel.clone()));
    let run = |tried| run_compiled(prepared, imported, &compiled, tried).ok();
    prepared.tried.iter().map(run).collect()
}

/// The arguments in the order of the kernel's parameters.
fn arguments(imported: &Imported, passed: Vec<Argument>) -> Result<Vec<Argument>> {
    let origins = imported.original.parameters.iter();
    let mut passed = passed.into_iter();
    let arguments = origins.map(|origin| match origin {
        Origin::Parameter { .. } => passed
            .next()
            .ok_or_else(|| Error::bug("the entry has more parameters than the program")),
        Origin::Structure { .. } => Err(Error::usage("a parameter is a structure")),
        Origin::Variable { .. } => Err(Error::usage("the entry reads a variable of its module")),
        Origin::Workspace => Err(Error::usage(
            "the entry needs memory for variables that are taken the address of",
        )),
    });
    arguments.collect()
}

/// What the engine says of the GPU's results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Opinion {
    /// The same bits under each launch, with this choice for the open sums.
    Same,
    /// Other bits.
    Differs {
        /// In which launch.
        launch: usize,
        /// In which array.
        array: String,
        /// The first byte of the array that differs.
        at: u64,
        /// How many bytes of it do.
        bytes: u64,
        /// Bytes from there on, as the engine has them.
        engine: Vec<u8>,
        /// As the GPU has them.
        gpu: Vec<u8>,
    },
    /// It does not run the kernel to its end.
    Fails {
        /// In which launch.
        launch: usize,
        /// Why, without names.
        rule: String,
        /// Why.
        why: String,
    },
    /// The assembler may make several things of the entry, and too many to try each.
    Open,
}

/// Compares what the GPU left in the arenas, one for each launch, with the functional engine's results.
pub(crate) fn compared(
    prepared: &Prepared,
    module: &str,
    imported: &Imported,
    facts: &Facts,
    laid: &[Laid],
    results: &[u8],
) -> Opinion {
    let open = &imported.original.open_sums;
    if open.is_empty() {
        return with(prepared, imported, laid, results);
    }
    let many = open
        .iter()
        .try_fold(1usize, |many, choices| many.checked_mul(choices.len()));
    let Some(many) = many.filter(|many| *many <= CHOICES) else {
        return Opinion::Open;
    };
    let mut opinion = Opinion::Open;
    for number in 0..many {
        let mut rest = number;
        let choice = |choices: &Vec<Fused>| {
            let chosen = choices[rest % choices.len()];
            rest /= choices.len();
            chosen
        };
        let facts = Facts {
            fused: Some(open.iter().map(choice).collect()),
            ..facts.clone()
        };
        let name = prepared.program.name();
        let read =
            ptx::Module::new(module, "module.ptx").and_then(|module| module.import_alone(&name, &facts));
        opinion = match read {
            Ok(imported) => with(prepared, &imported, laid, results),
            Err(error) => Opinion::Fails {
                launch: 0,
                rule: rule(&error),
                why: error.to_string(),
            },
        };
        if opinion == Opinion::Same {
            break;
        }
    }
    opinion
}

fn with(prepared: &Prepared, imported: &Imported, laid: &[Laid], results: &[u8]) -> Opinion {
    let compiled = CompiledKernel::new(Arc::new(imported.kernel.clone()));
    for (launch, (tried, laid)) in prepared.tried.iter().zip(laid).enumerate() {
        let engine = match run_compiled(prepared, imported, &compiled, tried) {
            Ok(engine) => engine,
            Err(error) => {
                let (rule, why) = (rule(&error), error.to_string());
                return Opinion::Fails { launch, rule, why };
            }
        };
        for (number, array) in prepared.program.arrays.iter().enumerate() {
            let start = (laid.arena.at + laid.starts[number]) as usize;
            let gpu = &results[start..start + engine[number].len()];
            let engine = &engine[number][..];
            let differ = |at: &usize| engine[*at] != gpu[*at];
            if let Some(at) = (0..gpu.len()).find(differ) {
                let first = at / 4 * 4;
                let shown = first..(first + 16).min(gpu.len());
                return Opinion::Differs {
                    launch,
                    array: array.name.to_owned(),
                    at: at as u64,
                    bytes: (0..gpu.len()).filter(differ).count() as u64,
                    engine: engine[shown.clone()].to_vec(),
                    gpu: gpu[shown].to_vec(),
                };
            }
        }
    }
    Opinion::Same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::campaign::{Counts, prepare};
    use crate::source::{program, ptx as written};

    /// A program with launches, the entry that we write for it, and a job's data.
    fn subject(seed: u64) -> Option<(Prepared, Imported, String, Vec<Laid>, Vec<u8>)> {
        let prepared = prepare(program(seed), 3, 3, &mut Counts::default())?;
        if prepared.program.partial || prepared.program.unordered {
            return None;
        }
        let text = written(&prepared.program, false);
        let imported = ptx::import(&text, "k.ptx", None, &Facts::default()).ok()?;
        let mut data = Vec::new();
        let laid = prepared
            .tried
            .iter()
            .map(|tried| laid(&prepared, tried, &mut data));
        let laid = laid.collect();
        Some((prepared, imported, text, laid, data))
    }

    #[test]
    fn the_engine_agrees_with_the_interpreter_and_sees_a_changed_byte() {
        let mut seen = 0;
        for seed in 0..12 {
            let Some((prepared, imported, text, laid, mut results)) = subject(seed) else {
                continue;
            };
            // As if a GPU had left what the interpreter says.
            for (tried, laid) in prepared.tried.iter().zip(&laid) {
                for (number, array) in prepared.program.arrays.iter().enumerate() {
                    let bytes = bytes_of(array.element, &tried.results[number]);
                    let start = (laid.arena.at + laid.starts[number]) as usize;
                    results[start..start + bytes.len()].copy_from_slice(&bytes);
                }
            }
            let facts = Facts::default();
            let ask = |results: &[u8]| compared(&prepared, &text, &imported, &facts, &laid, results);
            assert_eq!(ask(&results), Opinion::Same, "seed {seed}");
            let written = prepared.program.arrays.iter().position(|array| array.name == "o");
            let start = (laid[1].arena.at + laid[1].starts[written.expect("it has outputs")]) as usize;
            results[start + 6] ^= 4;
            match ask(&results) {
                Opinion::Differs {
                    launch,
                    array,
                    at,
                    bytes,
                    ..
                } => {
                    assert_eq!((launch, &array[..], at, bytes), (1, "o", 6, 1));
                }
                other => panic!("seed {seed}: {other:?}"),
            }
            seen += 1;
        }
        assert!(seen > 5, "{seen}");
    }

    #[test]
    fn arrays_that_are_one_memory_have_one_place() {
        let (mut prepared, .., mut data) = subject(0).expect("it has launches");
        let (one, other) = (8, 9);
        prepared.tried[0].launch.aliases[other] = Some(one);
        let before = data.len() as u64;
        let laid = laid(&prepared, &prepared.tried[0], &mut data);
        assert_eq!(laid.starts[one], laid.starts[other]);
        assert_eq!(
            (laid.arena.at, laid.arena.at + laid.arena.bytes),
            (before, data.len() as u64)
        );
        assert_eq!(laid.arena.arguments[one], Passed::Address(laid.starts[one]));
        // Something lies in front of and behind every array.
        let first = laid.arena.at as usize;
        assert!(
            data[first..first + ALIGNED as usize]
                .iter()
                .all(|byte| *byte == BETWEEN)
        );
        assert_eq!(data.last(), Some(&BETWEEN));
    }
}
