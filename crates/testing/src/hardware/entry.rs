//! An entry on its way: given plans, run by a GPU and by the functional engine, compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::device::cuda::failure::{Failure, FailureKind};
use crate::device::cuda::launch::Geometry;
use crate::device::cuda::worker::{self, Checked, Module, OutputContents, Worker};
use crate::device::sim::functional::{CompiledKernel, Groups, Options};
use crate::device::{Argument, Fill};
use crate::error::{Error, Fault, Result};
use crate::front::ptx::{self, Facts, Imported, Origin};
use crate::ir::{Fused, Kernel, OpKind};
use crate::prefetch::{Plan, PlanTarget, apply};
use crate::source::campaign::{OPERATIONS, Prepared, SUB_GROUP, rule};
use crate::source::launches::{Launch, LaunchOutcome, bytes_of};
use crate::source::tree::Program;
use crate::tune::drop_in;
use crate::{Random, random_plan, random_plan_of_any};

/// Plans that are drawn until enough of them are legal.
const DRAWN: usize = 30;
/// Shared memory of a work-group that each launch may have.
const SHARED_BYTES: u64 = 48 << 10;
/// Choices of open sums that are tried.
const CHOICES: usize = 16;
/// How long a launch may take.
const LIMIT: Duration = Duration::from_secs(10);

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
    let target = PlanTarget::of([group, 1, 1]);
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

/// What an array holds after each launch, array by array.
pub(crate) type Results = Vec<Vec<Vec<u8>>>;

/// What came of a launch of a plan's module on the GPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ran {
    /// The bits that the entry leaves.
    Same,
    /// Others.
    Differs {
        /// Where.
        place: Place,
        /// The entry, run again, leaves the same as before.
        steady: bool,
    },
    /// The driver refuses the launch, and goes on.
    Refused,
    /// It faults, or does not end.
    Lost(String),
}

/// What a GPU makes of an entry and of its plans.
#[derive(Debug, Default)]
pub(crate) struct OnGpu {
    /// What the entry leaves under each launch; fewer where a launch failed.
    pub results: Results,
    /// Why the entry did not run, and in which launch.
    pub failed: Option<(usize, Failure)>,
    /// Plans that the driver's compiler refuses, and the reason.
    pub refused: Vec<(usize, Failure)>,
    /// The outcome of each plan's launches, by the plan's number.
    pub plans: Vec<(usize, Vec<Ran>)>,
}

/// Runs an entry and its plans under all its launches. What faults is not launched again.
///
/// # Errors
/// There is no GPU any more.
pub(crate) fn on_gpu(
    worker: &mut Worker,
    prepared: &Prepared,
    texts: &[&str],
) -> std::result::Result<OnGpu, Failure> {
    let program = &prepared.program;
    let module = |(number, text): (usize, &&str)| Module {
        name: number.to_string(),
        ptx: (*text).to_owned(),
        entry: program.name(),
        geometry: Geometry {
            groups: [program.groups, 1, 1],
            group: [program.group, 1, 1],
            dynamic_shared_bytes: 0,
            cooperative: false,
        },
        code: None,
    };
    let loaded = worker.load(texts.iter().enumerate().map(module).collect())?;
    let mut found = OnGpu::default();
    for (number, loaded) in loaded.into_iter().enumerate() {
        match (number, loaded) {
            (0, Ok(_)) => {}
            (0, Err(failure)) => found.failed = Some((0, failure)),
            (_, Ok(_)) => found.plans.push((number - 1, Vec::new())),
            (_, Err(failure)) => found.refused.push((number - 1, failure)),
        }
    }
    for (launch, tried) in prepared.tried.iter().enumerate() {
        if found.failed.is_none()
            && let Err(failure) = launched(worker, prepared, tried, &mut found)
        {
            found.failed = Some((launch, failure));
        }
    }
    let names: Vec<String> = (0..texts.len()).map(|number| number.to_string()).collect();
    worker.unload(&names)?;
    Ok(found)
}

/// One launch of the entry, and of each plan that has not faulted.
fn launched(
    worker: &mut Worker,
    prepared: &Prepared,
    tried: &LaunchOutcome,
    found: &mut OnGpu,
) -> std::result::Result<(), Failure> {
    let (program, launch) = (&prepared.program, &tried.launch);
    let arrays = || program.arrays.iter().enumerate();
    let fill = |contents: Vec<u8>| Fill::Bytes(contents.into());
    let fills: Vec<Fill> = arrays()
        .map(|(number, array)| fill(bytes_of(array.element, &launch.contents[number])))
        .collect();
    let pointers = arrays().map(|(number, array)| match launch.buffer(number) {
        // Inputs, too, are read back: nothing may write them.
        own if own == number => worker::Argument::Buffer {
            element: array.element.ir(),
            length: array.length,
            fill: &fills[number],
            output: true,
            align: 256,
            is_passed: true,
        },
        of => worker::Argument::Part { of, bytes: 0 },
    });
    let scalars = program.scalars.iter().zip(&launch.scalars);
    let scalars = scalars.map(|(scalar, &bits)| worker::Argument::Scalar(scalar.ty.ir(), bits));
    worker.bind_guarded(&pointers.chain(scalars).collect::<Vec<_>>())?;
    let wanted = bytes_left(worker.check("0", LIMIT, None)?, &[]);
    let expected = Arc::new(wanted.clone());
    for (number, ran) in &mut found.plans {
        if matches!(ran.last(), Some(Ran::Lost(_))) {
            continue;
        }
        ran.push(
            match worker.check(&(*number + 1).to_string(), LIMIT, Some(&expected)) {
                Err(failure) if failure.kind == FailureKind::Resources => Ran::Refused,
                Err(failure) => Ran::Lost(failure.what),
                Ok(checked) => match differing(program, launch, &bytes_left(checked, &wanted), &wanted) {
                    None => Ran::Same,
                    Some(place) => {
                        let again = worker.check("0", LIMIT, Some(&expected))?;
                        let steady = bytes_left(again, &wanted) == wanted;
                        Ran::Differs { place, steady }
                    }
                },
            },
        );
    }
    found.results.push(
        arrays()
            .map(|(number, _)| wanted[place_of(launch, number)].clone())
            .collect(),
    );
    Ok(())
}

/// The outputs' bytes; `wanted` has those of outputs that are as expected.
fn bytes_left(checked: Checked, wanted: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let bytes = checked.outputs.into_iter().enumerate();
    bytes
        .map(|(number, output)| match output {
            OutputContents::Bytes(bytes) => bytes,
            OutputContents::Expected => wanted[number].clone(),
        })
        .collect()
}

/// Which of the buffers is an array's.
fn place_of(launch: &Launch, array: usize) -> usize {
    let buffer = launch.buffer(array);
    (0..buffer)
        .filter(|&earlier| launch.buffer(earlier) == earlier)
        .count()
}

/// Where bytes differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// In which array.
    pub array: String,
    /// The first byte of it that differs.
    pub at: usize,
    /// How many bytes of it do.
    pub bytes: usize,
    /// Bytes from there on, as they are.
    pub found: Vec<u8>,
    /// As they should be.
    pub wanted: Vec<u8>,
}

impl Place {
    fn of(array: &str, found: &[u8], wanted: &[u8]) -> Option<Place> {
        let differ = |at: &usize| found[*at] != wanted[*at];
        let at = (0..found.len()).find(differ)?;
        let first = at / 4 * 4;
        let shown = first..(first + 16).min(found.len());
        Some(Place {
            array: array.to_owned(),
            at,
            bytes: (0..found.len()).filter(differ).count(),
            found: found[shown.clone()].to_vec(),
            wanted: wanted[shown].to_vec(),
        })
    }
}

fn differing(program: &Program, launch: &Launch, found: &[Vec<u8>], wanted: &[Vec<u8>]) -> Option<Place> {
    program.arrays.iter().enumerate().find_map(|(number, array)| {
        let buffer = place_of(launch, number);
        Place::of(array.name, &found[buffer], &wanted[buffer])
    })
}

/// What the functional engine says of a kernel under a launch: the bytes of each array that is written, none of others.
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
pub(crate) fn ran(prepared: &Prepared, imported: &Imported) -> Option<Results> {
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
        /// Where; the engine's bytes are those that were found.
        place: Place,
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

/// Compares what the GPU left in the arrays, launch by launch, with the functional engine's results.
pub(crate) fn compared(
    prepared: &Prepared,
    module: &str,
    imported: &Imported,
    facts: &Facts,
    results: &Results,
) -> Opinion {
    let open = &imported.original.open_sums;
    if open.is_empty() {
        return with(prepared, imported, results);
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
            Ok(imported) => with(prepared, &imported, results),
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

fn with(prepared: &Prepared, imported: &Imported, results: &Results) -> Opinion {
    let compiled = CompiledKernel::new(Arc::new(imported.kernel.clone()));
    for (launch, (tried, gpu)) in prepared.tried.iter().zip(results).enumerate() {
        let engine = match run_compiled(prepared, imported, &compiled, tried) {
            Ok(engine) => engine,
            Err(error) => {
                let (rule, why) = (rule(&error), error.to_string());
                return Opinion::Fails { launch, rule, why };
            }
        };
        let arrays = prepared.program.arrays.iter().zip(engine.iter().zip(gpu));
        let mut places = arrays.map(|(array, (engine, gpu))| Place::of(array.name, engine, gpu));
        if let Some(place) = places.find_map(|place| place) {
            return Opinion::Differs { launch, place };
        }
    }
    Opinion::Same
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::campaign::{Counts, prepare, written};
    use crate::source::{Style, program, translate};

    /// A program with launches, and the entry that we write for it.
    fn subject(seed: u64) -> Option<(Prepared, Imported, String)> {
        let prepared = prepare(program(seed), 3, 3, &mut Counts::default())?;
        if prepared.program.partial || prepared.program.unordered || prepared.program.waits {
            return None;
        }
        let kernel = translate(
            &prepared.program,
            &prepared.known,
            Style::random(&mut Random::new(seed)),
        );
        let text = kernel.and_then(|kernel| written(&kernel)).ok()?;
        let imported = ptx::import(&text, "k.ptx", None, &Facts::default()).ok()?;
        Some((prepared, imported, text))
    }

    /// The worker of these tests: this program again, with this test alone, and the engine in place of a GPU.
    #[test]
    fn worker_process() {
        if std::env::var_os(worker::MARK_VARIABLE).is_some() {
            let served = crate::worker::serve(std::io::stdin().lock(), std::io::stdout());
            served.expect("the parent listens");
        }
    }

    fn started() -> Worker {
        let this = std::env::current_exe().expect("a test has a path");
        let test = format!(
            "{}::worker_process",
            module_path!().split_once("::").expect("a crate").1
        );
        let words = [&test[..], "--exact", "--nocapture", "--test-threads=1"].map(Into::into);
        Worker::start(Path::new(&this), &words, 0).expect("it needs nothing")
    }

    #[test]
    fn a_gpu_s_bits_are_the_interpreter_s_and_another_module_s_are_noticed() {
        let mut worker = started();
        let (mut seen, mut differ) = (0, 0);
        for seed in 0..12 {
            let Some((prepared, imported, text)) = subject(seed) else {
                continue;
            };
            // A plan that changes what is written, and one that is no kernel.
            let wrong = text.replacen("add.s32", "sub.s32", 1);
            let found =
                on_gpu(&mut worker, &prepared, &[&text, &text, &wrong, "no module"]).expect("it goes on");
            assert!(found.failed.is_none(), "seed {seed}: {:?}", found.failed);
            assert_eq!(found.refused[0].0, 2);
            for (tried, left) in prepared.tried.iter().zip(&found.results) {
                for (number, array) in prepared.program.arrays.iter().enumerate() {
                    assert_eq!(
                        left[number],
                        bytes_of(array.element, &tried.results[number]),
                        "seed {seed}"
                    );
                }
            }
            assert_eq!(found.plans[0].1, [Ran::Same, Ran::Same, Ran::Same]);
            let is_other = |ran: &Ran| matches!(ran, Ran::Differs { steady: true, .. } | Ran::Lost(_));
            differ += usize::from(found.plans[1].1.iter().any(is_other));
            let facts = Facts::default();
            let ask = |results: &Results| compared(&prepared, &text, &imported, &facts, results);
            assert_eq!(ask(&found.results), Opinion::Same, "seed {seed}");
            let mut results = found.results;
            let written = prepared.program.arrays.iter().position(|array| array.name == "o");
            results[1][written.expect("it has outputs")][6] ^= 4;
            match ask(&results) {
                Opinion::Differs { launch, place } => {
                    assert_eq!((launch, &place.array[..], place.at, place.bytes), (1, "o", 6, 1));
                }
                other => panic!("seed {seed}: {other:?}"),
            }
            seen += 1;
        }
        assert!(seen > 3 && differ > 1, "{seen}, {differ}");
    }
}
