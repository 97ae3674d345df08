//! A planned loop inside the user's module: a block in front of the loop.
//!
//! ```text
//! {
//!     .reg .b64 %headstart0_rd<9>; …
//!     mov.b64 %headstart0_rd1, %rd4;                      registers of the text at the loop's front edge
//!     ld.param.u64 %headstart0_rd2, [gather_param_0];     parameters by the names that the entry has
//!     …
//!     { … a copy of the loop's own text … }
//!     …
//!     bra $L__BB0_3;                                      the loop as it was
//! }
//! ```
//!
//! Registers, labels and variables of a block have a stem that the text has nowhere: copies of the text stand between them.

use std::fmt::Write;

use super::emitter::Emitter;
use super::enclosure::{Handed, SHARED_BASE, Within};
use super::registers::Class;
use super::{MOST_STATIC_SHARED, Options, check, control, declare_arrays, expanded, prefetch};
use crate::banked::BankedConstants;
use crate::error::{Error, Result};
use crate::hints::HintReached;
use crate::ir::{Array, ArrayData, CutEdge, Kernel, Op, OpKind, Space, Value};

/// A kernel's text inside a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The text, with its braces.
    pub text: String,
    /// Shared memory that it declares, in bytes.
    pub static_shared_bytes: u64,
    /// The outcome of each cache hint.
    pub hints: Vec<HintReached>,
}

/// Emits a verified kernel as a block.
///
/// # Errors
/// As for [`emit`](super::emit); it takes more shared memory than a module can declare, or uses constant memory in a way that
/// only global memory allows.
pub fn emit_within(kernel: &Kernel, options: &Options, within: &Within) -> Result<Block> {
    check(kernel, options)?;
    if within.parameters.len() != kernel.params.len() {
        return Err(Error::bug(
            "a kernel has other parameters than the entry that it came from",
        ));
    }
    let options = &Options {
        group: None,
        groups_per_core: None,
        ..options.clone()
    };
    let hints = prefetch::prefetches(kernel, options);
    let mut kernel = expanded(kernel, options);
    let mut emitter = Emitter::new(&kernel, options);
    emitter.within = Some(within);
    emitter.registers.stem.clone_from(&within.stem);
    emitter.forget_origins();
    emitter.banked = BankedConstants::default();
    emitter.only_loads_of_constants(within)?;
    for (param, handed) in kernel.params.iter().zip(&within.parameters) {
        emitter.handed(param.value, handed);
    }
    emitter.prepare_prefetches();
    emitter.region(&kernel.body, control::Next::Nothing)?;
    let rows = emitter.declared_rows();
    let written = emitter.finish();

    let is_declared = |data: &ArrayData| within.arrays.contains(&data.name);
    let own = |(_, data): &(Array, &ArrayData)| data.space == Space::Shared && !is_declared(data);
    let last = kernel.arrays.iter().rfind(own).map(|(array, _)| array);
    let shared = kernel.arrays.iter().filter(own).fold(0u64, |end, (_, data)| {
        end.next_multiple_of(u64::from(data.align.max(1))) + data.bytes()
    });
    let mut scratch = match written.uses_scratch {
        // The work-groups' size is not known here.
        true => 4 * kernel.group_size.map_or(1024, |size| size.iter().product()),
        false => 0,
    };
    let mut shared = shared + u64::from(scratch);
    if within.has_shared_behind {
        let more = (shared.next_multiple_of(SHARED_BASE) - shared) as u32;
        shared += u64::from(more);
        match last {
            Some(last) if scratch == 0 => {
                let data = &mut kernel.arrays[last];
                data.length += more / data.element.bytes();
            }
            _ => scratch += more,
        }
    }
    let mut text = String::from("{\n");
    text.push_str(&written.registers.declarations());
    // Of this block alone, whatever the module has by that name.
    text.push_str(&rows);
    declare_arrays(&mut text, &kernel, &|array| is_declared(&kernel.arrays[array]));
    if scratch > 0 {
        let _ = writeln!(
            text,
            "\t.shared .align 4 .b8 {}{}[{scratch}];",
            within.stem,
            prefetch::SCRATCH,
        );
    }
    let declared = shared + within.static_shared_bytes;
    // The driver refuses a launch whose function has more in all, unless the program has raised the limit of that function. It
    // has for launches that ask for more themselves.
    let asked = Some(within.dynamic_shared_bytes).filter(|bytes| *bytes <= MOST_STATIC_SHARED);
    let most = MOST_STATIC_SHARED - asked.unwrap_or(0);
    if declared > most {
        let asked = match within.dynamic_shared_bytes {
            0 => "none".to_owned(),
            bytes => format!("{bytes}"),
        };
        return Err(Error::device(format!(
            "the entry would declare {declared} bytes of shared memory, and its launches ask for {asked}"
        ))
        .accepted(format!("at most {most}")));
    }
    text.push('\n');
    text.push_str(&written.instructions);
    text.push_str("}\n");
    Ok(Block {
        text,
        static_shared_bytes: shared,
        hints,
    })
}

/// The bits of a register of this class; none of a predicate.
fn own_bits(class: Option<Class>) -> Option<u32> {
    match class? {
        Class::Predicate => None,
        Class::B16 => Some(16),
        Class::B32 | Class::F32 => Some(32),
        Class::B64 | Class::F64 => Some(64),
    }
}

impl<'k> Emitter<'k> {
    /// What is passed over the front edge of a loop says where pointers come from, and is not used.
    fn forget_origins(&mut self) {
        self.kernel.body.walk(&mut |op| {
            if let OpKind::Block { label, body } = &op.kind
                && matches!(self.kernel.labels[*label].edge, Some(CutEdge::Enter(_)))
                && let Some(end) = body.ops.last()
            {
                end.kind.for_each_operand(|value| {
                    let left = self.uses.remove(&value).unwrap_or(0).saturating_sub(1);
                    if left > 0 {
                        self.uses.insert(value, left);
                    }
                });
            }
        });
    }

    /// Brings registers into the block, or leaves it.
    pub(super) fn edge(&mut self, op: &'k Op, edge: CutEdge, within: &'k Within) {
        if matches!(edge, CutEdge::Leave(_)) {
            self.wait_for_scratch();
            self.ins(format!("bra {}", within.leave));
            return;
        }
        for (&result, around) in op.results.iter().zip(&within.enter) {
            if self.uses.contains_key(&result) {
                let own = self.register(result);
                let class = Class::of(self.ty(result));
                self.carry_over(&own, own_bits(class), &around.name, around.bits);
            }
        }
    }

    /// Moves a register into another one of perhaps another width; the upper bits of the wider one are zero.
    fn carry_over(&mut self, to: &str, to_bits: Option<u32>, from: &str, from_bits: Option<u32>) {
        self.ins(match (to_bits, from_bits) {
            (Some(to_bits), Some(from_bits)) if to_bits != from_bits => {
                format!("cvt.u{to_bits}.u{from_bits} {to}, {from}")
            }
            (Some(bits), _) => format!("mov.b{bits} {to}, {from}"),
            (None, _) => format!("mov.pred {to}, {from}"),
        });
    }

    /// Brings a parameter into its register.
    fn handed(&mut self, value: Value, handed: &Handed) {
        match handed {
            Handed::Parameter { name, offset: 0 } => self.parameter(value, name),
            Handed::Parameter { name, offset } => self.parameter(value, &format!("{name}+{offset}")),
            Handed::Variable { name, .. } | Handed::Structure { name } => {
                if self.uses.contains_key(&value) {
                    let r = self.register(value);
                    self.ins(format!("mov.u64 {r}, {name}"));
                }
            }
            Handed::Workspace => {
                if self.uses.contains_key(&value) {
                    let r = self.register(value);
                    self.line(&format!(
                        "{{ .reg .b32 %headstart_h, %headstart_l; mov.u32 %headstart_h, %envreg1; mov.u32 %headstart_l, %envreg2; \
                         mov.b64 {r}, {{%headstart_l, %headstart_h}}; }}"
                    ));
                }
            }
            Handed::Kept { name } => {
                if self.uses.contains_key(&value) {
                    let r = self.register(value);
                    self.ins(format!("ld.const.u64 {r}, [{name}]"));
                }
            }
        }
    }

    /// The load for a parameter's memory, if only one kind of load reads it: `const` or `param`.
    pub(super) fn only_read_by(&self, param: Value) -> Option<&'static str> {
        match self.comes_from(param)? {
            Handed::Variable {
                is_constant: true, ..
            } => Some("const"),
            Handed::Structure { .. } => Some("param"),
            _ => None,
        }
    }

    /// Whether a parameter is the address of memory that only one kind of load reads.
    pub(super) fn is_constant_variable(&self, param: Value) -> bool {
        self.only_read_by(param).is_some()
    }

    fn comes_from(&self, param: Value) -> Option<&Handed> {
        let position = self.kernel.params.iter().position(|other| other.value == param);
        let (within, position) = self.within.zip(position)?;
        within.parameters.get(position)
    }

    /// Refuses kernels that do with constant memory anything but read it, or lose sight of which memory that is.
    fn only_loads_of_constants(&self, within: &Within) -> Result<()> {
        let constant = |handed: &Handed| {
            matches!(
                handed,
                Handed::Variable {
                    is_constant: true,
                    ..
                } | Handed::Structure { .. }
            )
        };
        if !within.parameters.iter().any(constant) {
            return Ok(());
        }
        let mut odd = None;
        self.kernel.body.walk(&mut |op| {
            let of = |pointer: Value| self.roots.of(pointer).map(|root| self.is_constant_variable(root));
            match &op.kind {
                OpKind::Load { ptr, .. }
                    if self.ty(*ptr).space() == Some(Space::Global) && of(*ptr).is_none() =>
                {
                    odd = Some((op.place, "what it reads may be constant memory or not"));
                }
                OpKind::Prefetch { ptr, .. } | OpKind::Copy { from: ptr, .. } if of(*ptr) != Some(false) => {
                    odd = Some((op.place, "constant memory is not fetched ahead"));
                }
                OpKind::Convert(_, value) if self.ty(*value).is_pointer() && of(*value) == Some(true) => {
                    odd = Some((op.place, "an address of constant memory is passed on"));
                }
                _ => {}
            }
        });
        match odd {
            Some((place, why)) => Err(Error::device(why).at(self.kernel.describe_place(place))),
            None => Ok(()),
        }
    }
}
