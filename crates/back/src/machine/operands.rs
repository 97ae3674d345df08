//! The register-file reads of instructions.
//!
//! An operand that the previous instruction of the same kind also read is still available (`.reuse` in SASS), unless the
//! scheduler has switched to another sub-group in between. Double-precision arithmetic has reuse slots of its own. (On an H200,
//! `docs/simulator.md`: fma of doubles with common operands takes 2.2 cycles regardless of the instructions in between, and 3
//! without; alternating logic and float fma reuses nothing.)

use super::program::{Class, Control, Instruction, Operands, Register};

/// How far behind an instruction others look for its operands.
const REACH: usize = 4;

/// Computes each instruction's reads. `reads` has the registers of each with their widths in 32-bit words.
pub(crate) fn fill_in(instructions: &mut [Instruction], reads: &[Vec<(Register, u8)>]) {
    for at in 0..instructions.len() {
        let words = reads[at].iter().map(|&(_, width)| width).sum();
        let (kept, kept_since) = kept(instructions, reads, at);
        instructions[at].operands = Operands {
            words,
            kept,
            kept_since,
        };
    }
}

/// How many words are still at hand, and how many instructions ago they were read.
fn kept(instructions: &[Instruction], reads: &[Vec<(Register, u8)>], at: usize) -> (u8, u8) {
    let Some(own) = ReuseClass::of(instructions[at].class) else {
        return (0, 0);
    };
    let mut written: Vec<Register> = Vec::new();
    for distance in 1..=REACH.min(at) {
        let before = &instructions[at - distance];
        if before.class == Class::None && before.control == Control::Next {
            continue;
        }
        if before.control != Control::Next || ReuseClass::ends(before.class) {
            break;
        }
        written.extend(before.defines.iter());
        if ReuseClass::of(before.class) == Some(own) {
            let common = reads[at]
                .iter()
                .filter(|read| reads[at - distance].contains(read) && !written.contains(&read.0));
            return (common.map(|&(_, width)| width).sum(), distance as u8);
        }
    }
    (0, 0)
}

/// Instructions that keep operands for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReuseClass {
    Double,
    Other,
}

impl ReuseClass {
    fn of(class: Class) -> Option<ReuseClass> {
        match class {
            Class::Fp64 => Some(ReuseClass::Double),
            Class::Int32 | Class::IntMultiply | Class::Int64 | Class::Fp32 | Class::Fp16 => {
                Some(ReuseClass::Other)
            }
            _ => None,
        }
    }

    /// Whether nothing is kept beyond it.
    fn ends(class: Class) -> bool {
        matches!(
            class,
            Class::Branch | Class::Reconverge | Class::Barrier | Class::Exit
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::{parse, verify};
    use crate::machine::{Class, Operands, Target, lower};

    /// The reads of the instructions of a class, in their order.
    fn operands(body: &str, class: Class) -> Vec<Operands> {
        let text = format!(
            "hsir 1\nkernel @t(%out: ptr.global f64[%n] align 8 unaliased, %n: i64, %a: f64, %b: f64) {{\n\
             %t = id.local.x\n%x = unsigned_to_float %t to f64\n%y = fadd %x, 3.0:f64\n%z = fmul %y, %y\n{body}\nreturn\n}}"
        );
        let kernel = parse(&text, "test.hsir").unwrap();
        verify(&kernel).unwrap();
        let program = lower(&kernel, &Target::nvidia());
        let of_class = program.instructions.iter().filter(|one| one.class == class);
        of_class.map(|one| one.operands).collect()
    }

    #[test]
    fn constants_are_not_read_and_what_two_read_is_kept() {
        let body = "%p = fma %x, %y, %z\n%q = fma %p, 0.5:f64, 1.0:f64\n%r = fma %q, %y, %z\n%s = fma %r, %y, %z\nstore %out, %s";
        let all = operands(body, Class::Fp64);
        let [.., p, q, r, s] = all[..] else {
            panic!("{all:?}")
        };
        assert_eq!(p.words, 6);
        assert!(q.words <= 4, "a product with constants: {q:?}");
        assert_eq!((r.words, r.kept), (6, 0), "the one before read another register");
        assert_eq!((s.words, s.kept, s.kept_since), (6, 4, 1));
    }
}
