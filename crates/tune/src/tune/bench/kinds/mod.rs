//! The registry of device kinds: how each is named, found and opened, and its capabilities.
//!
//! | folder | is written | plans are |
//! |---|---|---|
//! | `cuda` | `cuda:N` | measured, in a process of its own |
//! | `opencl` | `opencl:N` | measured |
//! | `simulated` | `sim:NAME`, or a model file | simulated |
//!
//! A kind is a folder here with its [`Bench`], its [`KnownDevice`] and its [`DeviceKind`], and a row in [`KINDS`]. Everything else
//! queries the registry: the command line, the list of devices, and the tuning of a launch at hand.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "opencl")]
pub mod opencl;
pub mod simulated;

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::several::SeveralBench;
use crate::back::{ptx, spirv};
#[cfg(feature = "cuda")]
use crate::device::cuda::gpu::GpuFacts;
#[cfg(feature = "opencl")]
use crate::device::opencl::platform::OpenClFacts;
use crate::device::sim::Stop;
use crate::device::{CacheState, Description, Device};
use crate::error::{Error, Result};
use crate::ir::CacheLevel;
use crate::model::DeviceModel;
use crate::report::terms::Terms;
use crate::suggest::quoted;
use crate::tune::bench::Bench;
use crate::tune::subject::workload::Workload;

/// The kinds, in the order in which their devices are listed.
pub const KINDS: &[DeviceKind] = &[
    #[cfg(feature = "cuda")]
    cuda::KIND,
    #[cfg(feature = "opencl")]
    opencl::KIND,
    simulated::KIND,
];

/// The devices that are taken where none is named: the first that is there.
const DEFAULTS: [&str; 2] = ["cuda:0", "sim:h200"];

/// The number that stands for all devices of a kind.
const ALL: &str = "all";

/// A kind of device.
#[derive(Debug)]
pub struct DeviceKind {
    /// The prefix of its devices' names, before the colon.
    pub name: &'static str,
    /// The device behind it, in general.
    pub number: &'static str,
    /// Whether plans are tried in processes of their own.
    pub has_worker: bool,
    /// The device whose name has this behind the colon, with numbers of its model changed.
    find: fn(&str, &[String]) -> Result<Box<dyn KnownDevice>>,
    /// Those that are here; none where no driver is.
    here: fn() -> Result<Vec<Box<dyn KnownDevice>>>,
}

/// How a device is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The contents of L2 at the start of a timed launch.
    pub cache: CacheState,
    /// Operations of one sub-group after which a kernel counts as endless, where they are counted.
    pub max_steps: Option<u64>,
    /// What ends simulated runs early.
    pub stop: Option<&'static Stop>,
    /// The program that serves a worker's requests, and its arguments.
    pub worker: (PathBuf, Vec<OsString>),
}

impl Default for Opening {
    /// With the `headstart` command as the worker.
    fn default() -> Opening {
        Opening {
            cache: CacheState::default(),
            max_steps: None,
            stop: None,
            worker: ("headstart".into(), vec!["worker".into()]),
        }
    }
}

/// The effect of a prefetch to a level.
#[derive(Clone, Debug)]
pub struct Reaches {
    /// The level that is asked for.
    pub asked: CacheLevel,
    /// The cache that is reached, where one is known to be.
    pub reached: Option<String>,
    /// The instruction.
    pub by: &'static str,
    /// How that is known, or why it is so, and which of the two it says.
    pub because: Option<(&'static str, String)>,
}

/// The fact of [`KnownDevice::facts`] that says whether copies from global to shared memory pass by the registers. Elsewhere a copy
/// becomes a load and a store.
#[doc(hidden)]
pub const ASYNCHRONOUS_COPIES: &str = "asynchronous_copies";

/// A device that is known by its name, and not opened.
pub trait KnownDevice: Send + Sync {
    /// Its description, including its name on the command line.
    fn description(&self) -> Description;

    /// Whose words its users speak.
    fn terms(&self) -> Terms;

    /// Further facts about it, by name, for lists of devices.
    fn facts(&self) -> Map<String, Value>;

    /// The effect of prefetches to each level.
    fn reaches(&self) -> Vec<Reaches>;

    /// Opens it, ready to try plans on.
    ///
    /// # Errors
    /// It cannot be opened, or not in this way.
    fn bench(&self, opening: &Opening) -> Result<Box<dyn Bench>>;

    /// The model, where it is a simulated one.
    fn model(&self) -> Option<&DeviceModel> {
        None
    }

    /// Its driver's description, if it is an NVIDIA GPU.
    #[cfg(feature = "cuda")]
    fn gpu(&self) -> Option<&GpuFacts> {
        None
    }

    /// Its runtime's description, if it is an OpenCL device.
    #[cfg(feature = "opencl")]
    fn opencl(&self) -> Option<&OpenClFacts> {
        None
    }

    /// The generation to emit PTX for, where it runs PTX.
    fn ptx_target(&self) -> Option<ptx::PtxTarget> {
        None
    }

    /// The target to emit SPIR-V for, where it runs SPIR-V.
    fn spirv_target(&self) -> Option<spirv::SpirvTarget> {
        None
    }

    /// Which block loads and stores its compiler takes, where it runs SPIR-V.
    fn block_access(&self) -> spirv::BlockAccess {
        spirv::BlockAccess::default()
    }

    /// How many work-groups of a launch NVIDIA's compiler gets as a hint, as when plans are measured; see
    /// `Workload::groups_promised`.
    fn groups_promised(&self, workload: &Workload) -> Option<u32> {
        let _ = workload;
        None
    }
}

impl dyn KnownDevice + '_ {
    /// As the command line spells it.
    pub fn name(&self) -> String {
        self.description().name
    }
}

/// The device of this name: `cuda:0`, `opencl:0`, `sim:h200`, or a model file. `overrides` change numbers of a model:
/// `dram.latency=900`.
///
/// # Errors
/// There is no such device, or its model has no such number.
pub fn find(name: &str, overrides: &[String]) -> Result<Box<dyn KnownDevice>> {
    match name.split_once(':') {
        None => (simulated::KIND.find)(name, overrides),
        Some((kind, number)) => (kind_of(kind, name)?.find)(number, overrides),
    }
}

fn kind_of(kind: &str, name: &str) -> Result<&'static DeviceKind> {
    KINDS.iter().find(|known| known.name == kind).ok_or_else(|| {
        let spelled: Vec<String> = KINDS
            .iter()
            .map(|kind| format!("`{}:{}`", kind.name, kind.number))
            .collect();
        Error::usage(format!("there is no device {}", quoted(name))).accepted(format!(
            "{}, as `headstart devices` lists them, or a model file",
            spelled.join(", ")
        ))
    })
}

/// The device of this name; without one the first GPU, or the simulated H200 if there is none, or if numbers of a model are to
/// be changed.
///
/// # Errors
/// As [`find`].
pub fn find_or_first(name: Option<&str>, overrides: &[String]) -> Result<Box<dyn KnownDevice>> {
    let [gpu, simulated] = DEFAULTS;
    match name {
        Some(name) => find(name, overrides),
        None if overrides.is_empty() => find(gpu, &[]).or_else(|_| find(simulated, &[])),
        None => find(simulated, overrides),
    }
}

/// The kind, where a name means all devices of one: `cuda:all`.
pub fn all_of(name: &str) -> Option<&'static DeviceKind> {
    let (kind, number) = name.split_once(':')?;
    (number == ALL).then(|| KINDS.iter().find(|known| known.name == kind))?
}

impl DeviceKind {
    /// Its devices in this machine; none where there is no driver.
    ///
    /// # Errors
    /// A device does not report its properties.
    pub fn here(&self) -> Result<Vec<Box<dyn KnownDevice>>> {
        (self.here)()
    }

    /// All of them, ready to try plans on at once.
    ///
    /// # Errors
    /// There is none, one cannot be opened, or they differ.
    pub fn bench(&self, opening: &Opening) -> Result<Box<dyn Bench>> {
        let benches = self.here()?.into_iter().map(|device| device.bench(opening));
        Ok(Box::new(SeveralBench::new(benches.collect::<Result<_>>()?)?))
    }

    /// The number of one of its devices.
    fn ordinal(&self, number: &str, what: &str) -> Result<usize> {
        number.parse().map_err(|_| {
            let name = format!("{}:{number}", self.name);
            Error::usage(format!("{} is not {what}", quoted(&name))).accepted(format!("`{}:0`", self.name))
        })
    }

    /// # Errors
    /// A number of a model is to be changed, which its devices have none of.
    fn has_no_model(&self, number: &str, overrides: &[String]) -> Result<()> {
        match overrides {
            [] => Ok(()),
            [over, ..] => Err(Error::usage(format!(
                "`--model {over}` changes a model, and {} has none",
                quoted(&format!("{}:{number}", self.name))
            ))
            .accepted("a simulated device, such as `--device sim:h200`")),
        }
    }
}

/// The devices of a kind that numbers them.
#[cfg(any(feature = "cuda", feature = "opencl"))]
fn numbered<D: KnownDevice + 'static>(
    count: usize,
    facts: impl Fn(usize) -> Result<D>,
) -> Result<Vec<Box<dyn KnownDevice>>> {
    let known = |number| Ok(Box::new(facts(number)?) as Box<dyn KnownDevice>);
    (0..count).map(known).collect()
}

/// Facts by name.
fn named<const N: usize>(facts: [(&str, Value); N]) -> Map<String, Value> {
    let facts = facts.into_iter();
    facts.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// # Errors
/// Steps are to be counted on a device that counts none.
fn counts_no_steps(name: &str, opening: &Opening) -> Result<()> {
    match opening.max_steps {
        None => Ok(()),
        Some(steps) => Err(Error::usage(format!(
            "`--max-steps {steps}` is for simulated devices, and {name} counts no steps"
        ))
        .accepted("leave it out")),
    }
}

/// The bench for an open device, by its name: a model for a simulated one, the device itself for others.
///
/// Plans for a GPU are tried in processes of their own, which the `headstart` command serves.
///
/// # Errors
/// The device has no times, or its bench cannot be opened.
pub fn bench_for(device: &dyn Device) -> Result<Box<dyn Bench>> {
    let name = &device.description().name;
    match name.split_once(':') {
        Some((kind, _)) if KINDS.iter().any(|known| known.name == kind) => {
            find(name, &[])?.bench(&Opening::default())
        }
        _ => Err(Error::usage(format!(
            "{} tells no times, so no plan can be chosen on it",
            quoted(name)
        ))
        .accepted("`Simulator::new(\"h200\")`, a GPU, or `tuned_launch_with` with a bench")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::sim::Simulator;

    #[test]
    fn a_device_with_changed_numbers_is_found_again_by_its_name() {
        let changed = find("sim:h200", &["dram.latency=900".into()]).expect("a model");
        let again = find(&changed.name(), &["l1.latency=50".into()]).expect("the same");
        assert_eq!(
            again.name(),
            "sim:h200 --model dram.latency=900 --model l1.latency=50"
        );
        let simulator = Simulator::new("h200").expect("a model");
        let bench = bench_for(&simulator).expect("simulated");
        assert_eq!(bench.device().description().name, "sim:h200");
    }

    #[test]
    fn names_of_no_device_are_refused_with_what_there_is() {
        let refused = |name: &str, overrides: &[String]| match find(name, overrides) {
            Ok(_) => panic!("{name} was found"),
            Err(error) => error.to_string(),
        };
        let unknown = refused("vulkan:0", &[]);
        for kind in KINDS {
            assert!(
                unknown.contains(&format!("`{}:{}`", kind.name, kind.number)),
                "{unknown}"
            );
        }
        assert!(refused("cuda:first", &[]).contains("`cuda:first` is not a GPU"));
        assert!(refused("opencl:0", &["dram.latency=900".into()]).contains("has none"));
        let untimed = bench_for(&Simulator::untimed())
            .err()
            .expect("no times")
            .to_string();
        assert!(untimed.contains("tells no times"), "{untimed}");
        assert!(all_of("cuda:all").is_some_and(|kind| kind.name == "cuda"));
        assert!(all_of("cuda:0").is_none() && all_of("vulkan:all").is_none());
    }
}
