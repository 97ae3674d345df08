//! Prefetches in the form that every device has: one cache line, one work-item, one instruction.
//!
//! ```text
//! before                                     after, with lines of 128 bytes
//! prefetch L2 4 * %n at %p by sub_group      %inside = and (bits %p), 127
//!                                            %lines = div.u (%inside + 4 * %n + 127), 128
//!                                            loop (%line = lane) while %line < %lines {
//!                                              %at = max.s %line * 128 - %inside, 0
//!                                              prefetch L2 1 at %p + %at
//!                                              continue %line + sub-group size
//!                                            }
//! ```
//!
//! The lines that a range touches are divided over the participating work-items, so each line is requested once. The request
//! for the first line uses the range's own first byte, so it touches nothing before the range. If the range is too short for
//! anyone to have two lines, there is no loop. A single work-item walks the lines in pieces of [`Form::piece`] bytes. A
//! constant range of a single work-item is left as it is, because the back ends split those.
//!
//! A prefetch with a cache control that fills nothing is left out.

use crate::ir::{
    BinaryOp, Builder, CompareOp, ConvertOp, Id, Kernel, LoopWishes, Op, OpKind, PrefetchScope, Region, Type,
    UnrollWish, Value,
};

pub use crate::model::hint::{Form, HintReached, asked, cost};

/// Whether [`expand`] would change anything.
fn is_plain(op: &Op, form: &Form) -> bool {
    let OpKind::Prefetch {
        count, scope, source, ..
    } = &op.kind
    else {
        return true;
    };
    let is_kept = match scope {
        PrefetchScope::WorkItem => count.is_none(),
        PrefetchScope::Bulk => form.has_bulk,
        _ => false,
    };
    form.has_any && source.fills() && is_kept
}

/// The kernel with every prefetch in a form that the device has. Prefetches of a device that has none, and those that
/// fill nothing, are gone.
pub fn expand(kernel: &mut Kernel, form: &Form) {
    expand_others(kernel, form, &|_| false);
}

/// The same, but for those that the device is said to have as they are.
pub(crate) fn expand_others(kernel: &mut Kernel, form: &Form, has: &dyn Fn(&Op) -> bool) {
    let is_kept = |op: &Op| is_plain(op, form) || has(op);
    let mut plain = true;
    kernel.body.walk(&mut |op| plain &= is_kept(op));
    if plain {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    region(kernel, &mut body, form, &is_kept);
    kernel.body = body;
}

fn region(kernel: &mut Kernel, body: &mut Region, form: &Form, is_kept: &dyn Fn(&Op) -> bool) {
    let ops = std::mem::take(&mut body.ops);
    for mut op in ops {
        for inner in op.kind.regions_mut() {
            region(kernel, inner, form, is_kept);
        }
        if is_kept(&op) {
            body.ops.push(op);
        } else {
            body.ops.extend(expanded(kernel, &op, form));
        }
    }
}

fn expanded(kernel: &mut Kernel, op: &Op, form: &Form) -> Vec<Op> {
    let OpKind::Prefetch {
        ptr,
        bytes,
        count,
        source,
        scope,
        ..
    } = op.kind
    else {
        return Vec::new();
    };
    if !form.has_any || !source.fills() {
        return Vec::new();
    }
    let least = least_askers(kernel, scope, form);
    let mut b = Builder::new(kernel, op.place);
    let (first, askers) = askers(&mut b, scope);
    let step = match scope {
        PrefetchScope::WorkItem => form.piece,
        _ => form.line,
    };
    let most = count.is_none().then(|| u64::from(bytes.div_ceil(step)) + 1);
    let bytes = b.i64(i64::from(bytes));
    let total = match count {
        Some(count) => b.mul(count, bytes),
        None => bytes,
    };
    let (inside, lines) = lines(&mut b, ptr, total, step);
    let one = |b: &mut Builder<'_>, line: Value| {
        let step = b.i64(i64::from(step));
        let start = b.mul(line, step);
        let start = b.sub(start, inside);
        let zero = b.i64(0);
        let start = b.binary(BinaryOp::MaxS, start, zero);
        let at = b.address(ptr, start, 1, 0);
        let mut kind = op.kind.clone();
        if let OpKind::Prefetch {
            ptr,
            bytes,
            count,
            scope,
            ..
        } = &mut kind
        {
            (*ptr, *bytes, *count, *scope) = (at, 1, None, PrefetchScope::WorkItem);
        }
        b.push(kind, &[]);
    };
    if most.is_some_and(|most| most <= least) {
        let has_one = b.compare(CompareOp::LtU, first, lines);
        b.if_(
            has_one,
            &[],
            |b| {
                one(b, first);
                Vec::new()
            },
            |_| Vec::new(),
        );
    } else {
        let wishes = LoopWishes {
            unroll: Some(UnrollWish::Keep),
            plan: None,
        };
        b.loop_(None, vec![first], &[], wishes, |b, label, params| {
            let is_over = b.compare(CompareOp::LeU, lines, params[0]);
            b.break_if(is_over, label, Vec::new());
            one(b, params[0]);
            let next = b.add(params[0], askers);
            b.continue_(label, vec![next]);
        });
    }
    b.finish().ops
}

/// How many ask together at least.
fn least_askers(kernel: &Kernel, scope: PrefetchScope, form: &Form) -> u64 {
    let items = kernel
        .group_size
        .map_or(1, |size| size.iter().map(|&size| u64::from(size)).product());
    let sub_group = u64::from(kernel.sub_group_size.unwrap_or(form.sub_group));
    match scope {
        PrefetchScope::WorkItem => 1,
        PrefetchScope::WorkGroup => items,
        // The last sub-group has the remaining work-items.
        _ if items.is_multiple_of(sub_group) => sub_group,
        _ => items % sub_group,
    }
}

/// The number of this work-item among those who ask together, and how many they are: `I64`s.
fn askers(b: &mut Builder<'_>, scope: PrefetchScope) -> (Value, Value) {
    let (first, askers) = match scope {
        PrefetchScope::WorkItem => return (b.i64(0), b.i64(1)),
        PrefetchScope::SubGroup | PrefetchScope::Bulk => (b.id(Id::Lane), b.id(Id::SubGroupSize)),
        PrefetchScope::WorkGroup => {
            let sizes = match b.kernel.group_size {
                Some(sizes) => sizes.map(|size| b.constant(Type::I32, u64::from(size))),
                None => [0, 1, 2].map(|axis| b.id(Id::GroupSize(axis))),
            };
            let [x, y, z] = sizes;
            let one_dimension = matches!(b.kernel.group_size, Some([_, 1, 1]));
            let mut first = b.id(Id::Local(0));
            if !one_dimension {
                let (row, plane) = (b.id(Id::Local(1)), b.id(Id::Local(2)));
                let rows = b.mul(plane, y);
                let row = b.add(row, rows);
                let before = b.mul(row, x);
                first = b.add(first, before);
            }
            let items = b.mul(x, y);
            (first, b.mul(items, z))
        }
    };
    let wide = |b: &mut Builder<'_>, value| b.convert(ConvertOp::ExtendU, Type::I64, value);
    (wide(b, first), wide(b, askers))
}

/// How far inside its line (or piece) a range begins, and how many of them it touches; an empty one none.
fn lines(b: &mut Builder<'_>, ptr: Value, total: Value, step: u32) -> (Value, Value) {
    let bits = b.convert(ConvertOp::Bits, Type::I64, ptr);
    let mask = b.i64(i64::from(step) - 1);
    let inside = b.binary(BinaryOp::And, bits, mask);
    let end = b.add(inside, total);
    let up = b.add(end, mask);
    let shift = b.i64(i64::from(step.trailing_zeros()));
    let lines = b.binary(BinaryOp::ShrU, up, shift);
    let zero = b.i64(0);
    if b.kernel.as_constant(total).is_some_and(|total| total > 0) {
        return (inside, lines);
    }
    let is_empty = b.compare(CompareOp::Eq, total, zero);
    (inside, b.select(is_empty, zero, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print, verify};

    fn expanded(head: &str, prefetch: &str, form: &Form) -> String {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global f32[] align 4, %n: i64){head} {{\n{prefetch}\nreturn\n}}"
        );
        let mut kernel = parse(&text, "test.hsir").expect("the test's kernel is right");
        expand(&mut kernel, form);
        verify(&kernel).expect("what was made of it is right");
        print(&kernel)
    }

    #[test]
    fn what_a_device_has_stays_as_it_is() {
        let (nvidia, intel) = (Form::nvidia(true), Form::intel(16));
        let kept = |prefetch: &str, form: &Form| expanded("", prefetch, form).contains(prefetch);
        assert!(kept("prefetch L2 4 at %p", &nvidia));
        assert!(kept("prefetch L2 4 * %n at %p by bulk", &nvidia));
        assert!(!kept("prefetch L2 4 * %n at %p by bulk", &Form::nvidia(false)));
        assert!(!kept("prefetch L2 4 * %n at %p by bulk", &intel));
        assert!(!kept("prefetch L2 4 * %n at %p", &intel));
        assert!(!kept("prefetch L2 4 at %p by work_group", &intel));
    }

    #[test]
    fn short_ranges_need_no_loop() {
        let text = |head: &str, bytes: u32, scope: &str| {
            let prefetch = format!("prefetch L1 {bytes} at %p by {scope}");
            expanded(head, &prefetch, &Form::nvidia(true))
        };
        let sized = " group 128,1,1";
        assert!(!text(sized, 31 * 128, "sub_group").contains("loop"));
        assert!(text(sized, 32 * 128, "sub_group").contains("loop"));
        assert!(!text(sized, 127 * 128, "work_group").contains("loop"));
        assert!(
            text("", 128, "work_group").contains("loop"),
            "one work-item may be all"
        );
    }

    #[test]
    fn what_fills_nothing_is_left_out() {
        assert!(!expanded("", "prefetch L1UC_L3UC 4 at %p", &Form::intel(16)).contains("prefetch"));
        let none = Form {
            has_any: false,
            ..Form::intel(16)
        };
        assert!(!expanded("", "prefetch L1 4 at %p", &none).contains("prefetch"));
    }
}
