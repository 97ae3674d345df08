//! The device that a command is about.

use headstart::back::{ptx, spirv};
use headstart::device::CacheState;
use headstart::device::cuda::gpu::{self, GpuFacts};
use headstart::device::model::{self, DeviceModel, Reached, Registers, Vendor};
use headstart::device::opencl::platform::{self, OpenClFacts};
use headstart::report::terms::Terms;
use headstart::suggest::quoted;
use headstart::tune::gpu::promised;
use headstart::tune::{Bench, MeasuredBench, OpenClBench, SeveralBench, SimulatedBench, Workload};
use headstart::{Error, Result};

use crate::output::explain;
use crate::terminal;

/// Operations of one sub-group after which a kernel counts as endless on a simulated device, unless the command line says
/// otherwise: half a minute of simulation.
const MAX_STEPS: u64 = 1 << 28;

/// A device that kernels are run on or emitted for.
pub enum Chosen {
    /// A simulated device, by its model.
    Simulated(Box<DeviceModel>),
    /// An NVIDIA GPU of this machine.
    Gpu(GpuFacts),
    /// An OpenCL device of this machine.
    OpenCl(OpenClFacts),
}

impl Chosen {
    /// The device of this name: `sim:h200`, a model file, `cuda:0` or `opencl:0`. `overrides` change numbers of a model:
    /// `dram.latency=900`.
    ///
    /// # Errors
    /// There is no such device, or it has no such number.
    pub fn find(name: &str, overrides: &[String]) -> Result<Chosen> {
        let kind = name.split_once(':').map(|(kind, _)| kind);
        if let (Some("cuda" | "opencl"), [over, ..]) = (kind, overrides) {
            return Err(Error::usage(format!(
                "`--model {over}` changes a model, and {} has none",
                quoted(name)
            ))
            .accepted("a simulated device, such as `--device sim:h200`"));
        }
        let found = match name.split_once(':') {
            Some(("sim", _)) | None => Chosen::Simulated(Box::new(model::find(name, overrides)?)),
            Some((kind @ "cuda", _)) => Chosen::Gpu(gpu::facts(ordinal(kind, name)?)?),
            Some((kind @ "opencl", _)) => Chosen::OpenCl(platform::facts(ordinal(kind, name)?)?),
            Some(_) => {
                let what = format!("there is no device {}", quoted(name));
                return Err(Error::usage(what).accepted(
                    "`sim:NAME`, `cuda:N` or `opencl:N`, as `headstart devices` lists them, or a model file",
                ));
            }
        };
        terminal::use_terms(found.terms());
        Ok(found)
    }

    /// The words of those who use such devices.
    fn terms(&self) -> Terms {
        match self {
            Chosen::Gpu(_) => Terms::Cuda,
            Chosen::OpenCl(_) => Terms::Sycl,
            Chosen::Simulated(model) => match model.vendor {
                Vendor::Nvidia => Terms::Cuda,
                Vendor::Intel => Terms::Sycl,
            },
        }
    }

    /// The device of this name; without one the first GPU, or the simulated H200 where there is none, or where numbers
    /// of a model are to be changed.
    ///
    /// # Errors
    /// There is no such device, or it has no such number.
    pub fn find_or_first(name: Option<&str>, overrides: &[String]) -> Result<Chosen> {
        match name {
            Some(name) => Chosen::find(name, overrides),
            None if overrides.is_empty() => gpu::facts(0)
                .map(Chosen::Gpu)
                .or_else(|_| Chosen::find("sim:h200", &[])),
            None => Chosen::find("sim:h200", overrides),
        }
    }

    /// As `--device` spells it.
    pub fn name(&self) -> String {
        match self {
            Chosen::Simulated(model) => model.description().name,
            Chosen::Gpu(facts) => format!("cuda:{}", facts.ordinal),
            Chosen::OpenCl(facts) => format!("opencl:{}", facts.ordinal),
        }
    }

    /// The device, ready to try plans on: each timed launch finds L2 as `cache` says. A simulated one stops a kernel after
    /// `max_steps` operations of a sub-group, or after [`MAX_STEPS`].
    ///
    /// # Errors
    /// The GPU cannot be opened, the device's L2 cannot be emptied, or steps are to be counted on a GPU.
    pub fn bench(&self, cache: CacheState, max_steps: Option<u64>) -> Result<Box<dyn Bench>> {
        let is_simulated = matches!(self, Chosen::Simulated(_));
        if let Some(steps) = max_steps.filter(|_| !is_simulated) {
            return Err(Error::usage(format!(
                "`--max-steps {steps}` is for simulated devices, and {} counts no steps",
                self.name()
            ))
            .accepted("leave it out"));
        }
        Ok(match self {
            Chosen::Simulated(model) => {
                let bench = SimulatedBench::new(DeviceModel::clone(model)).with_cache(cache);
                Box::new(bench.with_operation_limit(max_steps.unwrap_or(MAX_STEPS)))
            }
            Chosen::Gpu(facts) => {
                let program =
                    std::env::current_exe().map_err(|error| Error::device(format!("no worker: {error}")))?;
                explain(|| format!("runs: {} worker", quoted(&program.to_string_lossy())));
                // The worker starts it, for each kernel.
                if let Some(assembler) = std::env::var_os("HEADSTART_PTXAS").filter(|name| !name.is_empty()) {
                    explain(|| {
                        let options = std::env::var("HEADSTART_PTXAS_OPTIONS").unwrap_or_default();
                        format!(
                            "runs for each kernel: {} -lineinfo {options} kernel.ptx -o kernel.cubin",
                            quoted(&assembler.to_string_lossy())
                        )
                    });
                }
                let bench = MeasuredBench::start(&program, &["worker".into()], facts.ordinal)?;
                Box::new(bench.with_cache(cache)?)
            }
            Chosen::OpenCl(_) if cache != CacheState::Kept => {
                return Err(Error::usage(format!(
                    "`--l2 flushed` empties a cache, and {} has no way to",
                    self.name()
                ))
                .accepted("`--l2 kept`"));
            }
            Chosen::OpenCl(facts) => Box::new(OpenClBench::open(facts.ordinal)?),
        })
    }

    /// How many work-groups of a launch NVIDIA's compiler is told of, as when plans are measured; see
    /// [`gpu::promised`](promised).
    pub fn groups_promised(&self, workload: &Workload) -> Option<u32> {
        let (cores, registers) = match self {
            Chosen::Gpu(facts) => (facts.cores, facts.registers_per_core),
            Chosen::Simulated(model) => match &model.registers {
                Registers::Pooled(registers) => (*model.core.count, *registers.per_core),
                Registers::Fixed(_) => return None,
            },
            Chosen::OpenCl(_) => return None,
        };
        promised(cores, registers, workload)
    }

    /// For whom to emit SPIR-V; none where the device does not run it.
    pub fn spirv_target(&self) -> Option<spirv::Target> {
        match self {
            Chosen::OpenCl(facts) => Some(facts.target()),
            Chosen::Gpu(_) => None,
            Chosen::Simulated(model) => match model.vendor {
                Vendor::Nvidia => None,
                // A device without a prefetch that does anything is one of those before the Max series.
                Vendor::Intel => Some(match model.prefetch.l1.reaches {
                    Reached::Nothing => spirv::Target::IntelOlder,
                    _ => spirv::Target::IntelLsc,
                }),
            },
        }
    }

    /// The model of a simulated device.
    pub fn model(&self) -> Option<&DeviceModel> {
        match self {
            Chosen::Simulated(model) => Some(model),
            Chosen::Gpu(_) | Chosen::OpenCl(_) => None,
        }
    }

    /// What is known of an NVIDIA GPU of this machine.
    pub fn gpu(&self) -> Option<&GpuFacts> {
        match self {
            Chosen::Gpu(facts) => Some(facts),
            Chosen::Simulated(_) | Chosen::OpenCl(_) => None,
        }
    }

    /// The generation to emit PTX for; none where the device does not run it.
    pub fn ptx_target(&self) -> Option<ptx::Target> {
        match self {
            Chosen::Gpu(facts) => ptx::Target::for_capability(facts.capability),
            Chosen::OpenCl(_) => None,
            Chosen::Simulated(model) => ptx::Target::for_model(model),
        }
    }
}

/// The device of this name, ready to try plans on; `cuda:all` is every GPU of this machine. Without a name the first GPU,
/// or the simulated H200 where there is none.
///
/// # Errors
/// There is no such device, or the GPUs are of different kinds.
pub fn bench(
    name: Option<&str>,
    overrides: &[String],
    cache: CacheState,
    max_steps: Option<u64>,
) -> Result<Box<dyn Bench>> {
    if name != Some("cuda:all") {
        return Chosen::find_or_first(name, overrides)?.bench(cache, max_steps);
    }
    let start = |ordinal| Chosen::Gpu(gpu::facts(ordinal)?).bench(cache, max_steps);
    let benches: Vec<Box<dyn Bench>> = (0..gpu::count()?).map(start).collect::<Result<_>>()?;
    Ok(Box::new(SeveralBench::new(benches)?))
}

/// The model of a device that is simulated; none for others.
///
/// # Errors
/// As [`bench()`].
pub fn simulated(name: Option<&str>, overrides: &[String]) -> Result<Option<DeviceModel>> {
    if name == Some("cuda:all") {
        return Ok(None);
    }
    Ok(Chosen::find_or_first(name, overrides)?.model().cloned())
}

/// The number of a device of a kind: 0 of `cuda:0`, which is of kind `cuda`.
///
/// # Errors
/// It is none.
pub fn ordinal(kind: &str, name: &str) -> Result<usize> {
    let number = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':'));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| {
        let what = if kind == "cuda" { "GPU" } else { "device" };
        Error::usage(format!("{} is no {what}", quoted(name))).accepted(format!("`{kind}:0`"))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn the_help_names_the_limit_on_steps() {
        let mut command = Arguments::command();
        let run = command.find_subcommand_mut("run").expect("a command");
        let help = run.render_long_help().to_string();
        assert!(help.contains(&format!("[default: {MAX_STEPS}]")), "{help}");
    }
}
