//! Loads, stores, asynchronous copies and their tokens, hints, barriers; atomics and exchanges.

use super::super::draft::{Draft, Location, MemoryUse, Virtual};
use super::super::matrix;
use super::super::program::{Class, InstructionStep, Share};
use super::Selector;
use crate::analysis::roots::root;
use crate::ir::carried::{Carried, QUAD_BYTES, Quad};
use crate::ir::{CacheUse, MemoryOrder, Op, OpKind, Opaque, OpaqueOperands, Place, Space, Value};

impl Selector<'_, '_> {
    /// An operation that is neither pure nor structure.
    pub(super) fn memory(&mut self, op: &Op) {
        let step = InstructionStep::Op(op.clone());
        match &op.kind {
            OpKind::Load { ptr, cache, .. } => {
                let space = self.space(*ptr);
                let bytes = self.bytes(&op.results);
                let uses = self.read(*ptr, op.place);
                let defines = op.results.iter().map(|&result| self.defined(result)).collect();
                let here = Some(self.location(*ptr));
                let memory = MemoryUse {
                    reads: here,
                    writes: here.filter(|_| *cache == CacheUse::Volatile),
                };
                let draft = self.access(Class::Load { space, bytes }, op, uses, Some(memory));
                let share = self.share(*ptr);
                self.emit(Draft {
                    defines,
                    share,
                    ..draft
                });
            }
            OpKind::Store { ptr, values, .. } => {
                let space = self.space(*ptr);
                let bytes = self.bytes(values);
                let mut uses = self.read(*ptr, op.place);
                for &value in values {
                    uses.extend(match self.facts.nans.at_use(value) {
                        true => self.canonical(value, op.place),
                        false => self.in_register(value, op.place),
                    });
                }
                let memory = MemoryUse {
                    reads: None,
                    writes: Some(self.location(*ptr)),
                };
                let draft = self.access(Class::Store { space, bytes }, op, uses, Some(memory));
                self.emit(draft);
            }
            OpKind::Copy { to, from, bytes, .. } => {
                let mut uses = self.read(*to, op.place);
                uses.extend(self.read(*from, op.place));
                let memory = MemoryUse {
                    reads: Some(self.location(*from)),
                    writes: Some(self.location(*to)),
                };
                let class = Class::AsyncCopy { bytes: *bytes as u8 };
                let draft = self.access(class, op, uses, Some(memory));
                let token = op.results[0];
                let register = self.register_of(token);
                self.emit(Draft {
                    defines: vec![register],
                    ..draft
                });
                self.commit(token, op.place);
            }
            OpKind::Join(_) => {
                let token = op.results[0];
                let uses: Vec<Virtual> = self.read_operands(op).into_iter().flatten().collect();
                self.registers[token] = uses;
                self.emit(Draft {
                    steps: vec![step],
                    ..Draft::new(Class::None, op.place)
                });
                self.commit(token, op.place);
            }
            OpKind::Wait(token) => {
                let uses = self.read(*token, op.place);
                // The copied data are in shared memory only from here on.
                let shared = Location {
                    space: Space::Shared,
                    root: None,
                };
                let memory = MemoryUse {
                    reads: None,
                    writes: Some(shared),
                };
                let draft = self.access(Class::Wait, op, uses, Some(memory));
                self.emit(draft);
            }
            OpKind::Prefetch { ptr, bytes, .. } => {
                let uses = self.read(*ptr, op.place);
                for _ in 1..bytes.div_ceil(self.facts.target.prefetches().piece) {
                    self.emit(Draft {
                        uses: uses.clone(),
                        ..Draft::new(Class::Prefetch, op.place)
                    });
                }
                let draft = self.access(Class::Prefetch, op, uses, None);
                let share = self.share(*ptr);
                self.emit(Draft { share, ..draft });
            }
            OpKind::Atomic { .. } => self.atomic(op),
            OpKind::Print { values, .. } => self.print(op, values),
            OpKind::Opaque(what, _) if matrix::moved(what).is_some() => self.move_matrix(op, what),
            OpKind::Opaque(what, given) => match &*what.does {
                Carried::Quad(quad) => self.quad(op, (what, quad), given),
                _ => self.carried(op, what),
            },
            kind => {
                let effects = kind.effects();
                let class = match effects.meets_work_group() {
                    // The timer takes a named one for one of the whole work-group.
                    true => Class::Barrier,
                    false if effects.meets() && !effects.is_barrier() => return self.exchange(op),
                    // A sub-group issues together.
                    false => Class::Fence,
                };
                let draft = self.whole(op, class, None);
                self.emit(Draft { fixed: true, ..draft });
            }
        }
    }

    fn atomic(&mut self, op: &Op) {
        let OpKind::Atomic {
            op: atomic,
            ptr,
            values,
            order,
            scope,
        } = &op.kind
        else {
            return;
        };
        let bytes = match values.first() {
            Some(_) if atomic.can_be_several() => self.bytes(values),
            Some(_) => self.bytes(&values[..1]),
            None => self.bytes(&op.results),
        };
        let space = self.space(*ptr);
        let mut uses = self.read(*ptr, op.place);
        for &value in values {
            uses.extend(self.in_register(value, op.place));
        }
        // One whose result is not used is a reduction: nothing comes back.
        let wanted = |result: &&Value| !self.facts.uses[**result].is_empty();
        let wanted: Vec<Value> = op.results.iter().filter(wanted).copied().collect();
        let defines = wanted.iter().map(|&result| self.defined(result)).collect();
        let here = Some(self.location(*ptr));
        let memory = MemoryUse {
            reads: here,
            writes: here,
        };
        if order.releases() && scope.is_wide() && space != Space::Shared {
            self.release(op);
        }
        let draft = self.access(Class::Atomic { space, bytes }, op, uses, Some(memory));
        // Accesses that an order concerns may not move across it; nothing does.
        let fixed = *order != MemoryOrder::Relaxed;
        self.emit(Draft {
            defines,
            fixed,
            ..draft
        });
    }

    /// Whether one lane makes an access for all.
    fn share(&self, pointer: Value) -> Share {
        match self.facts.is_scalar(pointer) {
            true => Share::One,
            false => Share::Whole,
        }
    }

    /// An instruction with all operands of its operation, and all results.
    fn whole(&mut self, op: &Op, class: Class, memory: Option<MemoryUse>) -> Draft {
        let uses = self.read_operands(op).into_iter().flatten().collect();
        let defines = op.results.iter().map(|&result| self.defined(result)).collect();
        Draft {
            defines,
            ..self.access(class, op, uses, memory)
        }
    }

    /// All work-items see the earlier accesses before an operation.
    fn release(&mut self, op: &Op) {
        let before = self.access(Class::Fence, op, Vec::new(), None);
        self.emit(Draft {
            steps: Vec::new(),
            fixed: true,
            ..before
        });
    }

    /// A carried instruction that accesses no memory, or none that is known.
    fn carried(&mut self, op: &Op, what: &Opaque) {
        let class = match (matrix::product(what), matrix::group_mark(what), what.orders) {
            (Some(product), _, false) => product,
            (_, Some(mark), _) => mark,
            (_, None, true) => Class::Fence,
            (None, None, false) => Class::Shuffle,
        };
        let draft = self.whole(op, class, None);
        self.emit(Draft {
            // Loads move across products, as across other arithmetic, but not across those of warp groups, which read memory.
            fixed: !matches!(class, Class::Matrix { .. }) || what.asynchronous,
            ..draft
        });
    }

    /// An operation on 16 bytes at once.
    fn quad(&mut self, op: &Op, (what, quad): (&Opaque, &Quad), given: &OpaqueOperands) {
        let uses: Vec<Virtual> = self.read_operands(op).into_iter().flatten().collect();
        let defines = op.results.iter().map(|&result| self.defined(result)).collect();
        let pointer = given
            .0
            .first()
            .filter(|&&value| self.facts.kernel.ty(value).is_pointer());
        let here = match pointer {
            Some(&pointer) => self.location(pointer),
            None => Location {
                space: quad.space,
                root: None,
            },
        };
        let space = match here.space {
            Space::Generic => quad.space,
            space => space,
        };
        if quad.releases() && space != Space::Shared {
            self.release(op);
        }
        let (reads, writes) = quad.directions();
        let memory = MemoryUse {
            reads: reads.then_some(here),
            writes: writes.then_some(here),
        };
        let class = Class::Atomic {
            space,
            bytes: QUAD_BYTES as u8,
        };
        let draft = self.access(class, op, uses, Some(memory));
        self.emit(Draft {
            defines,
            // Nothing moves across an order, or across what may lead anywhere.
            fixed: what.orders || here.space == Space::Generic,
            ..draft
        });
    }

    /// A matrix between memory and registers. The last of its instructions has the operation, and makes the results.
    fn move_matrix(&mut self, op: &Op, what: &Opaque) {
        let Some((class, count)) = matrix::moved(what) else {
            return;
        };
        let uses: Vec<Virtual> = self.read_operands(op).into_iter().flatten().collect();
        let defines = op.results.iter().map(|&result| self.defined(result)).collect();
        let (space, writes) = match class {
            Class::Store { space, .. } => (space, true),
            Class::Load { space, .. } => (space, false),
            _ => return,
        };
        let here = (space != Space::Generic).then_some(Location { space, root: None });
        let memory = MemoryUse {
            reads: here.filter(|_| !writes),
            writes: here.filter(|_| writes),
        };
        for _ in 1..count {
            let one = self.access(class, op, uses.clone(), Some(memory));
            self.emit(Draft {
                steps: Vec::new(),
                fixed: here.is_none(),
                ..one
            });
        }
        let draft = self.access(class, op, uses, Some(memory));
        self.emit(Draft {
            defines,
            fixed: here.is_none(),
            ..draft
        });
    }

    /// A shuffle, 32 bits at a time, or a vote.
    fn exchange(&mut self, op: &Op) {
        let uses: Vec<Virtual> = self.read_operands(op).into_iter().flatten().collect();
        let result = op.results[0];
        for _ in 1..self.facts.width(result) {
            let half = self.register(1);
            self.emit(Draft {
                defines: vec![half],
                uses: uses.clone(),
                ..Draft::new(Class::Shuffle, op.place)
            });
        }
        let defines = vec![self.defined(result)];
        let draft = self.access(Class::Shuffle, op, uses, None);
        self.emit(Draft { defines, ..draft });
    }

    /// An instruction that carries its operation, under the predicate that holds here.
    fn access(&self, class: Class, op: &Op, mut uses: Vec<Virtual>, memory: Option<MemoryUse>) -> Draft {
        let guard = self.predicate.as_ref().map(|(guard, registers)| {
            uses.extend(registers);
            *guard
        });
        uses.sort_unstable();
        uses.dedup();
        Draft {
            steps: vec![InstructionStep::Op(op.clone())],
            guard,
            uses,
            memory,
            ..Draft::new(class, op.place)
        }
    }

    /// A line goes into a buffer in memory, for the host to write out later: an atomic operation reserves room, and each value
    /// is stored there. These are the instructions; which lines of the memory they reach is not known, and takes no time.
    fn print(&mut self, op: &Op, values: &[Value]) {
        let room = self.register(1);
        let reserve = Class::Atomic {
            space: Space::Global,
            bytes: 4,
        };
        let reserve = self.access(reserve, op, Vec::new(), None);
        self.emit(Draft {
            steps: Vec::new(),
            defines: vec![room],
            fixed: true,
            ..reserve
        });
        for &value in values {
            let mut uses = self.in_register(value, op.place);
            uses.push(room);
            let store = Class::Store {
                space: Space::Global,
                bytes: self.bytes(&[value]),
            };
            let store = self.access(store, op, uses, None);
            self.emit(Draft {
                steps: Vec::new(),
                fixed: true,
                ..store
            });
        }
        // What stands for the line itself: nothing moves across it.
        let line = self.access(Class::Fence, op, vec![room], None);
        self.emit(Draft { fixed: true, ..line });
    }

    /// The register that an access writes: chosen already where two sides of an `if` share it.
    fn defined(&mut self, result: Value) -> Virtual {
        match self.registers[result][..] {
            [register] => register,
            _ => self.register_of(result),
        }
    }

    /// A value in a register: stores take nothing else, but the zero register.
    fn in_register(&mut self, value: Value, place: Place) -> Vec<Virtual> {
        let kernel = self.facts.kernel;
        if !self.facts.is_immediate(value) || kernel.as_constant(value) == Some(0) {
            return self.read(value, place);
        }
        let halves = kernel.ty(value).bytes().div_ceil(4).max(1);
        let mut registers = Vec::new();
        for _ in 0..halves {
            let register = self.register(1);
            self.emit(Draft {
                defines: vec![register],
                ..Draft::new(Class::Int32, place)
            });
            registers.push(register);
        }
        registers
    }

    /// Bytes per lane of values of one type.
    pub(super) fn bytes(&self, values: &[Value]) -> u8 {
        let each = values
            .first()
            .map_or(0, |&value| self.facts.kernel.ty(value).bytes());
        (each * values.len() as u32) as u8
    }

    fn location(&self, pointer: Value) -> Location {
        Location {
            space: self.space(pointer),
            root: root(self.facts.kernel, &self.definitions, pointer),
        }
    }

    /// Closes the group of a token's copies, if that is done behind the operation that made it.
    pub(crate) fn commit(&mut self, token: Value, place: Place) {
        if !self.facts.commits.contains(&token) {
            return;
        }
        let uses = self.registers[token].clone();
        let register = self.register_of(token);
        self.emit(Draft {
            defines: vec![register],
            uses,
            ..Draft::new(Class::Commit, place)
        });
    }
}
