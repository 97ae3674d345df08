//! Products and sums that an assembler fuses become fused ones.
//!
//! ```text
//! mul.f32 %f3, %f1, %f2;                        %n = fneg %f1
//! sub.f32 %f5, %f4, %f3;                        %f5 = fma %n, %f2, %f4
//! ```
//!
//! Without `.rn`, PTX allows fusion, and ptxas always fuses a product that has no other use. The reader does the same, so that
//! the simulator computes the GPU's bits, and the rewritten text leaves no choice. Such products and sums keep the permission
//! ([`FloatRule::contract`]). If both operands of a sum are products without another use, ptxas fuses the same one wherever
//! they stand (57 entries of the corpus have the original's bits on an H200). In other cases (a product used twice or in
//! another block, a product whose magnitude is taken, only one of the two flushes) its choice depends on the surrounding code.
//! Such a sum is *open*: a rewritten entry could have other bits than the original, so none is written unless the original's
//! choice for each is known ([`Facts::fused`]). A product in front of a loop is not fused with a sum inside.
//!
//! `div.full`, `div.approx` and `rcp.approx` without `.ftz` end in a product, which ptxas fuses like any other:
//!
//! ```text
//! div.full.f32 %f3, %f1, %f2;                   %f1 and %f2 scaled for a large and for a small %f2
//! add.f32 %f5, %f3, %f4;                        MUFU.RCP of %f2, FFMA with %f1 and %f4
//! ```
//!
//! If the quotient has no other use, its sum keeps the permission, and ptxas fuses both again. A quotient that something else
//! needs is rounded, as ptxas does: 28 kernels of two packages that have such sums had the original's bits on an H200. Where all
//! uses are sums, they are open; if the choice is known, the quotient is [written out](super::quotient).
//!
//! [`Facts::fused`]: crate::middle::facts::Facts::fused

use std::collections::{HashMap, HashSet};

use super::quotient::Quotient;
use crate::error::Error;
use crate::ir::{BinaryOp, FloatRule, Fused, Kernel, Op, OpKind, Place, Region, Type, UnaryOp, Value};

/// Products and sums of halves, single or in pairs, that were written without `.rn`: which of them ptxas fuses is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenHalves {
    pub products: Vec<Value>,
    pub sums: Vec<Value>,
}

/// What is left of an entry's products and sums.
pub(super) struct Contracted {
    /// What may become of each sum that is left to the assembler, in the order in which they stand.
    pub open_sums: Vec<Vec<Fused>>,
    /// Why the entry cannot be written back, if the assembler's choice may be another one in other code.
    pub undecided: Option<Error>,
}

/// Fuses what was written without `.rn`: the products and sums in `open`. Halves stay undecided.
///
/// `decided` gives the choice for each sum that would be left to the assembler.
pub(super) fn contract(
    kernel: &mut Kernel,
    open: &HashSet<Value>,
    halves: &OpenHalves,
    decided: Option<&[Fused]>,
) -> Contracted {
    let mut uses: HashMap<Value, u32> = HashMap::new();
    let mut needed = HashSet::new();
    kernel.body.walk(&mut |op| {
        let may_be_fused = match op.kind.plain() {
            OpKind::Binary(BinaryOp::FAdd | BinaryOp::FSub, ..) => open.contains(&op.results[0]),
            OpKind::Unary(UnaryOp::FNeg | UnaryOp::FAbs, _) | OpKind::Select(..) => true,
            _ => false,
        };
        op.kind.for_each_operand(|value| {
            *uses.entry(value).or_default() += 1;
            if !may_be_fused {
                needed.insert(value);
            }
        });
    });
    let mut body = std::mem::take(&mut kernel.body);
    let mut fuser = Fuser {
        kernel,
        open,
        uses,
        needed,
        products: HashMap::new(),
        factors: HashMap::new(),
        decided,
        open_sums: Vec::new(),
        inside: 0,
        loops: 0,
        left: HashSet::new(),
        alike: HashSet::new(),
    };
    fuser.region(&mut body);
    let Fuser {
        mut left,
        alike,
        open_sums,
        ..
    } = fuser;
    // The permission is for wider numbers: these are read as rounded.
    let mut open_halves: HashSet<Value> = HashSet::new();
    if !halves.products.is_empty() && !halves.sums.is_empty() {
        open_halves.extend(halves.products.iter().chain(&halves.sums));
    }
    let mut place = None;
    let is_left = |result: &Value| left.contains(result) || open_halves.contains(result);
    body.walk(&mut |op| {
        if op.results.first().is_some_and(is_left) {
            place.get_or_insert(op.place);
        }
    });
    left.extend(alike);
    body.walk_mut(&mut |op| {
        // A quotient has no permission of its own, nor has a change of sign.
        let may_be_fused = matches!(
            op.kind.plain(),
            OpKind::Binary(BinaryOp::FMul | BinaryOp::FAdd | BinaryOp::FSub, ..)
        );
        if may_be_fused && op.results.first().is_some_and(|result| left.contains(result)) {
            let rule = FloatRule {
                contract: true,
                ..op.kind.rule()
            };
            op.kind = op.kind.plain().clone().ruled(rule);
        }
    });
    kernel.body = body;
    Contracted {
        open_sums,
        undecided: place.map(|place| undecided(kernel, place)),
    }
}

/// Why an entry with such a product or sum cannot be written back.
fn undecided(kernel: &Kernel, place: Place) -> Error {
    let error = Error::input(
        "the entry cannot be written back: whether a product and a sum are fused here is left to the assembler, which may \
         decide otherwise in other code",
    );
    error
        .at(kernel.describe_place(place))
        .accepted("`.rn` on both, as `-fmad=false` gives")
}

struct Fuser<'k> {
    kernel: &'k mut Kernel,
    open: &'k HashSet<Value>,
    uses: HashMap<Value, u32>,
    /// Values that something but a sum needs, itself or with another sign.
    needed: HashSet<Value>,
    /// Products that may be fused, of every region so far.
    products: HashMap<Value, (u32, Value)>,
    /// The factors of each of those, and of their negations.
    factors: HashMap<Value, Factors>,
    /// The choice for each open sum, if known.
    decided: Option<&'k [Fused]>,
    /// The possible choices for each, as far as they were seen.
    open_sums: Vec<Vec<Fused>>,
    /// The loop that is looked at, by number; with each product stands its own. A product from in front of it is not computed again in it.
    inside: u32,
    loops: u32,
    /// Products and sums of which the assembler may still fuse some, by the code around.
    left: HashSet<Value>,
    /// Those of which it always fuses the same.
    alike: HashSet<Value>,
}

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Factors {
    made: Made,
    rule: FloatRule,
    sign: Sign,
}

#[derive(Clone, Copy, Debug)]
enum Made {
    /// The product of two numbers.
    Product(Value, Value),
    /// A division's last operation.
    Quotient(Quotient),
}

/// What became of a product's sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Kept,
    Changed,
    /// Its magnitude was taken.
    Dropped,
}

impl Fuser<'_> {
    fn region(&mut self, region: &mut Region) {
        // Products of this region with one use: what they are made of, and their rule.
        let mut factors: HashMap<Value, (Made, FloatRule)> = HashMap::new();
        let mut ops = Vec::with_capacity(region.ops.len());
        let mut fused: HashSet<Value> = HashSet::new();
        for mut op in std::mem::take(&mut region.ops) {
            let around = self.inside;
            if matches!(op.kind, OpKind::Loop { .. }) {
                self.loops += 1;
                self.inside = self.loops;
            }
            for inner in op.kind.regions_mut() {
                self.region(inner);
            }
            self.inside = around;
            let rule = op.kind.rule();
            match *op.kind.plain() {
                OpKind::Binary(BinaryOp::FMul, x, y) if self.open.contains(&op.results[0]) => {
                    self.product(&mut factors, op.results[0], Made::Product(x, y), rule);
                }
                OpKind::Binary(sum @ (BinaryOp::FAdd | BinaryOp::FSub), a, b)
                    if self.open.contains(&op.results[0]) =>
                {
                    let alike = |&(_, other): &(Made, FloatRule)| other == rule;
                    let taken = [a, b].map(|value| factors.get(&value).copied().filter(alike));
                    match taken {
                        [Some((Made::Product(x, y), _)), None] if !self.is_product(b) => {
                            fused.insert(a);
                            let c = self.negated(&mut ops, &op, b, sum == BinaryOp::FSub);
                            op.kind = OpKind::Fma(x, y, c).ruled(rule);
                        }
                        [None, Some((Made::Product(x, y), _))] if !self.is_product(a) => {
                            fused.insert(b);
                            let x = self.negated(&mut ops, &op, x, sum == BinaryOp::FSub);
                            op.kind = OpKind::Fma(x, y, a).ruled(rule);
                        }
                        [Some(_), None] if !self.is_product(b) => self.is_alike(&op, a, b),
                        [None, Some(_)] if !self.is_product(a) => self.is_alike(&op, a, b),
                        // One of two products that are nothing but operands here: the same one wherever that stands.
                        [Some(_), Some(_)] => self.is_alike(&op, a, b),
                        _ => {
                            let products: Vec<Value> = [a, b]
                                .iter()
                                .filter_map(|value| self.products.get(value))
                                .filter(|(inside, _)| *inside == self.inside)
                                .map(|(_, product)| *product)
                                .collect();
                            if !products.is_empty() {
                                self.open_sum(&mut ops, &mut op, (sum, a, b), products);
                            }
                        }
                    }
                }
                // ptxas folds a change of sign into the fused operation.
                OpKind::Unary(UnaryOp::FNeg, product) if self.is_product(product) => {
                    let result = op.results[0];
                    self.follow(product, result);
                    self.signed(product, result, rule, Sign::Changed);
                    let once = self.uses.get(&result) == Some(&1);
                    if let Some(&(made, of_product)) = factors.get(&product)
                        && once
                        && rule.flush == of_product.flush
                    {
                        let made = match made {
                            Made::Product(x, y) => Made::Product(self.negated(&mut ops, &op, x, true), y),
                            // Left to the assembler with its sum.
                            Made::Quotient(_) => made,
                        };
                        factors.insert(result, (made, of_product));
                    }
                }
                OpKind::Unary(UnaryOp::FAbs, product) if self.is_product(product) => {
                    self.follow(product, op.results[0]);
                    self.signed(product, op.results[0], rule, Sign::Dropped);
                }
                OpKind::Select(_, a, b) => {
                    for product in [a, b] {
                        if self.is_product(product) {
                            self.follow(product, op.results[0]);
                        }
                    }
                }
                ref plain => {
                    if let Some(quotient) = Quotient::of(plain, rule)
                        && self.kernel.ty(op.results[0]) == Type::F32
                        && !self.needed.contains(&op.results[0])
                    {
                        self.product(&mut factors, op.results[0], Made::Quotient(quotient), rule);
                    }
                }
            }
            ops.push(op);
        }
        // A product behind a change of sign is left without use, and tidied away.
        ops.retain(|op| !op.results.first().is_some_and(|result| fused.contains(result)));
        region.ops = ops;
    }

    /// A product that may be fused.
    fn product(
        &mut self,
        once: &mut HashMap<Value, (Made, FloatRule)>,
        product: Value,
        made: Made,
        rule: FloatRule,
    ) {
        self.products.insert(product, (self.inside, product));
        let sign = Sign::Kept;
        self.factors.insert(product, Factors { made, rule, sign });
        if self.uses.get(&product) == Some(&1) {
            once.insert(product, (made, rule));
        }
    }

    /// A sum with a product that ptxas fuses wherever both stand: they keep the permission.
    fn is_alike(&mut self, sum: &Op, a: Value, b: Value) {
        let products = [a, b].map(|value| self.products.get(&value).map(|(_, product)| *product));
        self.alike.extend(products.into_iter().flatten());
        self.alike.insert(sum.results[0]);
    }

    /// Whether a value is a product that the assembler may fuse with a sum here.
    fn is_product(&self, value: Value) -> bool {
        self.products
            .get(&value)
            .is_some_and(|(inside, _)| *inside == self.inside)
    }

    /// A sum of which the assembler may make several things: what was found out, or nothing yet.
    fn open_sum(
        &mut self,
        ops: &mut Vec<Op>,
        op: &mut Op,
        (sum, a, b): (BinaryOp, Value, Value),
        products: Vec<Value>,
    ) {
        let rule = op.kind.rule();
        let fusable = |value: Value| {
            let factors = self.factors.get(&value).copied();
            factors.filter(|own| self.is_product(value) && own.rule == rule)
        };
        let sides = [(Fused::Left, fusable(a)), (Fused::Right, fusable(b))];
        let possible = sides.iter().filter(|(_, factors)| factors.is_some());
        let number = self.open_sums.len();
        let mut choices = vec![Fused::Nothing];
        choices.extend(possible.map(|(side, _)| *side));
        let decided = self.decided.and_then(|all| all.get(number)).copied();
        let decided = decided.filter(|fused| choices.contains(fused));
        self.open_sums.push(choices);
        let Some(decided) = decided else {
            self.left.extend(products);
            self.left.insert(op.results[0]);
            return;
        };
        let subtracts = sum == BinaryOp::FSub;
        let chosen = sides.iter().find(|(side, _)| *side == decided);
        let Some((side, Some(Factors { made, sign, .. }))) = chosen.copied() else {
            return;
        };
        let (x, y) = match made {
            Made::Product(x, y) => (x, y),
            Made::Quotient(own) => own.written_out(self.kernel, ops, op.place, rule),
        };
        let (other, is_subtracted) = match side {
            Fused::Left => (b, false),
            Fused::Nothing | Fused::Right => (a, subtracts),
        };
        let other = self.negated(ops, op, other, side == Fused::Left && subtracts);
        let (x, y) = match sign {
            Sign::Dropped => (self.magnitude(ops, op, x), self.magnitude(ops, op, y)),
            Sign::Kept | Sign::Changed => (x, y),
        };
        let x = self.negated(ops, op, x, is_subtracted != (sign == Sign::Changed));
        op.kind = OpKind::Fma(x, y, other).ruled(rule);
    }

    /// What the sign of a product was changed in has its factors.
    fn signed(&mut self, product: Value, result: Value, rule: FloatRule, sign: Sign) {
        if let Some(&factors) = self.factors.get(&product)
            && factors.sign == Sign::Kept
            && factors.rule.flush == rule.flush
        {
            self.factors.insert(result, Factors { sign, ..factors });
        }
    }

    fn magnitude(&mut self, ops: &mut Vec<Op>, like: &Op, value: Value) -> Value {
        self.unary(ops, like, UnaryOp::FAbs, value)
    }

    /// What is made of a product stands for it.
    fn follow(&mut self, product: Value, result: Value) {
        if let Some(&known) = self.products.get(&product) {
            self.products.insert(result, known);
        }
    }

    fn negated(&mut self, ops: &mut Vec<Op>, like: &Op, value: Value, negate: bool) -> Value {
        match negate {
            true => self.unary(ops, like, UnaryOp::FNeg, value),
            false => value,
        }
    }

    fn unary(&mut self, ops: &mut Vec<Op>, like: &Op, operation: UnaryOp, value: Value) -> Value {
        let result = self.kernel.value_like(value);
        ops.push(Op {
            kind: OpKind::Unary(operation, value),
            results: vec![result],
            place: like.place,
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use super::Fused::{self, Left, Nothing, Right};
    use crate::ir::print;

    fn contracted(text: &str) -> String {
        print(&imported(text).kernel)
    }

    fn imported(text: &str) -> super::super::Imported {
        decided(text, None)
    }

    fn decided(text: &str, fused: Option<&[Fused]>) -> super::super::Imported {
        let module = format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .f32 %f<9>;\n\
             .reg .b64 %rd<3>;\nld.param.u64 %rd1, [p];\nld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd1+4];\n\
             ld.global.f32 %f3, [%rd1+8];\n{text}\nst.global.f32 [%rd1+12], %f6;\nret;\n}}\n"
        );
        let facts = super::super::Facts {
            fused: fused.map(<[Fused]>::to_vec),
            ..Default::default()
        };
        let imported = super::super::import(&module, "test.ptx", None, &facts);
        imported.expect("it is read")
    }

    #[test]
    fn what_ptxas_fuses_is_fused() {
        let kernel = contracted("mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;");
        assert!(kernel.contains("= fma") && !kernel.contains("fmul"), "{kernel}");
        assert!(!kernel.contains("contract"), "{kernel}");
    }

    #[test]
    fn a_change_of_sign_goes_with_the_product() {
        let kernel = contracted("mul.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;");
        assert!(kernel.contains("= fma") && !kernel.contains("fmul"), "{kernel}");
        assert!(!kernel.contains("contract"), "{kernel}");
    }

    #[test]
    fn a_subtraction_changes_a_sign() {
        for text in [
            "mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;",
            "mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f4, %f3;",
            "mul.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;",
        ] {
            let kernel = contracted(text);
            assert!(
                kernel.matches("= fneg").count() == 1 && kernel.contains("= fma"),
                "{kernel}"
            );
        }
    }

    /// A loop that runs twice, with this inside.
    fn looped(before: &str, inside: &str, behind: &str) -> String {
        format!(
            ".reg .b32 %r<3>;\n.reg .pred %p<2>;\nmov.u32 %r1, 0;\nmov.f32 %f6, %f3;\n{before}\nL:\n{inside}\n\
             add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 2;\n@%p1 bra L;\n{behind}"
        )
    }

    #[test]
    fn a_product_in_front_of_a_loop_is_not_fused_inside() {
        let outside = "mul.f32 %f4, %f1, %f2;";
        let imported = imported(&looped(outside, "add.f32 %f6, %f6, %f4;", ""));
        let kernel = print(&imported.kernel);
        assert!(
            kernel.contains("= fmul ") && kernel.contains("= fadd "),
            "{kernel}"
        );
        assert!(imported.original.undecided.is_none());
        // One of inside is, whatever it is added to.
        let kernel = contracted(&looped(
            outside,
            "mul.f32 %f5, %f6, %f1;\nadd.f32 %f6, %f5, %f4;",
            "",
        ));
        assert!(
            kernel.contains("= fma") && !kernel.contains("contract"),
            "{kernel}"
        );
    }

    #[test]
    fn what_is_left_to_the_assembler_is_not_written_back() {
        let product = "mul.f32 %f4, %f1, %f2;";
        let twice = "add.f32 %f5, %f3, %f4;\nadd.f32 %f6, %f5, %f4;";
        for (text, contracts) in [
            (format!("{product}\n{twice}"), 3),
            (format!("{product}\nabs.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;"), 2),
            (
                format!("{product}\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;\nadd.f32 %f6, %f6, %f4;"),
                3,
            ),
            // A change of sign that is used twice.
            (
                format!("{product}\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;\nadd.f32 %f6, %f6, %f5;"),
                3,
            ),
            // One that flushes, behind a product that does not.
            (
                format!("{product}\nneg.ftz.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;"),
                2,
            ),
            // One of several values.
            (
                format!(
                    ".reg .pred %p<2>;\n{product}\nsetp.lt.f32 %p1, %f1, %f2;\nselp.f32 %f5, %f4, %f3, %p1;\n\
                     add.f32 %f6, %f3, %f5;"
                ),
                2,
            ),
            // Beside a product that is used elsewhere, too, on either side.
            (
                format!(
                    "{product}\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;\nst.global.f32 [%rd1+16], %f5;"
                ),
                3,
            ),
            (
                format!(
                    "{product}\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f5, %f4;\nst.global.f32 [%rd1+16], %f5;"
                ),
                3,
            ),
            // Behind a loop that the product stands in front of.
            (looped(product, "add.f32 %f6, %f6, %f1;", twice), 3),
        ] {
            let imported = imported(&text);
            let kernel = print(&imported.kernel);
            assert_eq!(kernel.matches(".contract").count(), contracts, "{text}\n{kernel}");
            let error = imported.original.undecided.expect("undecided");
            assert!(error.to_string().contains("left to the assembler"), "{error}");
        }
    }

    #[test]
    fn what_was_found_out_is_carried_out() {
        let product = "mul.f32 %f4, %f1, %f2;";
        let twice = format!("{product}\nsub.f32 %f5, %f3, %f4;\nadd.f32 %f6, %f4, %f5;");
        let two = format!(
            "{product}\nmul.f32 %f5, %f2, %f3;\nsub.f32 %f6, %f4, %f5;\nst.global.f32 [%rd1+16], %f5;"
        );
        let magnitude = format!("{product}\nabs.f32 %f5, %f4;\nsub.f32 %f6, %f3, %f5;");
        let other_sign =
            format!("{product}\nneg.f32 %f5, %f4;\nsub.f32 %f6, %f3, %f5;\nst.global.f32 [%rd1+16], %f5;");
        // The possible choices for each sum; the choice; then fused operations, products, sums, changed signs and magnitudes.
        for (text, open, chosen, counts) in [
            (
                &twice,
                vec![vec![Nothing, Right], vec![Nothing, Left]],
                vec![Nothing, Nothing],
                [0, 1, 2, 0, 0],
            ),
            (
                &twice,
                vec![vec![Nothing, Right], vec![Nothing, Left]],
                vec![Right, Nothing],
                [1, 1, 1, 1, 0],
            ),
            (
                &twice,
                vec![vec![Nothing, Right], vec![Nothing, Left]],
                vec![Right, Left],
                [2, 0, 0, 1, 0],
            ),
            (
                &two,
                vec![vec![Nothing, Left, Right]],
                vec![Left],
                [1, 1, 0, 1, 0],
            ),
            (
                &two,
                vec![vec![Nothing, Left, Right]],
                vec![Right],
                [1, 2, 0, 1, 0],
            ),
            (
                &magnitude,
                vec![vec![Nothing, Right]],
                vec![Right],
                [1, 0, 0, 1, 2],
            ),
            (
                &other_sign,
                vec![vec![Nothing, Right]],
                vec![Right],
                [1, 1, 0, 1, 0],
            ),
        ] {
            assert_eq!(imported(text).original.open_sums, open, "{text}");
            let imported = decided(text, Some(&chosen));
            assert!(imported.original.undecided.is_none(), "{text}");
            let kernel = print(&imported.kernel);
            assert!(!kernel.contains("contract"), "{kernel}");
            let [fused, products, added, subtracted, negated, magnitudes] =
                ["fma", "fmul", "fadd", "fsub", "fneg", "fabs"]
                    .map(|op| kernel.matches(&format!("= {op} ")).count());
            let found = [fused, products, added + subtracted, negated, magnitudes];
            assert_eq!(found, counts, "{chosen:?}\n{kernel}");
        }
        // A sum that cannot be decided stays open.
        assert!(decided(&magnitude, Some(&[Left])).original.undecided.is_some());
        assert!(decided(&twice, Some(&[Right])).original.undecided.is_some());
    }

    #[test]
    fn a_quotient_is_fused_with_its_sum_by_the_assembler() {
        for (text, products) in [
            ("div.full.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f4, %f3;", 0),
            ("div.approx.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;", 0),
            ("div.full.ftz.f32 %f4, %f1, %f2;\nadd.ftz.f32 %f6, %f4, %f3;", 0),
            ("rcp.approx.f32 %f4, %f1;\nadd.f32 %f6, %f4, %f3;", 0),
            (
                "div.full.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f5, %f3;",
                0,
            ),
            // The one on the left, as with two products.
            (
                "div.full.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;",
                1,
            ),
            (
                "div.full.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f5, %f4;",
                1,
            ),
            (
                "mul.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nmul.f32 %f7, %f2, %f3;\nadd.f32 %f6, %f5, %f7;",
                2,
            ),
        ] {
            let imported = imported(text);
            let kernel = print(&imported.kernel);
            assert!(imported.original.undecided.is_none(), "{text}");
            assert!(!kernel.contains("= fma"), "{kernel}");
            assert_eq!(
                kernel.matches(".contract").count(),
                products + 1,
                "{text}\n{kernel}"
            );
        }
        // Another rule, no quotient at all, and an instruction that is one already.
        for text in [
            "div.full.f32 %f4, %f1, %f2;\nadd.rn.f32 %f6, %f4, %f3;",
            "rcp.approx.ftz.f32 %f4, %f1;\nadd.ftz.f32 %f6, %f4, %f3;",
            "div.rn.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f4, %f3;",
            // Something else needs the quotient.
            "div.full.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f4, %f3;\nst.global.f32 [%rd1+16], %f4;",
            "div.full.f32 %f4, %f1, %f2;\nsub.f32 %f5, %f3, %f4;\nmul.rn.f32 %f6, %f5, %f4;",
        ] {
            let imported = imported(text);
            assert!(imported.original.undecided.is_none(), "{text}");
            assert!(!print(&imported.kernel).contains("contract"), "{text}");
        }
    }

    #[test]
    fn a_quotient_whose_sum_is_open_is_written_out() {
        let behind = "add.f32 %f5, %f3, %f4;\nst.global.f32 [%rd1+16], %f5;\nadd.f32 %f6, %f3, %f4;";
        for (division, flushes, scaled, divisions) in [
            ("div.full.f32 %f4, %f1, %f2;", "", 4, 1),
            ("div.full.ftz.f32 %f4, %f1, %f2;", ".ftz", 2, 1),
            ("div.approx.f32 %f4, %f1, %f2;", "", 2, 1),
            // 1, scaled for a large divisor, is a constant.
            ("rcp.approx.f32 %f4, %f1;", "", 3, 0),
        ] {
            let text = format!("{division}\n{}", behind.replace("add", &format!("add{flushes}")));
            let open = imported(&text).original.open_sums;
            assert_eq!(open, [vec![Nothing, Right], vec![Nothing, Right]], "{text}");
            assert!(imported(&text).original.undecided.is_some());
            let rounded = decided(&text, Some(&[Nothing, Nothing]));
            assert!(rounded.original.undecided.is_none());
            assert!(!print(&rounded.kernel).contains("fma"), "{text}");
            let fused = decided(&text, Some(&[Right, Nothing]));
            assert!(fused.original.undecided.is_none());
            let kernel = print(&fused.kernel);
            assert_eq!(kernel.matches("= fma").count(), 1, "{kernel}");
            assert_eq!(kernel.matches("= fmul").count(), scaled, "{kernel}");
            assert_eq!(kernel.matches("= approximate.rcp.ftz").count(), 1, "{kernel}");
            assert_eq!(kernel.matches("= approximate.div").count(), divisions, "{kernel}");
        }
    }

    #[test]
    fn halves_are_written_back_if_they_are_rounded() {
        let halves = |mul: &str, add: &str| {
            let text = format!(
                ".reg .b16 %h<4>;\nld.global.u16 %h1, [%rd1];\n{mul}.f16 %h2, %h1, %h1;\n{add}.f16 %h3, %h2, %h1;\n\
                 st.global.u16 [%rd1+2], %h3;\nmov.f32 %f6, %f1;"
            );
            imported(&text).original.undecided
        };
        let error = halves("mul", "add").expect("undecided");
        assert!(error.to_string().contains("left to the assembler"), "{error}");
        assert!(halves("mul.rn", "add").is_none());
        assert!(halves("mul", "add.rn").is_none());
    }

    #[test]
    fn what_is_rounded_stays() {
        for text in [
            "mul.rn.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;",
            "mul.f32 %f4, %f1, %f2;\nsub.rn.f32 %f6, %f3, %f4;",
        ] {
            let kernel = contracted(text);
            assert!(!kernel.contains("fma") && kernel.contains("fmul"), "{kernel}");
            assert!(!kernel.contains("contract"), "{kernel}");
        }
    }

    #[test]
    fn a_choice_is_left_open() {
        let kernel = contracted("mul.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;");
        assert!(!kernel.contains("fma"), "{kernel}");
        assert_eq!(kernel.matches("fmul.contract").count(), 2, "{kernel}");
        assert_eq!(kernel.matches("fadd.contract").count(), 1, "{kernel}");
    }

    #[test]
    fn what_flushes_is_fused_with_what_flushes() {
        let kernel = contracted("mul.ftz.f32 %f4, %f1, %f2;\nadd.ftz.f32 %f6, %f3, %f4;");
        assert!(
            kernel.contains("= fma.ftz ") && !kernel.contains("fmul"),
            "{kernel}"
        );
        let kernel = contracted("mul.ftz.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f3, %f4;");
        assert!(kernel.contains("fmul.ftz.contract"), "{kernel}");
        assert!(kernel.contains("fadd.contract"), "{kernel}");
    }

    #[test]
    fn only_what_may_be_fused_is_open() {
        let kernel = contracted(
            "mul.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;\n\
             mul.rn.f32 %f7, %f6, %f6;\nadd.rn.f32 %f6, %f7, %f1;",
        );
        assert_eq!(kernel.matches(".contract").count(), 3, "{kernel}");
        assert!(
            kernel.contains("= fmul ") && kernel.contains("= fadd "),
            "{kernel}"
        );
    }
}
