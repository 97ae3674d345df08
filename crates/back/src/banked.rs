//! Which floating-point constants a kernel takes from constant memory, on NVIDIA GPUs.
//!
//! An instruction can hold one constant in single precision, or the upper half of one in double precision. ptxas materialises
//! every other constant in registers with one or two moves, and repeats that at each use: 17 of the 56 instructions in the loop
//! of `article` are such moves. It keeps constants that are loaded from constant memory, in uniform registers if it can. The
//! same loop then has 36 instructions, and unrolled loops spill less (ptxas 13.0, sm_90).
//!
//! ```text
//! loop { … g = fma f, 0.0013888…, 2.5 }       one move for each half, every time
//! loop { … g = fma f, constant, 2.5 }         none
//! ```
//!
//! Only constants in loops are worth a load.

use crate::ir::{Kernel, Op, OpKind, Region, Type};

/// This many are kept: 2 KiB of doubles, as much as a core's innermost cache of constant memory holds (Jia, Maggioni, Staiger
/// and Scarpazza: Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, section 3.6).
const MOST: usize = 256;

/// The constants, in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct BankedConstants(Vec<Banked>);

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Banked {
    /// [`Type::F32`] or [`Type::F64`].
    pub ty: Type,
    pub bits: u64,
    /// It takes registers of each work-item: some instruction has another constant besides, and can take only one from
    /// elsewhere.
    pub takes_registers: bool,
}

impl BankedConstants {
    /// Finds those of a verified kernel.
    pub(super) fn of(kernel: &Kernel) -> BankedConstants {
        let mut found = BankedConstants::default();
        found.region(kernel, &kernel.body, false);
        found
    }

    /// All of them, by position.
    pub(super) fn all(&self) -> &[Banked] {
        &self.0
    }

    /// The place of a constant, if it has one.
    pub(super) fn position(&self, ty: Type, bits: u64) -> Option<usize> {
        self.0
            .iter()
            .position(|banked| (banked.ty, banked.bits) == (ty, bits))
    }

    fn region(&mut self, kernel: &Kernel, region: &Region, in_loop: bool) {
        for op in &region.ops {
            if in_loop {
                self.operation(kernel, op);
            }
            let in_loop = in_loop || matches!(op.kind, OpKind::Loop { .. });
            for inner in op.kind.regions() {
                self.region(kernel, inner, in_loop);
            }
        }
    }

    fn operation(&mut self, kernel: &Kernel, op: &Op) {
        let (OpKind::Binary(..) | OpKind::Fma(..) | OpKind::Compare(..) | OpKind::Select(..)) =
            op.kind.plain()
        else {
            return;
        };
        let mut constants = Vec::new();
        op.kind.for_each_operand(|operand| {
            let ty = kernel.ty(operand);
            if let (Type::F32 | Type::F64, Some(bits)) = (ty, kernel.as_constant(operand)) {
                constants.push((ty, bits));
            }
        });
        // The last that an instruction can hold stays in it.
        let held = constants
            .iter()
            .rposition(|&(ty, bits)| ty == Type::F32 || bits as u32 == 0);
        for (at, &(ty, bits)) in constants.iter().enumerate().filter(|&(at, _)| Some(at) != held) {
            let takes_registers = constants[at + 1..].iter().any(|&other| other != (ty, bits));
            match self.position(ty, bits) {
                Some(position) => self.0[position].takes_registers |= takes_registers,
                None if self.0.len() < MOST => self.0.push(Banked {
                    ty,
                    bits,
                    takes_registers,
                }),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants placed in constant memory for a kernel with these operations before and in its loop.
    fn banked(before: &str, inside: &str) -> Vec<(f64, bool)> {
        let text = format!(
            "hsir 1\nkernel @k(%out: ptr.global, %n: i64, %x: f64, %y: f32) {{\n{before}\n\
             loop 'l (%i = 0:i64) {{\n\
             %more = lt.u %i, %n\nif %more {{ yield }} else {{ break }}\n{inside}\n\
             %i1 = add.nw %i, 1:i64\ncontinue %i1\n}}\nreturn\n}}\n"
        );
        let kernel = crate::ir::parse(&text, "test.hsir").expect("the text is a kernel");
        let found = BankedConstants::of(&kernel);
        let value = |banked: &Banked| match banked.ty {
            Type::F32 => f64::from(f32::from_bits(banked.bits as u32)),
            _ => f64::from_bits(banked.bits),
        };
        let all = found.all().iter();
        all.map(|banked| (value(banked), banked.takes_registers))
            .collect()
    }

    #[test]
    fn what_no_instruction_holds_is_loaded() {
        let inside =
            "%a = fma %x, 0.1:f64, 2.5:f64\n%b = fma %a, %x, 0.5:f64\n%c = fadd %b, 0.3:f64\nstore %out, %c";
        // 0.1 stands beside another constant, 0.3 alone.
        assert_eq!(banked("", inside), [(0.1, true), (0.3, false)]);
        let single = "%a = fma %y, 0.1:f32, 2.5:f32\n%b = fadd %a, 0.3:f32\nstore %out, %b";
        assert_eq!(banked("", single), [(f64::from(0.1f32), true)]);
    }

    #[test]
    fn what_runs_once_is_not_loaded() {
        assert_eq!(banked("%a = fma %x, 0.1:f64, 2.5:f64\nstore %out, %a", ""), []);
    }
}
