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
//! they stand (57 entries of the corpus have the original's bits on an H200), but in copies of a loop: of `x * k + y * z` it
//! fuses the second product, and the first one in a copy in which `k` is known to be 1; of `(x * y) * k + z` the product `x * y`.
//! In other cases (a product used twice or in another block, a product whose magnitude is taken, only one of the two flushes)
//! its choice depends on the surrounding code.
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

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use super::quotient::Quotient;
use crate::analysis::definitions::{Definition, Definitions};
use crate::error::Error;
use crate::ir::{
    BinaryOp, CutEdge, FloatRule, Fused, Kernel, Label, Op, OpKind, Place, Region, Type, UnaryOp, Value,
};

/// Products and sums of halves, single or in pairs, that were written without `.rn`. It is not known which of them ptxas
/// fuses.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenHalves {
    pub products: Vec<Value>,
    pub sums: Vec<Value>,
}

/// Products and sums that an assembler may fuse otherwise in copies of a loop.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// Why the loop cannot be copied if the copies are not compared.
    pub why: Error,
    /// Where they stand.
    pub places: HashSet<Place>,
}

/// What is left of an entry's products and sums.
pub(super) struct Contracted {
    /// The possible choices for each sum that is left to the assembler, in program order.
    pub open_sums: Vec<Vec<Fused>>,
    /// Products and sums for which the assembler may choose otherwise in other code.
    pub left: HashSet<Value>,
    /// Sums of two products, or of a product of a product: where a factor is known the assembler may fuse the other one.
    pub of_products: HashSet<Value>,
    /// The sums of a known choice.
    pub known: Known,
}

/// Open sums whose choice is known.
#[derive(Default)]
pub(super) struct Known {
    /// They are rounded alone, as `.rn` says.
    rounded: HashSet<Value>,
    /// They are fused with a product.
    fused: HashSet<Value>,
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
        of_products: HashSet::new(),
        known: Known::default(),
    };
    fuser.region(&mut body);
    let Fuser {
        mut left,
        alike,
        of_products,
        open_sums,
        known,
        ..
    } = fuser;
    // The permission is for wider numbers: these are read as rounded.
    let mut open_halves: HashSet<Value> = HashSet::new();
    if !halves.products.is_empty() && !halves.sums.is_empty() {
        open_halves.extend(halves.products.iter().chain(&halves.sums));
    }
    let undecided = left.union(&open_halves).copied().collect();
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
        left: undecided,
        of_products,
        known,
    }
}

/// Where the sums stand that copies must round alone.
pub(super) fn rounded(kernel: &Kernel, known: &Known) -> HashSet<Place> {
    let mut places = HashSet::new();
    kernel.body.walk(&mut |op| {
        if op.results.first().is_some_and(|sum| known.rounded.contains(sum)) {
            places.insert(op.place);
        }
    });
    places
}

fn left_open() -> Error {
    Error::input(
        "the loop cannot be edited: whether a product and a sum are fused here is left to the assembler, which may decide \
         otherwise in other code",
    )
    .accepted("`.rn` on both, as `-fmad=false` gives")
}

/// Why the planned loop of this number cannot be copied, if that is so: the assembler decides by the code around about sums in it
/// (`left`), or by what it knows in a copy (`of_products`), or the known choice is to fuse one, which text does not state; or it
/// decides about one that takes a product of the loop, made in another iteration or taken behind the loop: it may move the product
/// there and fuse both, and does so otherwise where copies follow each other.
pub(super) fn in_copies(
    kernel: &Kernel,
    open: &HashSet<Value>,
    contracted: &Contracted,
    number: u32,
) -> Option<Undecided> {
    let Contracted {
        left,
        of_products,
        known,
        ..
    } = contracted;
    let (mut entered, mut found) = (false, None);
    kernel.body.walk(&mut |op| {
        let edge = op.kind.label().and_then(|label| kernel.labels[label].edge);
        entered |= edge == Some(CutEdge::Enter(number));
        if entered && let OpKind::Loop { label, body, .. } = &op.kind {
            found.get_or_insert((*label, body));
        }
    });
    let (label, body) = found?;
    let inside = body.defined(&[]);
    let definitions = Definitions::of(kernel);
    let mut odd: Vec<Place> = Vec::new();
    kernel.body.walk(&mut |op| {
        let addends = match *op.kind.plain() {
            OpKind::Binary(BinaryOp::FAdd | BinaryOp::FSub, a, b) => vec![a, b],
            // Of a product and a sum that are open it may fuse the other product.
            OpKind::Fma(_, _, addend) => vec![addend],
            _ => return,
        };
        let sum = op.results[0];
        if open.contains(&sum)
            && !known.rounded.contains(&sum)
            && addends.iter().any(|&value| {
                let mut trace = Trace {
                    definitions: &definitions,
                    open,
                    label,
                    products: Vec::new(),
                    handed_on: Vec::new(),
                };
                trace.follow(value);
                match inside.contains(sum) {
                    true => trace.comes_from_before(),
                    false => trace.products.iter().any(|&product| inside.contains(product)),
                }
            })
        {
            odd.push(op.place);
        }
    });
    body.walk(&mut |op| {
        let is_odd = |result: &Value| {
            [left, of_products, &known.fused]
                .iter()
                .any(|odd| odd.contains(result))
        };
        if op.results.first().is_some_and(is_odd) {
            odd.push(op.place);
        }
    });
    let first = *odd.first()?;
    Some(Undecided {
        why: left_open().at(kernel.describe_place(first)),
        places: odd.into_iter().collect(),
    })
}

/// The open products that a value may be, itself or with another sign.
struct Trace<'t> {
    definitions: &'t Definitions,
    open: &'t HashSet<Value>,
    /// A loop.
    label: Label,
    products: Vec<Value>,
    /// What the loop's iterations hand on that it may be.
    handed_on: Vec<Value>,
}

impl Trace<'_> {
    fn follow(&mut self, value: Value) {
        let (mut seen, mut work) = (HashSet::new(), vec![value]);
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.definitions.get(value) {
                Some(Definition::Result { kind, passed, .. }) => match kind.plain() {
                    OpKind::Binary(BinaryOp::FMul, ..) if self.open.contains(&value) => {
                        self.products.push(value)
                    }
                    plain if Quotient::of(plain, kind.rule()).is_some() => self.products.push(value),
                    OpKind::Unary(UnaryOp::FNeg | UnaryOp::FAbs, of) => work.push(*of),
                    OpKind::Select(_, a, b) => work.extend([*a, *b]),
                    _ => work.extend(passed),
                },
                Some(Definition::LoopParam { label, next, .. }) if *label == self.label => {
                    self.handed_on.extend(next);
                }
                // What another loop's iteration passes to the next one is made there.
                Some(Definition::LoopParam { .. }) | None => {}
            }
        }
    }

    /// Whether the value may be a product of an iteration before.
    fn comes_from_before(mut self) -> bool {
        self.products.clear();
        let mut seen = HashSet::new();
        while let Some(value) = self.handed_on.pop() {
            if seen.insert(value) {
                self.follow(value);
            }
        }
        !self.products.is_empty()
    }
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
    /// The number of the current loop. Each product has the number of its own; one from before the loop is not computed again
    /// inside.
    inside: u32,
    loops: u32,
    /// Products and sums that the assembler may fuse or not, depending on the surrounding code.
    left: HashSet<Value>,
    /// Products and sums that the assembler fuses in the same way in any surrounding code.
    alike: HashSet<Value>,
    of_products: HashSet<Value>,
    known: Known,
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
    /// Remembers a sum with a product that has a product for a factor: where the other factor is known to be 1 that one is fused, and
    /// may be in straight code if it stands in front of the loop.
    fn of_factors(&mut self, sum: Value, factors: [Value; 2]) {
        if factors.iter().any(|factor| self.products.contains_key(factor)) {
            self.of_products.insert(sum);
        }
    }

    fn region(&mut self, region: &mut Region) {
        // The products of this region that have one use, with their factors and their rule.
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
                            self.of_factors(op.results[0], [x, y]);
                            let c = self.negated(&mut ops, &op, b, sum == BinaryOp::FSub);
                            op.kind = OpKind::Fma(x, y, c).ruled(rule);
                        }
                        [None, Some((Made::Product(x, y), _))] if !self.is_product(a) => {
                            fused.insert(b);
                            self.of_factors(op.results[0], [x, y]);
                            let x = self.negated(&mut ops, &op, x, sum == BinaryOp::FSub);
                            op.kind = OpKind::Fma(x, y, a).ruled(rule);
                        }
                        [Some(_), None] if !self.is_product(b) => self.is_alike(&op, a, b),
                        [None, Some(_)] if !self.is_product(a) => self.is_alike(&op, a, b),
                        // Two products without another use: it fuses the same one everywhere but in copies.
                        [Some(_), Some(_)] => {
                            self.of_products.insert(op.results[0]);
                            self.is_alike(&op, a, b);
                        }
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
        // A product whose sign was changed has no use left. A later pass removes it.
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

    /// ptxas fuses this sum with its product in any surrounding code: both keep the permission.
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

    /// A sum that the assembler may fuse in several ways. It becomes the decided one; without a decision it stays open.
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
            self.known.rounded.insert(op.results[0]);
            return;
        };
        self.known.fused.insert(op.results[0]);
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

    /// A product with a changed sign has the factors of the product.
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

    /// A value that is computed from a product counts as that product.
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
        ops.push(Op::new(OpKind::Unary(operation, value), vec![result], like.place));
        result
    }
}
