//! Instructions that are carried as text: those that can be run are, the others stop the launch by name.
//!
//! Tensor cores are [`matrix`](super::matrix)'s, products of warp groups [`group`](super::matrix::group)'s, operations on 16
//! bytes [`quads`](super::quads)', conversions of short floats [`short_float`](super::short_float)'s, and barriers with phases,
//! with the bulk copies that complete on them, [`phases`](super::phases)'. Instructions that only take time, or order accesses
//! that are in order here, do nothing. Clocks count how often they are read. `vprintf` prints, and `__assertfail` is an error of
//! the kernel, as the program says. Other bulk copies and textures are not run.

use super::access::Location;
use super::address::from_generic;
use super::fault::{self, Access};
use super::lanes::{Registers, Slot};
use super::matrix::group::{WgmmaInstruction, array_of};
use super::matrix::{Matrix, Piece, Run};
use super::phases::PhaseStep;
use super::quads::Quad;
use super::short_float::ShortFloat;
use super::work_group::{Runners, WorkGroup};
use crate::ir::conversion::Conversion;
use crate::ir::{Kernel, Opaque, Place, Space, Touches, Type, Value};
use crate::violation::Violation;
use crate::{Error, Result};

/// The parts of an instruction that the engine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Changes nothing that a program computes with; results are 0.
    Nothing,
    /// What the work-item wrote to shared memory becomes known to products of warp groups.
    ProxyFence,
    /// A number that grows.
    Clock,
    /// Whether a generic address leads into this space.
    Leads(Space),
    /// The driver's `vprintf`.
    Print,
    /// The driver's `__assertfail`.
    Assert,
    /// A conversion of short floats.
    Converts(ShortFloat),
}

/// A carried instruction, with the engine's knowledge of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    what: Opaque,
    known: Option<Known>,
    /// The tensor-core instruction that it is.
    matrix: Option<Matrix>,
    /// The operation on 16 bytes that it is.
    quad: Option<Quad>,
    /// The instruction of a warp group that it is.
    group: Option<WgmmaInstruction>,
    /// The instruction of a barrier with phases that it is.
    phase: Option<PhaseStep>,
}

impl Carried {
    /// The memory that a move of a matrix touches, and whether it writes there; none of other instructions.
    pub(crate) fn moves(&self) -> Option<(Space, bool)> {
        self.matrix.as_ref().and_then(Matrix::moves)
    }

    /// The accesses of a move of a matrix, as a sub-group makes them one after the other.
    pub(crate) fn pieces(&self, values: &[(Type, Slot)], registers: &Registers) -> Vec<Piece> {
        let matrix = self.matrix.as_ref();
        matrix.map_or(Vec::new(), |matrix| matrix.pieces(values, registers))
    }

    /// The operation on 16 bytes that it is.
    pub(crate) fn quad(&self) -> Option<&Quad> {
        self.quad.as_ref()
    }

    /// The instruction of a warp group that it is.
    pub(super) fn group_step(&self) -> Option<&WgmmaInstruction> {
        self.group.as_ref()
    }

    /// How many groups of products it leaves in flight, if it waits for the others.
    pub(crate) fn waits_for_products(&self) -> Option<u32> {
        match self.group {
            Some(WgmmaInstruction::Wait(left)) => u32::try_from(left).ok(),
            _ => None,
        }
    }

    /// Reads an instruction of a kernel that takes these operands.
    pub(crate) fn new(kernel: &Kernel, what: &Opaque, given: &[Value]) -> Carried {
        let operands = given.len();
        let array = |operand: usize| array_of(kernel, *given.get(operand)?);
        Carried {
            what: what.clone(),
            known: known(what),
            matrix: Matrix::read(&what.text, what.makes.len(), operands),
            quad: Quad::read(&what.text, what.makes.len(), operands),
            group: WgmmaInstruction::read(&what.text, what.makes.len(), operands, array),
            phase: PhaseStep::read(&what.text),
        }
    }
}

/// Instructions that change nothing that is seen here, by their beginnings.
const NOTHING: &[&str] = &[
    "nanosleep",
    "setmaxnreg",
    "fence.proxy",
    "fence.mbarrier_init",
    "createpolicy",
    "prefetchu",
    "discard",
    "applypriority",
    "pmevent",
    "cp.async.bulk.prefetch",
];

/// The smallest access of an instruction to shared memory, in bytes; none if it makes none, and `None` if that is unknown.
pub(super) fn smallest_access(what: &Opaque) -> Option<Option<u32>> {
    let name = what.name();
    match name.strip_prefix("wgmma.") {
        Some(step) => Some(step.starts_with("mma_async").then_some(16)),
        None if what.touches == Touches::Nothing => Some(None),
        None => match PhaseStep::read(&what.text) {
            Some(step) => Some(step.smallest_access()),
            None => matches!(known(what), Some(Known::Nothing | Known::ProxyFence)).then_some(None),
        },
    }
}

fn known(what: &Opaque) -> Option<Known> {
    let name = what.name();
    if name.starts_with("fence.proxy.async") && !name.contains(".global") {
        return Some(Known::ProxyFence);
    }
    if NOTHING.iter().any(|start| name.starts_with(start)) {
        return Some(Known::Nothing);
    }
    Some(match name {
        "vprintf" => Known::Print,
        "__assertfail" => Known::Assert,
        "isspacep.global" => Known::Leads(Space::Global),
        "isspacep.shared" | "isspacep.shared::cta" => Known::Leads(Space::Shared),
        "isspacep.local" => Known::Leads(Space::Private),
        _ if ["%clock", "%globaltimer", "%smid"]
            .iter()
            .any(|register| what.text.contains(register)) =>
        {
            Known::Clock
        }
        _ => Known::Converts(ShortFloat::read(name)?),
    })
}

/// Most bytes of a text that a kernel gives to the driver.
const MOST_TEXT: u64 = 4096;

impl WorkGroup<'_> {
    /// Runs an instruction that is carried.
    ///
    /// # Errors
    /// It cannot be run here, or says that the kernel is wrong.
    pub(super) fn opaque(
        &mut self,
        carried: &Carried,
        run: &Run<'_>,
        registers: &mut Registers,
    ) -> Result<()> {
        let Run {
            to,
            values,
            by:
                Runners {
                    sub_group,
                    mask,
                    place,
                },
        } = *run;
        let what = &carried.what;
        if let Some(matrix) = &carried.matrix {
            return self.matrix(matrix, run, registers);
        }
        if let Some(step) = &carried.group {
            return self.group_step(step, run, registers);
        }
        if let Some(quad) = &carried.quad {
            return self.quad(quad, run, registers);
        }
        if let Some(step) = &carried.phase {
            return self.phase_step(step, run, registers);
        }
        let Some(known) = carried.known else {
            return Err(Error::device(format!(
                "`{}` is carried as text, and not run by the simulator",
                what.name()
            ))
            .at(self.state.kernel.describe_place(place))
            .accepted("a GPU, on which the kernel can be run, compared and measured"));
        };
        if known == Known::ProxyFence {
            self.fence_proxy(sub_group, mask);
        }
        let argument = |registers: &Registers, number: usize, lane: usize| {
            values
                .get(number)
                .map_or(0, |&(_, slot)| registers.get(slot)[lane])
        };
        for lane in mask.lanes() {
            let item = sub_group.work_item(lane);
            let result = match known {
                Known::Nothing | Known::ProxyFence => 0,
                Known::Clock => {
                    self.clock += 1;
                    self.clock
                }
                Known::Leads(space) => u64::from(from_generic(argument(registers, 0, lane)).0 == space),
                Known::Converts(conversion) => {
                    conversion.of(argument(registers, 0, lane), argument(registers, 1, lane))
                }
                Known::Print => {
                    let (text, at) = (argument(registers, 0, lane), argument(registers, 1, lane));
                    let line = self.formatted(text, at, item, place)?;
                    self.prints.add(item, line, &self.state.launch.print_limits);
                    0
                }
                Known::Assert => {
                    let text = self.text(argument(registers, 0, lane), item, place)?;
                    let failed = Violation::Trapped {
                        who: self.describe(item),
                        assertion: Some(text),
                    };
                    return Err(fault::error(self.state.kernel, place, failed));
                }
            };
            for &slot in to {
                registers.get_mut(slot)[lane] = result;
            }
        }
        Ok(())
    }

    /// The bytes at a generic address, as a number.
    fn given(&mut self, address: u64, size: u32, item: u32, place: Place) -> Result<u64> {
        let (space, address) = from_generic(address);
        let at = Location::new(self.state, space, address);
        let offset = self.access(Access::Read, at, size, item, place)?;
        Ok(self.read(at, offset, size, item))
    }

    /// The text at a generic address, up to its zero.
    fn text(&mut self, address: u64, item: u32, place: Place) -> Result<String> {
        let mut bytes = Vec::new();
        for number in 0..MOST_TEXT {
            match self.given(address.wrapping_add(number), 1, item, place)? as u8 {
                0 => break,
                byte => bytes.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The output of C's `printf` for a format and values in memory, each at a multiple of its size.
    fn formatted(&mut self, format: u64, values: u64, item: u32, place: Place) -> Result<String> {
        let format = self.text(format, item, place)?;
        let mut line = String::new();
        let mut offset = 0u64;
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            line.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                line.push('%');
                rest = behind;
                continue;
            }
            let mut given = |size: u64| {
                let at = offset.next_multiple_of(size);
                offset = at + size;
                self.given(values.wrapping_add(at), size as u32, item, place)
            };
            if let Some((conversion, length, None, behind)) = Conversion::take(rest) {
                rest = behind;
                let ty = match (conversion.is_of_floats(), length) {
                    (true, _) => Type::F64,
                    (false, "l" | "ll" | "j" | "z") => Type::I64,
                    _ => Type::I32,
                };
                let bits = given(u64::from(ty.bytes()))?;
                line.push_str(&conversion.shown(ty, bits));
                continue;
            }
            // A text or an address: wide, perhaps, and no more.
            let end = rest.find(|c: char| c.is_ascii_alphabetic());
            let Some(end) = end else { break };
            let (options, letter) = (&rest[..end], rest.as_bytes()[end]);
            rest = &rest[end + 1..];
            let bits = given(8)?;
            let shown = match letter {
                b's' => self.text(bits, item, place)?,
                b'p' => format!("{bits:#x}"),
                _ => bits.to_string(),
            };
            let width = options
                .trim_start_matches('-')
                .parse::<usize>()
                .unwrap_or(0)
                .min(256);
            line.push_str(&match options.starts_with('-') {
                true => format!("{shown:<width$}"),
                false => format!("{shown:>width$}"),
            });
        }
        line.push_str(rest);
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_known_by_name() {
        let carried = |text: &str| known(&Opaque::unknown(text.to_owned(), Vec::new()));
        assert_eq!(carried("nanosleep.u32 @0"), Some(Known::Nothing));
        assert_eq!(carried("mov.u64 =0, %clock64"), Some(Known::Clock));
        assert_eq!(
            carried("isspacep.shared =0, @0"),
            Some(Known::Leads(Space::Shared))
        );
        assert_eq!(
            carried("{ .param .b32 r; call (r), vprintf, (a, b); ld.param.b32 =0, [r]; }"),
            Some(Known::Print)
        );
        assert_eq!(carried("fence.proxy.async.shared::cta"), Some(Known::ProxyFence));
        assert_eq!(carried("fence.proxy.alias"), Some(Known::Nothing));
        assert_eq!(carried("mma.sync.aligned.m16n8k8 {=0}, {@0}, {@1}, {@2}"), None);
    }
}
