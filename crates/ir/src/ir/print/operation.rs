//! Operations as text, a line each; regions indented.

use super::names::{Exit, exit, id_name, quote};
use super::{Printer, same_place};
use crate::ir::hint::{HintSource, PrefetchScope};
use crate::ir::kernel::{Label, Region, Value};
use crate::ir::op::{LoopWishes, Meeting, Op, OpKind, UnrollWish};
use crate::ir::text::Spelled;
use crate::ir::together::AtomicOp;

impl<'k> Printer<'k> {
    /// The operations of a region, a new line before each.
    pub(super) fn operations(&mut self, region: &'k Region) {
        for op in &region.ops {
            self.new_line();
            self.operation(op);
        }
    }

    fn operation(&mut self, op: &'k Op) {
        self.head(op);
        self.place(op.place);
        let Some(label) = op.kind.label() else { return };
        self.enclosing
            .push((label, matches!(op.kind, OpKind::Loop { .. })));
        match &op.kind {
            OpKind::If { then, otherwise, .. } => {
                self.region(then);
                if !self.is_plain_yield(op, label, otherwise) {
                    self.put(" else");
                    self.region(otherwise);
                }
            }
            OpKind::Block { body, .. } | OpKind::Loop { body, .. } => self.region(body),
            _ => {}
        }
        self.enclosing.pop();
    }

    /// The side of an `if` that needs no words: it passes nothing on, from the place of the `if`.
    fn is_plain_yield(&self, op: &Op, label: Label, region: &Region) -> bool {
        match &region.ops[..] {
            [only] => {
                only.kind == OpKind::Break(label, Vec::new())
                    && only.results.is_empty()
                    && same_place(self.kernel, only.place, op.place)
            }
            _ => false,
        }
    }

    fn region(&mut self, region: &'k Region) {
        match &region.ops[..] {
            [only] if only.kind.is_terminator() => {
                self.put(" { ");
                self.operation(only);
                self.put(" }");
            }
            _ => {
                self.put(" {");
                self.indent += 1;
                self.operations(region);
                self.indent -= 1;
                self.new_line();
                self.put("}");
            }
        }
    }

    /// Everything of an operation but its place and its regions.
    pub(super) fn head(&mut self, op: &Op) {
        for (index, &result) in op.results.iter().enumerate() {
            let name = self.names.value(result);
            self.put(if index == 0 { "%" } else { ", %" });
            self.put(name);
        }
        if !op.results.is_empty() {
            self.put(" = ");
        }
        self.kind(op);
    }

    fn kind(&mut self, op: &Op) {
        // The result type of a load or conversion, which its operands do not determine.
        let result_type = match op
            .results
            .first()
            .and_then(|&result| self.kernel.values.get(result))
        {
            Some(data) => data.ty.name(),
            None => "?",
        };
        let rule = op.kind.rule();
        if op.kind.plain().write(rule, self) {
            return;
        }
        match op.kind.plain() {
            OpKind::Id(id) => self.put(id_name(*id)),
            OpKind::Unary(op, a) => self.named(&format!("{}{rule}", op.name()), &[*a]),
            OpKind::Binary(op, a, b) => self.named(&format!("{}{rule}", op.name()), &[*a, *b]),
            OpKind::NoWrap(op, wrap, a, b) => {
                self.named(&format!("{}.{}", op.name(), wrap.name()), &[*a, *b])
            }
            OpKind::Compare(op, a, b) => self.named(&format!("{}{rule}", op.name()), &[*a, *b]),
            OpKind::Convert(op, a) => {
                self.named(&format!("{}{rule}", op.name()), &[*a]);
                self.put(format!(" to {result_type}"));
            }
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => {
                let (base, index) = (self.value_text(*base), self.value_text(*index));
                self.put(format!("address {base} + {index} * {scale}"));
                if *offset != 0 {
                    let sign = if *offset < 0 { '-' } else { '+' };
                    self.put(format!(" {sign} {}", offset.unsigned_abs()));
                }
            }
            OpKind::Load { ptr, id, cache } => {
                self.put(format!("load {result_type}"));
                self.values(&[*ptr]);
                id.write(self, &mut false);
                cache.write(self, &mut false);
            }
            OpKind::Prefetch { .. } => self.prefetch(&op.kind),
            OpKind::Meet(Meeting::SubGroup(mask)) => {
                self.put("meet subgroup");
                self.among(*mask);
            }
            OpKind::Meet(Meeting::Named { number, sub_groups }) => {
                self.put(format!("meet {number} of {sub_groups}"));
            }
            OpKind::Print { text, values } => {
                self.put(format!("print {}", quote(text)));
                for &value in values {
                    let text = self.value_text(value);
                    self.put(format!(", {text}"));
                }
            }
            OpKind::Atomic {
                op,
                ptr,
                values,
                order,
                scope,
            } => {
                self.put(format!("atomic {} ", op.name()));
                if *op == AtomicOp::Load {
                    self.put(format!("{result_type} "));
                }
                let operands: Vec<Value> = [*ptr].into_iter().chain(values.iter().copied()).collect();
                self.named(&format!("{} {}", order.name(), scope.name()), &operands);
            }
            OpKind::Block { label, .. } => {
                self.put("block");
                self.label_name(*label);
                self.label_results(*label);
            }
            OpKind::If { label, cond, .. } => {
                self.put("if");
                self.label_name(*label);
                self.values(&[*cond]);
                self.label_results(*label);
            }
            OpKind::Loop {
                label,
                params,
                initial,
                wishes,
                ..
            } => self.loop_head(*label, params, initial, wishes),
            OpKind::Break(label, values) => match exit(&op.kind, &self.enclosing) {
                Exit::Yield => self.named("yield", values),
                Exit::Innermost => self.named("break", values),
                Exit::Labelled => self.labelled("break", *label, values),
            },
            OpKind::Continue(label, values) => match exit(&op.kind, &self.enclosing) {
                Exit::Innermost => self.named("continue", values),
                _ => self.labelled("continue", *label, values),
            },
            // Ruled operations do not nest; the table writes all others.
            _ => self.put("?"),
        }
    }

    fn prefetch(&mut self, kind: &OpKind) {
        let OpKind::Prefetch {
            ptr,
            bytes,
            count,
            hint,
            source,
            scope,
            id,
        } = kind
        else {
            return;
        };
        let ptr = self.value_text(*ptr);
        self.put("prefetch ");
        match source {
            HintSource::Control(control) => self.put(control.name()),
            _ => self.put(hint.level.name()),
        }
        if hint.nontemporal && !matches!(source, HintSource::Control(_)) {
            self.put(" nontemporal");
        }
        if *source == HintSource::Default {
            self.put(" default");
        }
        self.put(format!(" {bytes}"));
        if let Some(count) = count {
            let count = self.value_text(*count);
            self.put(format!(" * {count}"));
        }
        self.put(format!(" at {ptr}"));
        if *scope != PrefetchScope::WorkItem {
            self.put(format!(" by {}", scope.name()));
        }
        if let Some(id) = id {
            id.write(self, &mut false);
        }
    }

    fn named(&mut self, name: &str, operands: &[Value]) {
        self.put(name);
        self.values(operands);
    }

    /// A word behind others.
    pub(in crate::ir) fn word(&mut self, word: &str) {
        self.put(format!(" {word}"));
    }

    /// A text between quotation marks.
    pub(in crate::ir) fn quoted(&mut self, text: &str) {
        self.put(format!(" {}", quote(text)));
    }

    /// An operand behind a word, or behind another operand.
    pub(in crate::ir) fn operand(&mut self, text: &str, first: &mut bool) {
        self.put(format!("{} {text}", if *first { "" } else { "," }));
        *first = false;
    }

    /// Who takes part, unless it is the whole sub-group.
    pub(in crate::ir) fn among(&mut self, mask: Option<Value>) {
        if let Some(mask) = mask {
            let text = self.value_text(mask);
            self.put(format!(" among {text}"));
        }
    }

    fn labelled(&mut self, name: &str, label: Label, operands: &[Value]) {
        let spelled = self.names.label(label);
        // An undefined label is spelled so that it cannot be read back.
        let spelled = match spelled.is_empty() {
            true => format!("?{}", label.as_u32()),
            false => spelled.to_owned(),
        };
        self.put(format!("{name} '{spelled}"));
        self.values(operands);
    }

    fn label_name(&mut self, label: Label) {
        let name = self.names.label(label);
        if !name.is_empty() {
            self.put(format!(" '{name}"));
        }
    }

    fn label_results(&mut self, label: Label) {
        let Some(data) = self.kernel.labels.get(label) else {
            return;
        };
        for (index, ty) in data.results.iter().enumerate() {
            self.put(if index == 0 { " -> " } else { ", " });
            self.put(ty.name());
        }
    }

    fn loop_head(&mut self, label: Label, params: &[Value], initial: &[Value], wishes: &LoopWishes) {
        self.put("loop");
        self.label_name(label);
        if !params.is_empty() {
            let pairs: Vec<String> = params
                .iter()
                .zip(initial)
                .map(|(&param, &initial)| {
                    format!("%{} = {}", self.names.value(param), self.value_text(initial))
                })
                .collect();
            self.put(format!(" ({})", pairs.join(", ")));
        }
        self.label_results(label);
        match wishes.unroll {
            None => {}
            Some(UnrollWish::Keep) => self.put(" unroll keep"),
            Some(UnrollWish::Auto) => self.put(" unroll auto"),
            Some(UnrollWish::Full) => self.put(" unroll full"),
            Some(UnrollWish::By(count)) => self.put(format!(" unroll {count}")),
        }
        if let Some(plan) = &wishes.plan {
            self.put(format!(" prefetch {}", quote(plan)));
        }
    }
}
