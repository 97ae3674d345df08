//! How accurate division and square root of `f32` are.
//!
//! ```text
//! before                as OpenCL's compilers build by default
//! %y = sqrt %x          %y = approximate.sqrt %x
//! %z = fdiv %x, %y      %z = approximate.div %x, %y
//! ```
//!
//! In the IR both are rounded correctly, as Rust and CUDA have them. OpenCL and DPC++ allow 3 and 2.5 units in the last place unless
//! a program is built with `-cl-fp32-correctly-rounded-divide-sqrt`: one instruction on Intel's GPUs instead of a dozen.

use crate::ir::{BinaryOp, Kernel, OpKind, Type, UnaryOp};

/// The accuracy of division and square root of `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accuracy {
    /// Rounded correctly.
    #[default]
    Rounded,
    /// As OpenCL and DPC++ build by default: within 3 units in the last place.
    OpenCl,
}

impl Accuracy {
    /// As `--accuracy` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Accuracy::Rounded => "rounded",
            Accuracy::OpenCl => "opencl",
        }
    }

    /// Gives the divisions and square roots of a kernel this accuracy, but for those that round another way or flush, which say so
    /// themselves.
    pub fn apply(self, kernel: &mut Kernel) {
        if self == Accuracy::Rounded {
            return;
        }
        let mut body = std::mem::take(&mut kernel.body);
        body.walk_mut(&mut |op| {
            let relaxed = match op.kind {
                OpKind::Unary(UnaryOp::Sqrt, x) => OpKind::Unary(UnaryOp::ApproximateSqrt, x),
                OpKind::Binary(BinaryOp::FDiv, x, y) => OpKind::Binary(BinaryOp::ApproximateDiv, x, y),
                _ => return,
            };
            if kernel.ty(op.results[0]) == Type::F32 {
                op.kind = relaxed;
            }
        });
        kernel.body = body;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print, verify};

    #[test]
    fn roots_and_quotients_of_f32_become_the_devices_own() {
        let text = "hsir 1\nkernel @k(%f: f32, %d: f64, %to: ptr.global f32[] align 4, %wide: ptr.global f64[] align 8) {\n\
                    %a = sqrt %f\n%b = fdiv %f, %a\n%c = sqrt %d\n%e = sqrt.ftz %f\n%s = fadd %b, %e\nstore %to, %s\n\
                    store %wide, %c\nreturn\n}\n";
        let mut kernel = parse(text, "k.hsir").unwrap();
        let before = print(&kernel);
        Accuracy::Rounded.apply(&mut kernel);
        assert_eq!(print(&kernel), before);
        Accuracy::OpenCl.apply(&mut kernel);
        verify(&kernel).unwrap();
        let after = print(&kernel);
        for line in [
            "approximate.sqrt %f",
            "approximate.div %f",
            "= sqrt %d",
            "= sqrt.ftz %f",
        ] {
            assert!(after.contains(line), "{line}: {after}");
        }
    }
}
