//! Folds constants, `if`s whose condition is known, blocks left only at their end, chains of
//! additions, and extensions that are cut off again.

use std::collections::HashMap;

use crate::ir::{BinaryOp, Builder, ConvertOp, Kernel, Label, Op, OpKind, Region, Type, Value};

/// Folds a whole kernel.
pub(super) fn fold(kernel: &mut Kernel) {
    let body = std::mem::take(&mut kernel.body);
    let mut folder = Folder {
        values: HashMap::new(),
        sums: HashMap::new(),
        extended: HashMap::new(),
    };
    let body = folder.region(kernel, body);
    kernel.body = body;
}

/// A value known as another one plus a constant.
#[derive(Clone, Copy)]
struct Sum {
    of: Value,
    plus: u64,
}

struct Folder {
    /// A value's replacement.
    values: HashMap<Value, Value>,
    sums: HashMap<Value, Sum>,
    /// What a value extends.
    extended: HashMap<Value, Value>,
}

impl Folder {
    fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    fn region(&mut self, kernel: &mut Kernel, region: Region) -> Region {
        let mut out = Vec::with_capacity(region.ops.len());
        self.ops(kernel, region.ops, &mut out);
        Region { ops: out }
    }

    /// Appends the folded operations to `out`; stops behind the first terminator.
    fn ops(&mut self, kernel: &mut Kernel, ops: Vec<Op>, out: &mut Vec<Op>) {
        for op in ops {
            self.op(kernel, op, out);
            if out.last().is_some_and(|last| last.kind.is_terminator()) {
                break;
            }
        }
    }

    fn op(&mut self, kernel: &mut Kernel, mut op: Op, out: &mut Vec<Op>) {
        op.kind.map_operands(|value| self.value(value));
        match op.kind {
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } if kernel.as_constant(cond).is_some() => {
                let taken = if kernel.as_constant(cond) == Some(1) {
                    then
                } else {
                    otherwise
                };
                let kind = OpKind::Block { label, body: taken };
                self.block(kernel, Op::new(kind, op.results, op.place), out);
            }
            OpKind::Block { .. } => self.block(kernel, op, out),
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                let then = self.region(kernel, then);
                let otherwise = self.region(kernel, otherwise);
                let kind = OpKind::if_(label, cond, then, otherwise);
                out.push(Op::new(kind, op.results, op.place));
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                wishes,
            } => {
                let body = self.region(kernel, body);
                let kind = OpKind::Loop {
                    label,
                    params,
                    initial,
                    body,
                    wishes,
                };
                out.push(Op::new(kind, op.results, op.place));
            }
            _ => match self.simpler(kernel, &op, out) {
                Some(known) => {
                    self.values.insert(op.results[0], known);
                }
                None => out.push(op),
            },
        }
    }

    /// A block that only its last operation leaves is its content.
    fn block(&mut self, kernel: &mut Kernel, op: Op, out: &mut Vec<Op>) {
        let OpKind::Block { label, body } = op.kind else {
            return;
        };
        let leaves_early = body.ops.iter().any(|inner| {
            let mut found = false;
            for region in inner.kind.regions() {
                region.walk(&mut |op| found |= breaks_to(op, label));
            }
            found
        });
        if leaves_early || kernel.is_edge(label) {
            let body = self.region(kernel, body);
            out.push(Op {
                kind: OpKind::Block { label, body },
                results: op.results,
                place: op.place,
            });
            return;
        }
        self.ops(kernel, body.ops, out);
        if let Some(OpKind::Break(target, values)) = out.last().map(|op| op.kind.clone())
            && target == label
        {
            out.pop();
            for (&result, value) in op.results.iter().zip(values) {
                self.values.insert(result, value);
            }
        }
    }

    /// The value that a pure operation is known to have, or nothing. May append a simpler operation.
    fn simpler(&mut self, kernel: &mut Kernel, op: &Op, out: &mut Vec<Op>) -> Option<Value> {
        if !op.kind.is_pure() {
            return None;
        }
        let result = op.results[0];
        let ty = kernel.ty(result);
        match op.kind {
            OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, a) => {
                self.extended.insert(result, a);
            }
            // The low bits of an extension are the number.
            OpKind::Convert(ConvertOp::Truncate, a) => {
                let narrow = self.extended.get(&a).copied();
                if let Some(narrow) = narrow.filter(|&narrow| kernel.ty(narrow) == ty) {
                    return Some(narrow);
                }
            }
            _ => {}
        }
        let mut b = Builder::new(kernel, op.place);
        let value = match op.kind {
            OpKind::Unary(kind, a) => b.unary(kind, a),
            OpKind::Binary(BinaryOp::Add, a, c) => return self.add(kernel, op, ty, a, c, out),
            OpKind::Binary(kind, a, c) => b.binary(kind, a, c),
            OpKind::NoWrap(kind, wrap, a, c) => b.no_wrap(kind, wrap, a, c),
            OpKind::Fma(x, y, z) => b.fma(x, y, z),
            OpKind::Compare(kind, a, c) => b.compare(kind, a, c),
            OpKind::Select(cond, a, c) => b.select(cond, a, c),
            OpKind::Convert(kind, a) => b.convert(kind, ty, a),
            OpKind::Ruled(rule, ref plain) => b.ruled(rule, (**plain).clone(), ty),
            OpKind::Address { .. } => return self.address(kernel, op, out),
            _ => return None,
        };
        // An operation of its own means that nothing simpler was found.
        if b.ops().is_empty() { Some(value) } else { None }
    }

    /// `(x + 1) + 2` is `x + 3`.
    fn add(
        &mut self,
        kernel: &mut Kernel,
        op: &Op,
        ty: Type,
        a: Value,
        c: Value,
        out: &mut Vec<Op>,
    ) -> Option<Value> {
        let (of, plus) = match (kernel.as_constant(a), kernel.as_constant(c)) {
            (None, Some(plus)) => (a, plus),
            (Some(plus), None) => (c, plus),
            (Some(x), Some(y)) => return Some(kernel.constant(ty, x.wrapping_add(y))),
            (None, None) => return None,
        };
        let sum = match self.sums.get(&of) {
            Some(inner) => Sum {
                of: inner.of,
                plus: inner.plus.wrapping_add(plus) & ty.mask(),
            },
            None => Sum { of, plus },
        };
        if sum.plus == 0 {
            return Some(sum.of);
        }
        self.sums.insert(op.results[0], sum);
        let plus = kernel.constant(ty, sum.plus);
        let kind = OpKind::Binary(BinaryOp::Add, sum.of, plus);
        out.push(Op::new(kind, op.results.clone(), op.place));
        // The operation is there already, under its own name.
        Some(op.results[0])
    }

    /// `(p + 8) + 16` is `p + 24`; an index `i + 1` of 4-byte elements is `i` and 4 bytes.
    fn address(&mut self, kernel: &mut Kernel, op: &Op, out: &mut Vec<Op>) -> Option<Value> {
        let OpKind::Address {
            base,
            mut index,
            scale,
            mut offset,
        } = op.kind
        else {
            return None;
        };
        if let Some(sum) = self.sums.get(&index) {
            index = sum.of;
            offset = offset.wrapping_add(sum.plus.wrapping_mul(u64::from(scale)) as i64);
        }
        if let Some(bits) = kernel.as_constant(index)
            && bits != 0
        {
            offset = offset.wrapping_add(bits.wrapping_mul(u64::from(scale)) as i64);
            index = kernel.constant(Type::I64, 0);
        }
        if kernel.as_constant(index) == Some(0) {
            let inner = self.sums.get(&base).copied().unwrap_or(Sum { of: base, plus: 0 });
            let plus = inner.plus.wrapping_add(offset as u64);
            if plus == 0 {
                return Some(inner.of);
            }
            self.sums.insert(op.results[0], Sum { of: inner.of, plus });
            let kind = OpKind::address(inner.of, index, 1, plus as i64);
            out.push(Op::new(kind, op.results.clone(), op.place));
            return Some(op.results[0]);
        }
        let kind = OpKind::address(base, index, scale, offset);
        out.push(Op::new(kind, op.results.clone(), op.place));
        Some(op.results[0])
    }
}

fn breaks_to(op: &Op, label: Label) -> bool {
    matches!(&op.kind, OpKind::Break(target, _) if *target == label)
}
