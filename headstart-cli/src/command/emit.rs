//! `headstart emit`: print a kernel, with a plan carried out or as it is.

use std::path::Path;

use headstart::back::{ptx, spirv};
use headstart::capture::Contraction;
use headstart::device::CacheState;
use headstart::prefetch::Plan;
use headstart::tune::check::{AtFullSize, Checks};
use headstart::tune::{self, perturb::Engine};
use headstart::{Error, Result, ir};

use crate::arguments::{Emit, EmitTarget};
use crate::kernel::{self, Module, Places};
use headstart_cli::device;
use headstart_cli::output::Destination;

/// Runs the command.
pub fn run(options: &Emit) -> Result<()> {
    let plan: Plan = options.plan.parse()?;
    let kernel_options = &options.kernel;
    let mut captured = kernel::captured(kernel_options)?;
    let mut subject = kernel::find_with(kernel_options, captured.as_ref(), Places::Kept)?;
    let name = match (&options.device, options.target) {
        (Some(device), _) => device,
        (None, EmitTarget::Spirv) => "sim:pvc-1550",
        (None, EmitTarget::Ir | EmitTarget::Ptx | EmitTarget::Machine) => "sim:h200",
    };
    let device = device::find(name, &options.model)?;
    let destination = Destination::check("--output", options.output.as_deref().unwrap_or(Path::new("-")))?;
    kernel::spare(kernel_options, &[("--output", Some(&destination))])?;
    let workload = subject.workload()?;
    let bench = device::open(&*device, CacheState::default(), None)?;
    let bench = bench.as_ref();
    let mut workload = workload;
    // What a captured launch left says which sums its machine code fused: the kernel that is written does the same.
    if let Some(captured) = captured.as_mut().filter(|captured| captured.has_run) {
        captured.contraction = tune::contraction(captured, Some(bench), None).unwrap_or_default();
        if let Contraction::Decided(_) | Contraction::Compared(_) = captured.contraction {
            subject = Box::new(tune::captured_subject(captured.clone())?);
            workload = subject.workload()?;
        }
    }
    let plain = tune::plain(bench, &workload)?;
    // The plan may have to be held to fewer registers.
    let (kernel, plan) = match tune::derive(bench, &workload, &plain, &plan) {
        Ok(derived) => (derived.kernel, derived.plan),
        // The output keeps the places of its source; a refusal names those of the text.
        Err(refusal) => {
            let workload = kernel::find(&options.kernel, Places::Filled)?.workload()?;
            let plain = tune::plain(bench, &workload)?;
            return Err(tune::derive(bench, &workload, &plain, &plan)
                .err()
                .unwrap_or(refusal));
        }
    };
    let module = match (options.target, &captured) {
        (EmitTarget::Ptx, Some(captured)) => Some(Module::of_captured(captured)?),
        (EmitTarget::Ptx, None) => Module::of(kernel_options)?,
        _ => None,
    };
    if options.unchecked && module.is_none() {
        return Err(Error::usage("`--unchecked` is for plans of PTX modules")
            .accepted("FILE.ptx:entry or FILE.cu:entry with `--target ptx`"));
    }
    // An exported kernel has to be correct for other launches, too. A module's entry is checked where it is rewritten.
    let settings = options.check.settings();
    let engine = Engine::of(bench, &workload);
    if !options.unchecked {
        tune::perturb::check_wishes(subject.as_ref(), &plain, engine.clone(), settings)?;
    }
    if !plan.is_none() && !options.unchecked {
        let at_full_size = AtFullSize::Sample { seed: settings.seed };
        let checks = Checks::with(subject.as_ref(), &plain, bench.device(), [&plan], at_full_size)?;
        checks.check(&plan, &kernel)?;
        if module.is_none() {
            tune::perturb::check(subject.as_ref(), &plain, engine, &plan, &kernel, settings)?;
        }
    }
    let text = match options.target {
        EmitTarget::Ir => ir::print(&kernel),
        EmitTarget::Ptx => {
            let target = device.ptx_target().ok_or_else(|| {
                Error::device(format!("{} does not run PTX", device.name()))
                    .accepted("`--target ir`, or an NVIDIA device")
            })?;
            let how = ptx::Options {
                group: Some(workload.group),
                groups_per_core: options
                    .groups_per_core
                    .or_else(|| device.groups_promised(&workload)),
                ..ptx::Options::new(target)
            };
            match module {
                // A module is written as a module.
                Some(module) => module.planned(&plan, (!options.unchecked).then_some(settings))?,
                None => ptx::emit(&kernel, &how)?.text,
            }
        }
        EmitTarget::Spirv => {
            let target = device.spirv_target().ok_or_else(|| {
                Error::device(format!("{} does not run SPIR-V", device.name()))
                    .accepted("`--target ir`, or an Intel or OpenCL device")
            })?;
            if let Some(module) = kernel::spirv_module(kernel_options)? {
                // A module is written as a module.
                let is_file = !matches!(destination, Destination::Standard);
                if !is_file {
                    return Err(
                        Error::usage("a module of SPIR-V is written as words").accepted("`-o FILE.spv`")
                    );
                }
                let planned = module.planned(&plan, target, settings)?;
                return destination.write_bytes(&planned.bytes());
            }
            let how = spirv::Options {
                block_access: device.block_access(),
                ..spirv::Options::new(target)
            };
            let emitted = spirv::emit(&kernel, &how)?;
            let is_binary = |path: &Path| path.extension().is_some_and(|extension| extension == "spv");
            if options.output.as_deref().is_some_and(is_binary) {
                return destination.write_bytes(&emitted.bytes());
            }
            emitted.text
        }
        EmitTarget::Machine => {
            let model = device.model().ok_or_else(|| {
                Error::device(format!("{} has its own instruction set", device.name()))
                    .accepted("`--target ptx`, or a simulated device")
            })?;
            let lowered = workload.lowered(&kernel, model)?;
            format!("// For a model of the {}.\n{lowered}", model.modelled())
        }
    };
    destination.write(&text)
}
