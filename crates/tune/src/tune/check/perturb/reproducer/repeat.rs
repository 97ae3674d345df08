//! A reproducer, run again.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::super::agree::Agreement;
use super::super::launch::{Place, Variant};
use super::super::plain::{Compiled, Engine, Unfit};
use super::*;
use crate::device::sim::functional::CompiledKernel;
use crate::error::Result;
use crate::report;
use crate::suggest::quoted;
use crate::tune::launch::file::LaunchFile;

/// Runs both kernels of a reproducer's folder again; gives the difference, or none if there is none any more.
///
/// # Errors
/// The folder is no reproducer, or the plain kernel goes wrong on its launch.
pub(in super::super) fn repeat(folder: &Path, engine: &Engine) -> Result<Option<String>> {
    let shown = quoted(&folder.to_string_lossy());
    let unreadable =
        |error: &dyn std::fmt::Display| Error::usage(format!("{shown} is not a reproducer: {error}"));
    let text = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| unreadable(&error));
    let about: About = serde_json::from_str(&text("about.json")?).map_err(|error| unreadable(&error))?;
    let read = |name: &str| -> Result<Arc<Kernel>> {
        let kernel = ir::read(&text(name)?, name)?;
        ir::verify(&kernel).map_err(|error| error.at(name))?;
        Ok(Arc::new(kernel))
    };
    let (plain, planned) = (read("plain.hsir")?, read("planned.hsir")?);
    let launch = LaunchFile::read(&folder.join("launch.toml"))?;
    let workload = launch.workload(&plain)?;
    let mut variant = Variant::of(&workload, &about.what, u32::MAX);
    variant.groups = workload.groups;
    let position = |name: &str| plain.params.iter().position(|param| param.name == name);
    for (own, other) in &about.shared {
        let (Some(own), Some(other)) = (position(own), position(other)) else {
            return Err(unreadable(&"it names parameters that its kernel has not"));
        };
        if let Some(contents) = variant.buffer_mut(own) {
            contents.same_as = (other < own).then_some(other);
        }
    }
    for (name, start) in &about.starts {
        let contents = position(name).and_then(|position| variant.buffer_mut(position));
        let contents = contents.ok_or_else(|| unreadable(&"it names parameters that its kernel has not"))?;
        contents.start = *start;
    }
    for (name, bits) in about.given {
        let own =
            position(&name).ok_or_else(|| unreadable(&"it names parameters that its kernel has not"))?;
        let argument = match plain.ty(plain.params[own].value) {
            ty if ty.is_pointer() => Argument::Address(bits),
            ty => Argument::Scalar(ty, bits),
        };
        variant.parts[own] = Part::Given(argument);
    }
    for (address, name, file) in about.memory {
        let bytes = fs::read(folder.join(file)).map_err(|error| unreadable(&error))?;
        let name = name.into();
        variant.parts.push(Part::Buffer(Contents {
            element: Type::I8,
            length: bytes.len() as u64,
            fill: Fill::Bytes(bytes.into()),
            compare: Some(Compare::Bits),
            same_as: None,
            start: 0,
            place: Some(Place { address, name }),
            pointers: None,
        }));
    }
    let compiled = Compiled::new(&plain);
    let kept = engine.run_plain(&compiled, variant).0;
    let kept = kept.map_err(|unfit| match unfit {
        Unfit::Dropped(rule) | Unfit::Innocent(rule, _) => Error::input(format!(
            "{shown}: this is no launch of its plain kernel: {}",
            report::broken_rule(rule)
        )),
        Unfit::Misread(error) => error.about(&shown),
    })?;
    match engine.compare(&CompiledKernel::new(planned), &kept)? {
        Agreement::Same => Ok(None),
        Agreement::NotForIt => Err(unreadable(&"its planned kernel is for other work-groups")),
        Agreement::Different(error) => Ok(Some(error.to_string())),
    }
}
