//! A worker without a GPU: it answers the requests of [`cuda::worker`](crate::device::cuda::worker) with the functional engine,
//! so that comparisons, refusals and reports can be tested without a GPU.
//!
//! With `CHANCE` in its environment each launch leaves another bit wrong, as a race would. With [`LOST`] the driver is lost
//! after a while, for this worker and all that come after it.
//!
//! It runs modules that our back end writes, and others whose parameters lie without gaps. As on a GPU, only accesses
//! outside of the buffers, misaligned ones, and loops that do not end are noticed. Times are made up: each module that was
//! loaded takes a microsecond more than the one before.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::run::bind;
use crate::device::cuda::compare::{Difference, POISONS};
use crate::device::cuda::failure::{Failure, FailureKind};
use crate::device::cuda::launch::Geometry;
use crate::device::cuda::module::Compiled;
use crate::device::cuda::timing::{Timing, TimingOptions};
use crate::device::cuda::worker::{
    BindArgument, Contents, Loaded, MARK_VARIABLE, Module, Piece, Reply, Request, Whose, contents,
};
use crate::device::sim::functional::{CompiledKernel, Groups, Options, has_not_ended};
use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::front::ptx::{Facts, import};
use crate::ir::{Kernel, Type};
use crate::tune::compare::Compare;
use crate::tune::workload::{ArgumentSpec, Workload};

/// The variable of the environment that makes results depend on chance.
pub(crate) const CHANCE: &str = "HEADSTART_TEST_CHANCE";

/// The variable of the environment that names a file with a number: how many times workers answer [`Request::Time`] before the
/// driver is lost. It is counted down there.
pub const LOST: &str = "HEADSTART_TEST_LOST";

/// Answers requests until the input ends, or until a kernel has gone wrong.
///
/// # Errors
/// The parent is gone.
pub fn serve(input: impl BufRead, mut output: impl Write) -> Result<()> {
    let gone = |error: std::io::Error| Error::device(error.to_string());
    let mark = std::env::var(MARK_VARIABLE).map_err(|error| Error::usage(error.to_string()))?;
    let mut state = State {
        by_chance: std::env::var_os(CHANCE).is_some(),
        ..State::default()
    };
    for line in input.lines() {
        let request = serde_json::from_str(&line.map_err(gone)?);
        let request = request.map_err(|error| Error::bug(error.to_string()))?;
        if let Some(left) = std::env::var_os(LOST)
            && is_lost(Path::new(&left), &request)?
        {
            // As a process ends whose driver crashes: without an answer.
            return Err(Error::device("the driver was reset"));
        }
        let reply = state.answer(request).unwrap_or_else(Reply::Failed);
        let text = serde_json::to_string(&reply).map_err(|error| Error::bug(error.to_string()))?;
        writeln!(output, "\n{mark}{text}")
            .and_then(|()| output.flush())
            .map_err(gone)?;
        if matches!(&reply, Reply::Failed(failure) if failure.kind.poisons()) {
            break;
        }
    }
    Ok(())
}

/// Whether the driver is lost when a request comes: `left` counts the times that are still to be given.
fn is_lost(left: &Path, request: &Request) -> Result<bool> {
    let wrong = |error: String| Error::usage(format!("{}: {error}", left.display()));
    let text = std::fs::read_to_string(left).map_err(|error| wrong(error.to_string()))?;
    let times: u32 = text
        .trim()
        .parse()
        .map_err(|error: std::num::ParseIntError| wrong(error.to_string()))?;
    if let (Request::Time { .. }, Some(fewer)) = (request, times.checked_sub(1)) {
        std::fs::write(left, fewer.to_string()).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(times == 0)
}

#[derive(Default)]
struct State {
    arguments: Vec<BindArgument>,
    modules: HashMap<String, (Arc<Kernel>, Geometry, u32)>,
    loaded: u32,
    launches: usize,
    poison: u8,
    by_chance: bool,
    /// What outputs hold after the last launch, and after the one that is kept, with the poison before it.
    last: Vec<Vec<u8>>,
    reference: Vec<Vec<u8>>,
}

impl State {
    fn answer(&mut self, request: Request) -> Result<Reply, Failure> {
        Ok(match request {
            Request::Open { device } => {
                let mut facts = super::h200();
                facts.ordinal = device;
                Reply::Opened(facts)
            }
            Request::Bind { arguments, .. } => {
                self.arguments = arguments;
                Reply::Bound
            }
            Request::Load { modules } => {
                Reply::Loaded(modules.into_iter().map(|module| self.load(module)).collect())
            }
            Request::Assemble { ptx, code } => {
                std::fs::write(code, ptx).map_err(|error| request_failed(&error.to_string()))?;
                Reply::Assembled
            }
            Request::Compile { times, .. } => Reply::Compiled(vec![Duration::from_millis(1); times as usize]),
            Request::Expect { .. } => Reply::Expected,
            Request::Check { module, outputs, .. } => {
                self.launch(&module, POISONS[0])?;
                for (bytes, file) in self.last.iter().zip(&outputs) {
                    std::fs::write(file, bytes).map_err(|error| request_failed(&error.to_string()))?;
                }
                Reply::Checked {
                    elapsed_ns: self.time_ns(&module),
                    as_expected: Vec::new(),
                }
            }
            Request::Refer { module, .. } => {
                let wrote = self.launch(&module, POISONS[0])?;
                self.reference.clone_from(&self.last);
                self.launch(&module, POISONS[1])?;
                let other_poison = self.differences(POISONS[1]);
                let differ = other_poison.iter().any(|difference| !difference.is_none());
                if differ {
                    self.launch(&module, POISONS[0])?;
                }
                Reply::Referred {
                    elapsed_ns: self.time_ns(&module),
                    wrote,
                    other_poison,
                    same_poison: differ.then(|| self.differences(POISONS[0])),
                    guarded: true,
                }
            }
            Request::Again { module, .. } => {
                self.launch_on(&module, self.poison, true)?;
                Reply::Verified {
                    elapsed_ns: self.time_ns(&module),
                    wrote: Vec::new(),
                    differences: self.differences(self.poison),
                }
            }
            Request::Verify { module, poison, .. } => {
                let wrote = self.launch(&module, POISONS[poison])?;
                Reply::Verified {
                    elapsed_ns: self.time_ns(&module),
                    wrote,
                    differences: self.differences(POISONS[poison]),
                }
            }
            Request::Fetch { whose, pieces, file } => {
                let outputs = match whose {
                    Whose::Reference => &self.reference,
                    Whose::Last => &self.last,
                };
                let of = |piece: &Piece| {
                    let range = piece.offset as usize..(piece.offset + piece.bytes) as usize;
                    outputs[piece.output][range].to_vec()
                };
                let bytes: Vec<u8> = pieces.iter().flat_map(of).collect();
                std::fs::write(file, bytes).map_err(|error| request_failed(&error.to_string()))?;
                Reply::Fetched
            }
            Request::Time {
                candidates, options, ..
            } => {
                let timing = |name: &String| self.timing(name, options);
                Reply::Timed(candidates.iter().filter_map(timing).collect())
            }
            Request::Unload { modules } => {
                for name in modules {
                    self.modules.remove(&name);
                }
                Reply::Unloaded
            }
        })
    }

    fn load(&mut self, module: Module) -> Result<Loaded, Failure> {
        let imported = import(&module.ptx, "module.ptx", Some(&module.entry), &Facts::default());
        let imported = imported.map_err(|error| Failure::new(FailureKind::Compilation, error.to_string()))?;
        self.loaded += 1;
        let entry = (Arc::new(imported.kernel), module.geometry, self.loaded);
        self.modules.insert(module.name, entry);
        Ok(Loaded {
            compiled: Compiled {
                registers: 32,
                local_bytes: 0,
                static_shared_bytes: 0,
                max_group: 1024,
                load_time: Duration::from_millis(1),
                log: String::new(),
            },
            groups_per_core: 8,
        })
    }

    fn time_ns(&self, module: &str) -> f64 {
        self.modules
            .get(module)
            .map_or(0.0, |(_, _, number)| 1e3 * f64::from(*number))
    }

    fn timing(&self, module: &str, options: TimingOptions) -> Option<Timing> {
        Timing::of(vec![self.time_ns(module); options.rounds as usize], options.cache)
    }

    /// Runs a module on fresh buffers: the inputs that it wrote, by their place among the arguments.
    fn launch(&mut self, module: &str, poison: u8) -> Result<Vec<usize>, Failure> {
        self.launch_on(module, poison, false)
    }

    /// The same, on what the last launch left if `again`.
    fn launch_on(&mut self, module: &str, poison: u8, again: bool) -> Result<Vec<usize>, Failure> {
        self.poison = poison;
        let (kernel, geometry, _) = self
            .modules
            .get(module)
            .ok_or_else(|| request_failed(&format!("no module `{module}` is loaded")))?;
        let mut given = Vec::new();
        for (index, argument) in self.arguments.iter().enumerate() {
            match (argument, kernel.params.get(given.len())) {
                (BindArgument::Scalar(bytes), Some(param)) => {
                    let mut bits = [0; 8];
                    bits[..bytes.len()].copy_from_slice(bytes);
                    given.push((
                        index,
                        ArgumentSpec::Scalar(kernel.ty(param.value), u64::from_le_bytes(bits)),
                    ));
                }
                (BindArgument::Buffer { .. }, Some(_)) => given.push((index, buffer(argument, poison)?)),
                // A module's variables are parameters of what is run here.
                (BindArgument::Variable { .. }, _) => {}
                (BindArgument::Placed { .. }, _) => {
                    return Err(request_failed("this worker has no addresses"));
                }
                (BindArgument::Part { of, bytes }, Some(_)) => {
                    let found = given.iter().position(|(argument, _)| argument == of);
                    let size = match found.map(|of| &given[of].1) {
                        Some(ArgumentSpec::Input { element, .. } | ArgumentSpec::Output { element, .. }) => {
                            element.bytes()
                        }
                        _ => {
                            return Err(request_failed(
                                "a pointer into something other than a buffer before it",
                            ));
                        }
                    };
                    let of = found.unwrap_or(0);
                    let start = bytes / u64::from(size);
                    given.push((index, ArgumentSpec::Part { of, start }));
                }
                (_, None) => return Err(request_failed("there are more arguments than parameters")),
            }
        }
        let (places, mut given): (Vec<usize>, Vec<ArgumentSpec>) = given.into_iter().unzip();
        let is_output = |given: &&mut ArgumentSpec| matches!(given, ArgumentSpec::Output { .. });
        for (given, left) in given.iter_mut().filter(is_output).zip(&self.last) {
            if let (ArgumentSpec::Output { fill, .. }, true) = (given, again) {
                *fill = Fill::Bytes(Arc::from(left.as_slice()));
            }
        }
        let workload = Workload {
            kernel: Arc::clone(kernel),
            groups: geometry.groups,
            group: geometry.group,
            given,
            original: None,
            placed: None,
            divides: None,
        };
        let failed = |error: Error| request_failed(&error.to_string());
        let (launch, memories) = bind(&workload).map_err(failed)?;
        let (_, before) = bind(&workload).map_err(failed)?;
        let size = kernel.sub_group_size.unwrap_or(32);
        let compiled = CompiledKernel::new(Arc::clone(kernel));
        let ran = compiled.run(&launch, size, Options::FAST, &Groups::All);
        ran.map_err(|error| match has_not_ended(&error) {
            true => Failure::new(FailureKind::TimeLimit, "the kernel still ran after 10.0 s"),
            false => Failure::new(FailureKind::Fault, "running the kernel failed: an illegal access"),
        })?;
        self.last.clear();
        let mut wrote = Vec::new();
        let buffers = places
            .iter()
            .zip(&workload.given)
            .filter(|(_, given)| !matches!(given, ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. }));
        for (((&place, given), memory), before) in buffers.zip(memories).zip(before) {
            let bytes = |memory: &crate::device::sim::functional::BufferMemory| {
                let mut bytes = vec![0; memory.bytes() as usize];
                memory.copy_out(0, &mut bytes).map_err(failed)?;
                Ok(bytes)
            };
            let bytes_after = bytes(&memory)?;
            match given {
                ArgumentSpec::Output { .. } => self.last.push(bytes_after),
                _ if bytes_after != bytes(&before)? => wrote.push(place),
                _ => {}
            }
        }
        self.launches += 1;
        if let Some(output) = self.last.last_mut().filter(|_| self.by_chance) {
            let count = output.len().max(1);
            // In another word each time.
            if let Some(byte) = output.get_mut(self.launches * 41 % count) {
                *byte ^= 1;
            }
        }
        Ok(wrote)
    }

    /// How each output of the last launch differs from what is kept.
    fn differences(&self, poison: u8) -> Vec<Difference> {
        let outputs = self.arguments.iter().filter_map(|argument| match argument {
            BindArgument::Buffer {
                output: true, fill, ..
            } => Some(*fill == Contents::Uninitialized),
            _ => None,
        });
        let both = self.last.iter().zip(&self.reference).zip(outputs);
        both.map(|((found, right), is_poisoned)| {
            let differs = |&(_, (&found, &right)): &(usize, (&u8, &u8))| {
                found != right && !(is_poisoned && found == poison && right == POISONS[0])
            };
            let differing = found.iter().zip(right).enumerate().filter(differs);
            let mut places: Vec<usize> = differing.map(|(place, _)| place).collect();
            let first = places.first().copied().unwrap_or_default() as u64;
            places.iter_mut().for_each(|place| *place /= 4);
            places.dedup();
            Difference {
                words: places.len() as u64,
                first,
            }
        })
        .collect()
    }
}

/// A buffer as it is before a launch.
fn buffer(argument: &BindArgument, poison: u8) -> Result<ArgumentSpec, Failure> {
    let BindArgument::Buffer {
        element,
        length,
        fill,
        output,
        ..
    } = argument
    else {
        return Err(request_failed("a scalar is not a buffer"));
    };
    let element = Type::parse(element).ok_or_else(|| request_failed("unknown type"))?;
    let fill = match fill {
        Contents::Uninitialized => Fill::Pattern(Pattern::Constant(
            u64::from_le_bytes([poison; 8]) & element.mask(),
        )),
        given => contents(given)?,
    };
    Ok(match output {
        true => ArgumentSpec::output(element, *length, fill, Compare::Bits),
        false => ArgumentSpec::input(element, *length, fill),
    })
}

fn request_failed(what: &str) -> Failure {
    Failure::new(FailureKind::Request, what)
}
