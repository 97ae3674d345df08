//! Instructions that are carried as text: those that can be run are, the others stop the launch by name.
//!
//! Tensor cores are [`matrix`](super::matrix)'s, products of warp groups [`group`](super::matrix::group)'s, operations on 16
//! bytes [`quads`](super::quads)', conversions of short floats [`short_float`](super::short_float)'s, and barriers with phases,
//! with the bulk copies that complete on them, [`phases`](super::phases)'. Instructions that only take time, or order accesses
//! that are in order here, do nothing. Clocks count how often they are read. `vprintf` prints, and `__assertfail` is an error of
//! the kernel, as the program says. Other bulk copies and textures are not run.

use super::access::Location;
use super::address::from_generic;
use super::carried::{Carried, Prepared};
use super::fault::{self, Access};
use super::lanes::Registers;
use super::matrix::Run;
use super::work_group::{Runners, WorkGroup};
use crate::ir::carried::Carried as Said;
use crate::ir::conversion::Conversion;
use crate::ir::{Place, Type};
use crate::violation::Violation;
use crate::{Error, Result};

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
        match (&carried.prepared, &*what.does) {
            (Prepared::Matrix(matrix), _) => return self.matrix(matrix, run, registers),
            (Prepared::Product(product), _) => return self.group_product(product, run, registers),
            (_, Said::Group(step)) => return self.group_step(*step, run),
            (_, Said::Quad(quad)) => return self.quad(quad, run, registers),
            (_, Said::Phase(step)) => return self.phase_step(step, run, registers),
            (_, Said::ProxyFence) => self.fence_proxy(sub_group, mask),
            (
                _,
                Said::Nothing | Said::Clock | Said::Leads(_) | Said::Converts(_) | Said::Print | Said::Assert,
            ) => {}
            _ => {
                return Err(Error::device(format!(
                    "`{}` is carried as text, and not run by the simulator",
                    what.name()
                ))
                .at(self.state.kernel.describe_place(place))
                .accepted("a GPU, on which the kernel can be run, compared and measured"));
            }
        }
        let argument = |registers: &Registers, number: usize, lane: usize| {
            values
                .get(number)
                .map_or(0, |&(_, slot)| registers.get(slot)[lane])
        };
        for lane in mask.lanes() {
            let item = sub_group.work_item(lane);
            let result = match *what.does {
                Said::Clock => {
                    self.clock += 1;
                    self.clock
                }
                Said::Leads(space) => u64::from(from_generic(argument(registers, 0, lane)).0 == space),
                Said::Converts(conversion) => {
                    conversion.of(argument(registers, 0, lane), argument(registers, 1, lane))
                }
                Said::Print => {
                    let (text, at) = (argument(registers, 0, lane), argument(registers, 1, lane));
                    let line = self.formatted(text, at, item, place)?;
                    self.prints.add(item, line, &self.state.launch.print_limits);
                    0
                }
                Said::Assert => {
                    let text = self.text(argument(registers, 0, lane), item, place)?;
                    let failed = Violation::Trapped {
                        who: self.describe(item),
                        assertion: Some(text),
                    };
                    return Err(fault::error(self.state.kernel, place, failed));
                }
                _ => 0,
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
        let offset = self.access(Access::Read.of(item, place), at, size)?;
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
