//! A second opinion: the IR interpreted one work-item at a time, by recursion over regions.
//!
//! Nothing here is shared with the engine but [`eval`]. Pointers are a buffer's number and an offset;
//! there are no arrays, no copies and no barriers.

use std::collections::HashMap;

use crate::ir::{Id, Kernel, Label, Op, OpKind, Region, Type, Value, eval};

/// One work-item.
pub(super) struct Interpreter<'k> {
    pub kernel: &'k Kernel,
    /// Each pointer parameter's memory, in the order of the parameters; the address of byte `b` of buffer
    /// `n` is `n × 2³² + b`.
    pub buffers: &'k mut [Vec<u8>],
    pub local: u32,
    pub group: u32,
    pub group_size: u32,
    values: HashMap<Value, u64>,
}

/// How a region ends.
enum Exit {
    Break(Label, Vec<u64>),
    Continue(Label, Vec<u64>),
    Return,
}

impl<'k> Interpreter<'k> {
    pub fn new(
        kernel: &'k Kernel,
        buffers: &'k mut [Vec<u8>],
        scalars: &[u64],
        local: u32,
        group: u32,
        group_size: u32,
    ) -> Interpreter<'k> {
        let mut values = HashMap::new();
        let (mut buffer, mut scalar) = (0u64, scalars.iter());
        for param in &kernel.params {
            let bits = match kernel.ty(param.value).is_pointer() {
                true => {
                    buffer += 1;
                    (buffer - 1) << 32
                }
                false => *scalar.next().expect("a scalar for each parameter"),
            };
            values.insert(param.value, bits);
        }
        Interpreter {
            kernel,
            buffers,
            local,
            group,
            group_size,
            values,
        }
    }

    /// Runs the work-item to its end.
    pub fn run(&mut self) {
        assert!(matches!(self.region(&self.kernel.body), Exit::Return));
    }

    fn value(&self, value: Value) -> u64 {
        match self.kernel.as_constant(value) {
            Some(bits) => bits,
            None => self.values[&value],
        }
    }

    fn all(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|&value| self.value(value)).collect()
    }

    fn region(&mut self, region: &Region) -> Exit {
        for op in &region.ops {
            if let Some(exit) = self.op(op) {
                return exit;
            }
        }
        panic!("a region without a terminator");
    }

    /// Runs an operation; how the region ends, if it does.
    fn op(&mut self, op: &Op) -> Option<Exit> {
        let ty = |value: Value| self.kernel.ty(value);
        let result = op.results.first().map(|&value| ty(value));
        let bits = match &op.kind {
            OpKind::Id(id) => u64::from(match id {
                Id::Local(0) => self.local,
                Id::Group(0) => self.group,
                Id::GroupSize(0) => self.group_size,
                _ => panic!("not asked here"),
            }),
            OpKind::Unary(op, a) => eval::unary(*op, ty(*a), self.value(*a)),
            OpKind::Binary(op, a, b) => eval::binary(*op, ty(*a), self.value(*a), self.value(*b)),
            OpKind::Ruled(rule, plain) => {
                let bits = |value| self.value(value);
                eval::ruled::ruled(*rule, plain, ty(op.results[0]), ty, bits).expect("it is arithmetic")
            }
            OpKind::Fma(a, b, c) => eval::fma(ty(*a), self.value(*a), self.value(*b), self.value(*c)),
            OpKind::Compare(op, a, b) => {
                u64::from(eval::compare(*op, ty(*a), self.value(*a), self.value(*b)))
            }
            OpKind::Select(cond, a, b) => self.value(if self.value(*cond) != 0 { *a } else { *b }),
            OpKind::Convert(op, a) => {
                let to = result.expect("a conversion has a result");
                eval::convert(*op, ty(*a), to, self.value(*a))
            }
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => eval::address(self.value(*base), self.value(*index), *scale, *offset),
            OpKind::Load { ptr, .. } => {
                let size = result.map_or(0, Type::bytes) as usize;
                let start = self.value(*ptr);
                let memory = &self.buffers[(start >> 32) as usize];
                let mut bits = [0; 8];
                bits[..size].copy_from_slice(&memory[start as u32 as usize..][..size]);
                u64::from_le_bytes(bits)
            }
            OpKind::Store { ptr, values, .. } => {
                let size = ty(values[0]).bytes() as usize;
                let (start, bits) = (self.value(*ptr), self.value(values[0]));
                let memory = &mut self.buffers[(start >> 32) as usize];
                memory[start as u32 as usize..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
                return None;
            }
            OpKind::Block { label, body } => {
                let exit = self.region(body);
                return self.leave(op, *label, exit);
            }
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                let taken = if self.value(*cond) != 0 { then } else { otherwise };
                let exit = self.region(taken);
                return self.leave(op, *label, exit);
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                ..
            } => {
                let mut next = self.all(initial);
                loop {
                    self.values.extend(params.iter().copied().zip(next));
                    match self.region(body) {
                        Exit::Continue(target, values) if target == *label => next = values,
                        exit => return self.leave(op, *label, exit),
                    }
                }
            }
            OpKind::Break(label, values) => return Some(Exit::Break(*label, self.all(values))),
            OpKind::Continue(label, values) => return Some(Exit::Continue(*label, self.all(values))),
            OpKind::Return => return Some(Exit::Return),
            other => panic!("not interpreted here: {other:?}"),
        };
        self.values.insert(op.results[0], bits);
        None
    }

    /// A scope was left: its results, if it was this one; else the region around is left, too.
    fn leave(&mut self, op: &Op, label: Label, exit: Exit) -> Option<Exit> {
        match exit {
            Exit::Break(target, values) if target == label => {
                self.values.extend(op.results.iter().copied().zip(values));
                None
            }
            exit => Some(exit),
        }
    }
}
