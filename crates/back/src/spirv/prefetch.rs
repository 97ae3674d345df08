//! Cache hints: the messages that a hint becomes, and the functions that send them.
//!
//! # The form that Intel's compiler honours
//! IGC treats OpenCL's `prefetch` as a request to L3 at best, drops it at worst, and ignores cache controls on it. It honours
//! its own builtins, `__builtin_IB_lsc_prefetch_global_TYPE(base, offset, control)`, which a module may import as functions.
//! Each becomes one or more `load.ugm` messages without a destination, with the requested cache control (read in the output of
//! IGC 1.0.12504 and 2.40 for pvc).
//!
//! Other devices do not have these functions. For [`SpirvTarget::Portable`] the same module defines them: each calls
//! OpenCL's `prefetch`, which is a hint there, too.
//!
//! # Which messages
//! One call fetches at most 32 bytes for each work-item, and that only in elements of 4 bytes or more. See
//! [`messages`](super::messages::messages) for the rule.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Capability, Decoration, LinkageType, Op as Code, OpenclStd100Op as Std, Word};

use super::block::Blocks;
use super::emitter::Emitter;
use super::messages::{Element, LINE, Message, messages};
use super::{Options, SpirvTarget};
use crate::hints::{Form, HintReached, asked, cost};
use crate::ir::{CacheHint, CacheLevel, HintSource, Kernel, LscControl, OpKind, Space, Value};

/// Most bytes that one call fetches for a work-item.
const CALL_BYTES: u32 = 32;

/// Calls that are written one after the other; more become a loop.
const MOST_CALLS: usize = 16;

/// The number of a hint's request in Intel's builtins: `LSC_LDCC` of the oneAPI optimization guide.
pub(super) fn control(hint: CacheHint, source: HintSource) -> u32 {
    match source {
        HintSource::Control(control) => control.number(),
        _ => LscControl::of(hint).number(),
    }
}

/// The best level that a hint for this level reaches on a target, the instruction, and the reason.
pub fn reached(target: SpirvTarget, asked: CacheLevel) -> (Option<CacheLevel>, &'static str, &'static str) {
    match (target, asked) {
        (SpirvTarget::IntelLsc, CacheLevel::L1) => (Some(CacheLevel::L1), "load.ugm to null", "as asked"),
        (SpirvTarget::IntelLsc, CacheLevel::L3) => (Some(CacheLevel::L3), "load.ugm to null", "as asked"),
        (SpirvTarget::IntelLsc, _) => (
            Some(CacheLevel::L3),
            "load.ugm to null",
            "the GPU has two levels, which Intel calls L1 and L3",
        ),
        (SpirvTarget::IntelOlder, _) => (
            None,
            "nothing",
            "Intel's GPUs before the Max series have no prefetch",
        ),
        (SpirvTarget::Portable, _) => (
            None,
            "OpenCL's prefetch",
            "OpenCL does not define the effect of its prefetch",
        ),
    }
}

/// The form of a target's prefetches. Joint and counted ones become those of single work-items in this form.
pub(super) fn form(kernel: &Kernel, options: &Options) -> Form {
    /// The smallest sub-groups that Intel's GPUs with prefetches have.
    const SMALLEST: u32 = 16;
    let size = kernel.sub_group_size.or(options.sub_group_size);
    Form {
        has_any: options.target != SpirvTarget::IntelOlder,
        ..Form::intel(size.unwrap_or(SMALLEST))
    }
}

/// The calls of each prefetch of a kernel.
pub(super) fn report(
    kernel: &Kernel,
    target: SpirvTarget,
    form: &Form,
    blocks: Option<&Blocks>,
) -> Vec<HintReached> {
    let mut hints: Vec<HintReached> = Vec::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Prefetch {
            hint, source, scope, ..
        } = &op.kind
        else {
            return;
        };
        let (level, by, why) = match source.fills() {
            true => reached(target, hint.level),
            false => (None, "nothing", "it names no level"),
        };
        let of_blocks = blocks.and_then(|blocks| blocks.cost(op));
        let hint = HintReached {
            place: kernel.describe_place(op.place),
            asked: asked(*hint, *source, *scope),
            level: hint.level,
            reached: level,
            by: by.to_owned(),
            why: why.to_owned(),
            cost: of_blocks.unwrap_or_else(|| cost(&op.kind, form)),
        };
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    });
    hints
}

impl Emitter<'_> {
    /// A cache hint of one work-item.
    pub(super) fn prefetch(&mut self, ptr: Value, bytes: u32, hint: CacheHint, source: HintSource) {
        if self.options.target == SpirvTarget::IntelOlder {
            return;
        }
        let align = self.alignment(ptr, 0);
        let pointer = self.id(ptr);
        let control = self.module.constant(32, u64::from(control(hint, source)));
        match self.ty(ptr).space() {
            Some(Space::Global) => self.send(pointer, bytes, align, control),
            // Only addresses that turn out to be global are fetched.
            _ => {
                let (global, boolean) = (self.bytes_in(Space::Global), self.module.boolean());
                let operands = vec![
                    Operand::IdRef(pointer),
                    Operand::StorageClass(super::emitter::storage_class(Space::Global)),
                ];
                let pointer = self.module.make(Code::GenericCastToPtrExplicit, global, operands);
                let long = self.module.int(64);
                let address = self.module.ins(Code::ConvertPtrToU, long, &[pointer]);
                let zero = self.module.constant(64, 0);
                let is_global = self.module.ins(Code::INotEqual, boolean, &[address, zero]);
                let [yes, done] = [(); 2].map(|()| self.module.new_id());
                let operands = [is_global, yes, done].map(Operand::IdRef).to_vec();
                self.module.close(Code::BranchConditional, operands);
                self.module.begin(yes);
                self.send(pointer, bytes, align, control);
                self.module.branch(done);
                self.module.begin(done);
            }
        }
    }

    /// Sends the messages for a range of global memory.
    fn send(&mut self, pointer: Word, bytes: u32, align: u32, control: Word) {
        let messages = messages(bytes, align);
        let global = self.bytes_in(Space::Global);
        if messages.len() <= MOST_CALLS {
            for Message { offset, element } in messages {
                let at = self.moved(global, pointer, u64::from(offset));
                self.call(at, element, control);
            }
            return;
        }
        // All but the last few are alike.
        let (step, element) = match align {
            4.. => (CALL_BYTES, Element::Uint(8)),
            _ => (LINE, Element::Uchar),
        };
        let alike = |(index, message): &(u32, &Message)| {
            **message
                == Message {
                    offset: index * step,
                    element,
                }
        };
        let count = (0..).zip(&messages).take_while(alike).count();
        let count_id = self.module.constant(64, count as u64);
        self.repeated(pointer, count_id, step, element, control);
        for &Message { offset, element } in &messages[count..] {
            let at = self.moved(global, pointer, u64::from(offset));
            self.call(at, element, control);
        }
    }

    /// The same call at `count` places, `step` bytes from each other. `count` is not 0.
    fn repeated(&mut self, pointer: Word, count: Word, step: u32, element: Element, control: Word) {
        let (long, boolean) = (self.module.int(64), self.module.boolean());
        let global = self.bytes_in(Space::Global);
        let before = self.module.here();
        let [head, done] = [(); 2].map(|()| self.module.new_id());
        self.module.branch(head);
        self.module.begin(head);
        let block = self.module.block();
        let zero = self.module.constant(64, 0);
        let index = self.module.new_id();
        let step = self.module.constant(64, u64::from(step));
        let bytes = self.module.ins(Code::IMul, long, &[index, step]);
        let at = self.module.ins(Code::PtrAccessChain, global, &[pointer, bytes]);
        self.call(at, element, control);
        let one = self.module.constant(64, 1);
        let more = self.module.ins(Code::IAdd, long, &[index, one]);
        let again = self.module.ins(Code::ULessThan, boolean, &[more, count]);
        let operands = [again, head, done].map(Operand::IdRef).to_vec();
        self.module.close(Code::BranchConditional, operands);
        let operands = [zero, before, more, head].map(Operand::IdRef).to_vec();
        let phi = Instruction::new(Code::Phi, Some(long), Some(index), operands);
        self.module.put_in_front(block, vec![phi]);
        self.module.begin(done);
    }

    /// Calls the builtin for an element.
    fn call(&mut self, at: Word, element: Element, control: Word) {
        let function = self.builtin(element);
        let ty = self.element_type(element);
        let at = self.pointing_to(ty, Space::Global, at);
        let void = self.module.void();
        let zero = self.module.constant(32, 0);
        self.module
            .ins(Code::FunctionCall, void, &[function, at, zero, control]);
    }

    fn element_type(&mut self, element: Element) -> Word {
        match element {
            Element::Uchar => self.module.int(8),
            Element::Ushort => self.module.int(16),
            Element::Uint(count) => {
                let word = self.module.int(32);
                self.module.vector(word, count)
            }
        }
    }

    /// The function that fetches an element.
    fn builtin(&mut self, element: Element) -> Word {
        if let Some(&(_, id)) = self.elements.iter().find(|(known, _)| *known == element) {
            return id;
        }
        let id = self.module.new_id();
        self.module.name(id, &element.builtin());
        self.elements.push((element, id));
        id
    }

    /// Writes the functions that were called: as imports, or with a body.
    pub(super) fn write_bodies(&mut self) {
        for (element, function) in std::mem::take(&mut self.elements) {
            let ty = self.element_type(element);
            let class = super::emitter::storage_class(Space::Global);
            let pointer = self.module.pointer(class, ty);
            let (void, int, long) = (self.module.void(), self.module.int(32), self.module.int(64));
            let [at, offset, control] = [(); 3].map(|()| self.module.new_id());
            if self.options.target == SpirvTarget::IntelLsc {
                self.module.needs(Capability::Linkage);
                let import = vec![
                    Operand::LiteralString(element.builtin()),
                    Operand::LinkageType(LinkageType::Import),
                ];
                self.module
                    .decorate(function, Decoration::LinkageAttributes, import);
            } else {
                let start = self.module.new_id();
                self.module.begin(start);
                let index = self.module.ins(Code::SConvert, long, &[offset]);
                let at = self.module.ins(Code::PtrAccessChain, pointer, &[at, index]);
                let one = self.module.constant(64, 1);
                self.module.opencl(void, Std::prefetch, &[at, one]);
                self.module.close(Code::Return, Vec::new());
            }
            let parameters = [(at, pointer), (offset, int), (control, int)];
            self.module.function(function, void, &parameters);
        }
    }

    /// A power of two that a pointer is known to be a multiple of.
    pub(super) fn alignment(&self, ptr: Value, depth: u32) -> u32 {
        const DEEPEST: u32 = 32;
        if let Some(param) = self.kernel.param_of(ptr) {
            return param
                .facts
                .map_or(1, |facts| power_of_two(u64::from(facts.align)));
        }
        match self.definition(ptr) {
            Some(OpKind::ArrayAddress(array)) => power_of_two(u64::from(self.kernel.arrays[*array].align)),
            Some(OpKind::Address {
                base,
                index,
                scale,
                offset,
            }) if depth < DEEPEST => {
                let index = self.kernel.as_constant(*index).unwrap_or(1);
                let step = power_of_two(index.wrapping_mul(u64::from(*scale)));
                let offset = power_of_two(*offset as u64);
                self.alignment(*base, depth + 1).min(step).min(offset)
            }
            Some(OpKind::Convert(_, from)) if self.ty(*from).is_pointer() => self.alignment(*from, depth + 1),
            // Carried by a loop: it was moved by whole elements, or a load there would not be aligned.
            _ => self.element_alignment(ptr),
        }
    }

    /// The alignment of the elements behind a pointer whose parameter is known.
    fn element_alignment(&self, ptr: Value) -> u32 {
        let facts = self
            .roots
            .of(ptr)
            .and_then(|root| self.kernel.param_of(root)?.facts);
        facts.map_or(1, |facts| facts.element.bytes().max(1))
    }
}

/// The largest power of two that divides a number, at most 2³¹; 0 is divided by all.
fn power_of_two(number: u64) -> u32 {
    1 << number.trailing_zeros().min(31)
}
