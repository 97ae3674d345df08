//! Tables of pointers: `fill = "pointers"`, and the memory that they lead to, which lies at addresses of our choosing.

use std::sync::Arc;

use super::{DEFAULT_LENGTH, FillName, LaunchFile, Parameter};
use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::ir::{Kernel, Type};
use crate::suggest::{accepted, quoted};
use crate::tune::launch::fills;
use crate::tune::subject::workload::{ArgumentSpec, Placed, PlacedMemory};

/// Where that memory begins, and how far each is from the next: no access beyond one lands in another.
const FIRST: u64 = 1 << 40;
const APART: u64 = 1 << 36;
/// Most bytes of one: they are kept on the host, too.
const MOST_BYTES: u64 = 1 << 32;

impl LaunchFile {
    /// Gives tables of pointers their contents, and what they lead to its place; nothing where there are none.
    pub(super) fn point(&self, kernel: &Kernel, given: &mut [ArgumentSpec]) -> Result<Option<Arc<Placed>>> {
        let mut placed = Placed {
            memory: Vec::new(),
            pointers: vec![None; kernel.params.len()],
        };
        for (number, param) in kernel.params.iter().enumerate() {
            let Some(described) = self.parameters.get(&param.name) else {
                continue;
            };
            let is_table = described.fill == Some(FillName::Pointers);
            let at = |error: Error| error.at(format!("parameter `{}`", param.name));
            if !is_table && (described.of.is_some() || described.stride.is_some()) {
                return Err(at(Error::usage(
                    "`of` and `stride` go with `fill = \"pointers\"`",
                )));
            }
            if is_table {
                let fill = self
                    .table(kernel, described, given, number, &mut placed)
                    .map_err(at)?;
                if let ArgumentSpec::Input { fill: own, .. } | ArgumentSpec::Output { fill: own, .. } =
                    &mut given[number]
                {
                    *own = fill;
                }
            }
        }
        Ok((!placed.memory.is_empty()).then(|| Arc::new(placed)))
    }

    /// The contents of one table.
    fn table(
        &self,
        kernel: &Kernel,
        described: &Parameter,
        given: &[ArgumentSpec],
        number: usize,
        placed: &mut Placed,
    ) -> Result<Fill> {
        let Some((element, length, _)) = given[number].contents() else {
            return Err(Error::bug("a table that is no buffer"));
        };
        if element != Type::I64 {
            return Err(Error::usage(format!("elements `{element}` are no pointers")).accepted("`i64`"));
        }
        let params = || kernel.params.iter().map(|param| param.name.as_str());
        let itself = kernel.params[number].name.as_str();
        let others = || params().filter(|own| *own != itself);
        let names = || self.buffers.keys().map(String::as_str).chain(others());
        let name = described.of.as_deref().ok_or_else(|| {
            Error::usage("the pointers lead nowhere")
                .accepted("`of = \"NAME\"`, of a [buffers.NAME] or a parameter")
        })?;
        let target = params().position(|own| own == name && own != itself);
        let reached = target.and_then(|target| given[target].contents());
        let (to, own, reached) = match (self.buffers.get(name), reached) {
            (Some(buffer), _) => {
                let to = buffer.counted()?.unwrap_or(Type::F32);
                let own = buffer.length.unwrap_or(DEFAULT_LENGTH);
                let fill = fills::said(&self.sources(), to, own, buffer)?;
                let usual = || match to.is_float() {
                    true => Ok(Pattern::Fractions { low: 1.0 }),
                    false => fills::indices(to, buffer),
                };
                (to, own, fill.map_or_else(|| usual().map(Fill::Pattern), Ok)?)
            }
            (None, Some((element, length, fill)))
                if self
                    .parameters
                    .get(name)
                    .is_none_or(|own| own.fill != Some(FillName::Pointers)) =>
            {
                (element, length, fill.clone())
            }
            _ => {
                return Err(
                    Error::usage(format!("{} is no memory that pointers can lead to", quoted(name)))
                        .accepted(accepted(name, "buffers", names())),
                );
            }
        };
        let stride = described.stride.unwrap_or(own / length.max(1));
        let last = length.saturating_sub(1).checked_mul(stride);
        if last.is_none_or(|last| last >= own) {
            return Err(Error::usage(format!(
                "{length} pointers, {stride} elements apart, lead beyond {}, which has {own}",
                quoted(name)
            ))
            .accepted(format!(
                "a `stride` of at most {}",
                own.saturating_sub(1) / length.saturating_sub(1).max(1)
            )));
        }
        let known = placed.memory.iter().find(|memory| memory.name == name);
        let address = match known {
            Some(memory) => memory.address,
            None => {
                let address = FIRST + APART * placed.memory.len() as u64;
                placed.memory.push(PlacedMemory {
                    name: name.to_owned(),
                    address,
                    bytes: bytes(reached, to, own)?,
                });
                address
            }
        };
        if let Some(target) = target.filter(|_| !self.buffers.contains_key(name)) {
            placed.pointers[target] = Some(address);
        }
        Ok(Fill::Pattern(Pattern::Steps {
            first: address,
            step: stride.saturating_mul(u64::from(to.bytes())),
        }))
    }
}

/// A buffer's bytes.
fn bytes(fill: Fill, element: Type, length: u64) -> Result<Arc<[u8]>> {
    let size = fill.check(element, length)?;
    if size > MOST_BYTES {
        return Err(
            Error::usage(format!("pointers to {size} bytes")).accepted(format!("at most {MOST_BYTES}"))
        );
    }
    Ok(match fill {
        Fill::Bytes(bytes) => bytes,
        Fill::Uninitialized => vec![0; size as usize].into(),
        Fill::Pattern(pattern) => {
            let own = element.bytes() as usize;
            let elements = (0..length).map(|index| pattern.bits(element, index).to_le_bytes());
            elements.flat_map(|bits| bits.into_iter().take(own)).collect()
        }
    })
}
