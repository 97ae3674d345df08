//! Products and sums that an assembler fuses become fused ones.
//!
//! ```text
//! mul.f32 %f3, %f1, %f2;                        %n = fneg %f1
//! sub.f32 %f5, %f4, %f3;                        %f5 = fma %n, %f2, %f4
//! ```
//!
//! Without `.rn` PTX allows that, and ptxas always does it where the product has no other use. Here it is done the same
//! way, so that the simulator has the bits that the GPU has, and what is written again leaves no choice. Where there is
//! one (both operands are products, a product is used twice), the kernel keeps the permission.

use std::collections::{HashMap, HashSet};

use crate::ir::{BinaryOp, Kernel, Op, OpKind, Region, UnaryOp, Value};

/// Fuses what was written without `.rn`: the products and sums in `open`.
pub(super) fn contract(kernel: &mut Kernel, open: &HashSet<Value>) {
    let mut uses: HashMap<Value, u32> = HashMap::new();
    kernel.body.walk(&mut |op| {
        op.kind
            .for_each_operand(|value| *uses.entry(value).or_default() += 1);
    });
    let mut body = std::mem::take(&mut kernel.body);
    let mut fuser = Fuser {
        kernel,
        open,
        uses,
        products: HashSet::new(),
        choice_left: false,
    };
    fuser.region(&mut body);
    let choice_left = fuser.choice_left;
    kernel.body = body;
    kernel.float_mode.may_contract &= choice_left;
}

struct Fuser<'k> {
    kernel: &'k mut Kernel,
    open: &'k HashSet<Value>,
    uses: HashMap<Value, u32>,
    /// Products that may be fused, of every region so far.
    products: HashSet<Value>,
    choice_left: bool,
}

impl Fuser<'_> {
    fn region(&mut self, region: &mut Region) {
        // Products of this region with one use: their factors.
        let mut factors: HashMap<Value, (Value, Value)> = HashMap::new();
        let mut ops = Vec::with_capacity(region.ops.len());
        let mut fused: HashSet<Value> = HashSet::new();
        for mut op in std::mem::take(&mut region.ops) {
            for inner in op.kind.regions_mut() {
                self.region(inner);
            }
            match op.kind {
                OpKind::Binary(BinaryOp::FMul, x, y) if self.open.contains(&op.results[0]) => {
                    let product = op.results[0];
                    self.products.insert(product);
                    if self.uses.get(&product) == Some(&1) {
                        factors.insert(product, (x, y));
                    }
                }
                OpKind::Binary(sum @ (BinaryOp::FAdd | BinaryOp::FSub), a, b)
                    if self.open.contains(&op.results[0]) =>
                {
                    let taken = [a, b].map(|value| factors.get(&value).copied());
                    match taken {
                        [Some(_), Some(_)] => self.choice_left = true,
                        [Some((x, y)), None] if !self.products.contains(&b) => {
                            fused.insert(a);
                            let c = self.negated(&mut ops, &op, b, sum == BinaryOp::FSub);
                            op.kind = OpKind::Fma(x, y, c);
                        }
                        [None, Some((x, y))] if !self.products.contains(&a) => {
                            fused.insert(b);
                            let x = self.negated(&mut ops, &op, x, sum == BinaryOp::FSub);
                            op.kind = OpKind::Fma(x, y, a);
                        }
                        _ => self.choice_left |= [a, b].iter().any(|value| self.products.contains(value)),
                    }
                }
                _ => {}
            }
            ops.push(op);
        }
        ops.retain(|op| !op.results.first().is_some_and(|result| fused.contains(result)));
        region.ops = ops;
    }

    fn negated(&mut self, ops: &mut Vec<Op>, like: &Op, value: Value, negate: bool) -> Value {
        if !negate {
            return value;
        }
        let result = self.kernel.value_like(value);
        ops.push(Op {
            kind: OpKind::Unary(UnaryOp::FNeg, value),
            results: vec![result],
            place: like.place,
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::print;

    fn contracted(text: &str) -> String {
        let module = format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .f32 %f<9>;\n\
             .reg .b64 %rd<3>;\nld.param.u64 %rd1, [p];\nld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd1+4];\n\
             ld.global.f32 %f3, [%rd1+8];\n{text}\nst.global.f32 [%rd1+12], %f6;\nret;\n}}\n"
        );
        let imported = super::super::import(&module, "test.ptx", None, &super::super::Facts::default());
        print(&imported.expect("it is read").kernel)
    }

    #[test]
    fn what_ptxas_fuses_is_fused() {
        let kernel = contracted("mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;");
        assert!(kernel.contains("= fma") && !kernel.contains("fmul"), "{kernel}");
        assert!(!kernel.contains("may_contract"), "{kernel}");
    }

    #[test]
    fn what_is_rounded_stays() {
        for text in [
            "mul.rn.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;",
            "mul.f32 %f4, %f1, %f2;\nsub.rn.f32 %f6, %f3, %f4;",
        ] {
            let kernel = contracted(text);
            assert!(!kernel.contains("fma") && kernel.contains("fmul"), "{kernel}");
            assert!(!kernel.contains("may_contract"), "{kernel}");
        }
    }

    #[test]
    fn a_choice_is_left_open() {
        let kernel = contracted("mul.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;");
        assert!(
            !kernel.contains("fma") && kernel.contains("may_contract"),
            "{kernel}"
        );
    }
}
