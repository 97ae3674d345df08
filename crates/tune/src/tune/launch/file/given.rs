//! The arguments of a kernel's parameters in a launch file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::parameter::{Output, OutputName, Parameter};
use super::{DEFAULT_LENGTH, Extent, LaunchFile};
use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::front::ptx::{Origin, Original};
use crate::front::spirv;
use crate::ir::{Kernel, Param, Races, Type};
use crate::names;
use crate::suggest::{accepted, quoted};
use crate::tune::check::compare::Compare;
use crate::tune::launch::fills::{self, FillName, Sources};
use crate::tune::launch::scalars::{default_bits, scalar_bits_as};
use crate::tune::subject::workload::{ArgumentSpec, Workload};

/// Work-groups where no launch file says how many.
const DEFAULT_GROUPS: u32 = 4;
/// Work-items of a work-group where neither kernel nor launch file says how many.
const DEFAULT_GROUP: u32 = 128;

impl LaunchFile {
    /// The kernel with this file's arguments. Defaults: 4 work-groups of the size that the kernel requires, or of 128; buffers
    /// of 2²⁰ elements, of which read-only ones hold fractions from 1 to 2 or integers below 2²⁰ (below 2ⁿ⁻¹ if their elements
    /// have only n bits), and the others are outputs, initially zero; integers of 1024, floats of 1. An output whose length the
    /// file gives is initially empty.
    ///
    /// # Errors
    /// The file names parameters that the kernel does not have, or gives them unsuitable arguments.
    pub fn workload(&self, kernel: &Arc<Kernel>) -> Result<Workload> {
        self.workload_in(kernel, None)
    }

    /// The same for a kernel that was read from this module, with the module's contents of its variables.
    ///
    /// # Errors
    /// As for [`LaunchFile::workload`].
    pub(crate) fn workload_in(
        &self,
        kernel: &Arc<Kernel>,
        original: Option<&Arc<Original>>,
    ) -> Result<Workload> {
        let variable = |number: usize| match original?.parameters.get(number)? {
            Origin::Variable { bytes, declared, .. } => Some((bytes.clone(), *declared)),
            Origin::Parameter { .. } | Origin::Structure { .. } | Origin::Workspace => None,
        };
        let fields = original.map_or(&[][..], |original| &original.fields);
        let named = self.as_the_kernel_names(kernel, fields);
        let mut workload = Workload {
            original: original.cloned(),
            ..named.workload_with(kernel, &[], variable)?
        };
        // A GPU's driver has its own.
        let origins = original.into_iter().flat_map(|original| &original.parameters);
        for (given, origin) in workload.given.iter_mut().zip(origins) {
            if let (ArgumentSpec::Output { compare, .. }, Origin::Workspace) = (given, origin) {
                *compare = Compare::Any;
            }
        }
        Ok(workload)
    }

    /// The file with the kernel's names of the parameters that it calls as the source does: `args.scale` for `param_0_16`.
    fn as_the_kernel_names(&self, kernel: &Kernel, fields: &[Option<String>]) -> Cow<'_, LaunchFile> {
        let names = || kernel.params.iter().map(|param| &param.name);
        let is_own = |name: &str| names().any(|own| own == name);
        let own: BTreeMap<&str, &str> = names()
            .zip(fields)
            .filter_map(|(own, field)| Some((field.as_deref().filter(|field| !is_own(field))?, own.as_str())))
            .collect();
        let named = |name: &String| {
            own.get(name.as_str())
                .map_or(name.clone(), |own| (*own).to_owned())
        };
        let is_named_so = |parameter: &Parameter| {
            let others = [&parameter.buffer, &parameter.end_of, &parameter.of];
            let mut others = others.into_iter().flatten();
            others.any(|name| own.contains_key(name.as_str()))
        };
        let mut all = self.parameters.iter();
        if !all.any(|(name, parameter)| own.contains_key(name.as_str()) || is_named_so(parameter)) {
            return Cow::Borrowed(self);
        }
        let parameters = self.parameters.iter().map(|(name, parameter)| {
            let parameter = Parameter {
                buffer: parameter.buffer.as_ref().map(named),
                end_of: parameter.end_of.as_ref().map(named),
                of: parameter.of.as_ref().map(named),
                ..parameter.clone()
            };
            (named(name), parameter)
        });
        Cow::Owned(LaunchFile {
            parameters: parameters.collect(),
            ..self.clone()
        })
    }

    /// The same for a kernel that was read from a module of SPIR-V: memory of the work-group that the launch gives it has a
    /// length here, too.
    ///
    /// # Errors
    /// As for [`LaunchFile::workload`].
    pub(crate) fn workload_of(&self, kernel: &Arc<Kernel>, original: &spirv::Original) -> Result<Workload> {
        let arrays: Vec<&str> = original.arrays.iter().map(|(name, _)| name.as_str()).collect();
        let variable = |number: usize| match original.parameters.get(number)? {
            spirv::Origin::Variable { bytes, declared, .. } => Some((bytes.clone(), Some(*declared))),
            spirv::Origin::Parameter(_) | spirv::Origin::Part(..) => None,
        };
        self.workload_with(kernel, &arrays, variable)
    }

    fn workload_with(
        &self,
        kernel: &Arc<Kernel>,
        arrays: &[&str],
        variable: impl Fn(usize) -> Option<(Option<Arc<[u8]>>, Option<u64>)>,
    ) -> Result<Workload> {
        let names = || kernel.params.iter().map(|param| param.name.as_str());
        for name in self.parameters.keys() {
            if !names().chain(arrays.iter().copied()).any(|param| param == name) {
                return Err(Error::usage(format!(
                    "{} has no parameter {}",
                    quoted(&names::shown(&kernel.name)),
                    quoted(name)
                ))
                .accepted(accepted(name, "parameters", names())));
            }
        }
        let given = kernel.params.iter().enumerate().map(|(number, param)| {
            if let Some(captured) = &self.captured {
                let given = captured.given(kernel, param);
                return given.map_err(|error| error.at(format!("parameter `{}`", param.name)));
            }
            let described = self.parameters.get(&param.name).cloned().unwrap_or_default();
            let at = |error: Error| error.at(format!("parameter `{}`", param.name));
            if let Some(pointer) = self.pointer(kernel, param, &described).map_err(at)? {
                return Ok(pointer);
            }
            match variable(number) {
                Some((bytes, declared)) => self.variable(kernel, param, &described, bytes.as_ref(), declared),
                None => self.given(kernel, param, &described),
            }
            .map_err(|error| error.at(format!("parameter `{}`", param.name)))
        });
        let mut given: Vec<ArgumentSpec> = given.collect::<Result<_>>()?;
        let placed = match &self.captured {
            Some(captured) => captured.placed(),
            None => self.point(kernel, &mut given)?,
        };
        Ok(Workload {
            kernel: Arc::clone(kernel),
            groups: self.groups.map_or([DEFAULT_GROUPS, 1, 1], Extent::dimensions),
            group: match self.group {
                Some(group) => group.dimensions(),
                None => kernel.group_size.unwrap_or([DEFAULT_GROUP, 1, 1]),
            },
            given,
            original: None,
            placed,
            divides: None,
        })
    }

    /// What fills refer to.
    pub(super) fn sources(&self) -> Sources<'_> {
        Sources {
            folder: &self.folder,
            graphs: &self.graphs,
            tables: &self.tables,
        }
    }

    /// The contents of a module's variable: from the launch file, or else from the module, or else zeros. One that may be
    /// longer in another module has the launch file's length, or else its declared one.
    fn variable(
        &self,
        kernel: &Kernel,
        param: &Param,
        described: &Parameter,
        bytes: Option<&Arc<[u8]>>,
        declared: Option<u64>,
    ) -> Result<ArgumentSpec> {
        let facts = param
            .facts
            .ok_or_else(|| Error::bug("a variable that is not a buffer"))?;
        let length = facts.length.and_then(|length| kernel.as_constant(length));
        if length.is_some() && described.length.is_some() && described.length != length {
            return Err(Error::usage("how long a variable is the module says"));
        }
        let least = declared.map(|bytes| bytes / u64::from(facts.element.bytes()).max(1));
        let is_filled = described.fill.is_some() || described.file.is_some();
        let described = Parameter {
            length: length.or(described.length).or(least),
            fill: described
                .fill
                .or_else(|| described.file.is_none().then_some(FillName::Zero)),
            ..described.clone()
        };
        let mut given = self.given(kernel, param, &described)?;
        if let (ArgumentSpec::Input { fill, .. } | ArgumentSpec::Output { fill, .. }, Some(bytes), false) =
            (&mut given, bytes, is_filled)
        {
            *fill = Fill::Bytes(Arc::clone(bytes));
        }
        Ok(given)
    }

    fn given(&self, kernel: &Kernel, param: &Param, described: &Parameter) -> Result<ArgumentSpec> {
        let ty = kernel.ty(param.value);
        if !ty.is_pointer() {
            let buffer_only = described.length.is_some()
                || described.fill.is_some()
                || described.file.is_some()
                || described.output.is_some();
            if buffer_only && ty == Type::I64 && !is_used(kernel, param) {
                // The source may call it a pointer: nothing follows it.
                return Ok(ArgumentSpec::Scalar(ty, 0));
            }
            if buffer_only {
                return Err(Error::usage(format!("it is a scalar `{ty}`")).accepted("`value = …`"));
            }
            return match (described.value, self.length_for(kernel, param)) {
                (Some(value), _) => {
                    let bits = scalar_bits_as(ty, described.element.as_deref(), value)?;
                    Ok(ArgumentSpec::Scalar(ty, bits))
                }
                (None, Some(length)) => Ok(ArgumentSpec::Scalar(ty, length)),
                (None, None) => Ok(ArgumentSpec::Scalar(ty, default_bits(ty))),
            };
        }
        if described.value.is_some() {
            return Err(Error::usage("it is a buffer").accepted("`length = …`, with `fill` or `output`"));
        }
        let element = param.facts.map_or(Type::I32, |facts| facts.element);
        let said = described.counted()?.unwrap_or(element);
        let counted = described.length.unwrap_or(DEFAULT_LENGTH);
        let length = as_elements(counted, described, element)?;
        let read_only = param.facts.is_some_and(|facts| facts.read_only);
        let contents = fills::said(&self.sources(), said, counted, described)?;
        let fill = match (contents, read_only && described.output.is_none()) {
            (Some(fill), _) => fill,
            (None, true) if said.is_float() => Fill::Pattern(Pattern::Fractions { low: 1.0 }),
            (None, true) => Fill::Pattern(fills::indices(said, described)?),
            // Who says how long an output is means all of it to be written.
            (None, false) if described.length.is_some() => Fill::Uninitialized,
            (None, false) => Fill::Pattern(Pattern::Constant(0)),
        };
        let fill = if said == element {
            fill
        } else {
            fills::packed(fill, said, element)
        };
        let compare = match described.output {
            Some(Output::Relative(share)) if (0.0..1.0).contains(&share) => Compare::Relative(share),
            Some(Output::Relative(share)) => {
                return Err(
                    Error::usage(format!("{share} is not a tolerance")).accepted("a number from 0 to 1")
                );
            }
            Some(Output::Named(OutputName::Multiset)) => Compare::Multiset,
            Some(Output::Named(OutputName::Any)) => Compare::Any,
            Some(Output::Named(OutputName::Bits)) => Compare::Bits,
            None if param.facts.is_some_and(|facts| facts.races == Races::Any) => Compare::Any,
            None => Compare::Bits,
        };
        if read_only && described.output.is_none() {
            Ok(ArgumentSpec::input(element, length, fill))
        } else {
            Ok(ArgumentSpec::output(element, length, fill, compare))
        }
    }

    /// The pointer that a parameter gets instead of a buffer of its own, if it is to get one.
    fn pointer(&self, kernel: &Kernel, param: &Param, described: &Parameter) -> Result<Option<ArgumentSpec>> {
        let ty = kernel.ty(param.value);
        let ways = [
            described.null == Some(true),
            described.buffer.is_some(),
            described.end_of.is_some(),
        ];
        let asked = ways.iter().filter(|&&asked| asked).count();
        if described.offset.is_some() && described.buffer.is_none() {
            return Err(Error::usage("`offset` goes with `buffer = \"NAME\"`"));
        }
        if asked == 0 {
            return Ok(None);
        }
        let has_own = described.value.is_some() || described.fill.is_some() || described.file.is_some();
        if asked > 1 || has_own {
            return Err(Error::usage("a pointer that is to lead to several places")
                .accepted("one of `null = true`, `buffer = …`, `end_of = …`, or contents of its own"));
        }
        if !ty.is_pointer() && ty != Type::I64 {
            return Err(Error::usage(format!("it is a scalar `{ty}`")).accepted("`value = …`"));
        }
        if described.null == Some(true) {
            return Ok(Some(ArgumentSpec::Scalar(ty, 0)));
        }
        let name = described.buffer.as_ref().or(described.end_of.as_ref());
        let name = name.map(String::as_str).unwrap_or_default();
        let is_buffer = |other: &Param| kernel.ty(other.value).is_pointer() && !std::ptr::eq(other, param);
        let others = || kernel.params.iter().filter(|other| is_buffer(other));
        let of = kernel
            .params
            .iter()
            .position(|other| other.name == name && is_buffer(other))
            .ok_or_else(|| {
                let names = others().map(|other| other.name.as_str());
                Error::usage(format!("{} is not another buffer of the kernel", quoted(name)))
                    .accepted(accepted(name, "buffers", names))
            })?;
        let whole = self.parameters.get(name).cloned().unwrap_or_default();
        if whole.null == Some(true) || whole.buffer.is_some() || whole.end_of.is_some() {
            return Err(Error::usage(format!("{} has no memory", quoted(name)))
                .accepted("the parameter whose memory it is"));
        }
        let length = whole.length.unwrap_or(DEFAULT_LENGTH);
        let start = match described.end_of {
            Some(_) => length,
            None => described.offset.unwrap_or(0),
        };
        if start > length {
            return Err(
                Error::usage(format!("{} has only {length} elements", quoted(name)))
                    .accepted(format!("an offset of at most {length}")),
            );
        }
        let element = kernel.params[of].facts.map_or(Type::I32, |facts| facts.element);
        let start = as_elements(start, &whole, element)?;
        Ok(Some(ArgumentSpec::Part { of, start }))
    }

    /// The length of the buffer whose length this parameter is.
    /// What the file leaves open of a launch of a kernel, in a sentence; none if that is nothing. `is_variable` says which
    /// parameters the module itself gives.
    pub(in crate::tune) fn left_open(
        &self,
        kernel: &Kernel,
        is_variable: impl Fn(usize) -> bool,
    ) -> Option<String> {
        if self.captured.is_some() {
            return None;
        }
        let is_known = |param: &Param| {
            let length = param.facts.and_then(|facts| facts.length);
            self.parameters.contains_key(&param.name)
                || length.is_some_and(|length| kernel.as_constant(length).is_some())
                || self.length_for(kernel, param).is_some()
        };
        let open = kernel.params.iter().enumerate();
        let open = open.filter(|(number, param)| !is_variable(*number) && !is_known(param));
        let open = open.map(|(_, param)| quoted(&param.name));
        let geometry = self
            .groups
            .is_none()
            .then(|| format!("`groups` ({DEFAULT_GROUPS})"));
        let open: Vec<String> = geometry.into_iter().chain(open).collect();
        (!open.is_empty()).then(|| {
            format!(
                "The launch file says nothing of {}: that is made up.",
                open.join(", ")
            )
        })
    }

    fn length_for(&self, kernel: &Kernel, param: &Param) -> Option<u64> {
        let buffer = kernel.params.iter().find(|buffer| {
            buffer
                .facts
                .is_some_and(|facts| facts.length == Some(param.value))
        })?;
        let element = buffer.facts.map_or(Type::I32, |facts| facts.element);
        let described = self.parameters.get(&buffer.name);
        let length = described.and_then(|described| {
            let length = described.length?;
            as_elements(length, described, element).ok()
        });
        Some(length.unwrap_or(DEFAULT_LENGTH))
    }
}

/// Whether the kernel uses a parameter at all.
pub(in crate::tune) fn is_used(kernel: &Kernel, param: &Param) -> bool {
    let mut is_used = false;
    kernel.body.walk(&mut |op| {
        op.kind.for_each_operand(|value| is_used |= value == param.value);
    });
    is_used
}

/// The number of elements that the launch file counts, in the kernel's elements.
fn as_elements(count: u64, described: &Parameter, element: Type) -> Result<u64> {
    let said = described.counted()?.unwrap_or(element);
    let bytes = u128::from(count) * u128::from(said.bytes());
    let whole = u128::from(element.bytes()).max(1);
    match bytes % whole {
        0 => Ok(u64::try_from(bytes / whole).unwrap_or(u64::MAX)),
        _ => Err(Error::usage(format!(
            "{count} elements `{said}` are no whole number of `{element}`"
        ))
        .accepted(format!("a multiple: the kernel reads `{element}`"))),
    }
}
