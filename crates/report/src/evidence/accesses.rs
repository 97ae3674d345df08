//! What a kernel's text tells of its loads from global memory, in loops or not: how far apart neighbours read, whether the
//! address was loaded itself, and how much of a row is read piece by piece.

use std::collections::{HashMap, HashSet};

use super::LoadTime;
use crate::analysis::definitions::{Definition, Definitions};
use crate::analysis::neighbours::Neighbours;
use crate::ir::{BinaryOp, ConvertOp, Kernel, LoadId, NoWrapOp, Op, OpKind, Region, Space, Value, eval};

/// The widest load, in bytes, of NVIDIA's and of Intel's GPUs.
const WIDEST: u32 = 16;
/// Values looked at before nothing is known.
const VISITS: usize = 1 << 12;
/// Additions and widenings that an index is looked through.
const DEPTH: u32 = 16;

/// One load of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The parameter that it reads.
    pub name: String,
    /// Where it is written.
    pub place: String,
    /// Bytes that a work-item reads.
    pub bytes: u32,
    /// Bytes from a work-item's address to that of the next one in its sub-group, where that is always as much.
    pub stride: Option<i64>,
    /// Whether its address depends on what another load read.
    pub is_indexed: bool,
    /// Bytes side by side that this load and others of the same statements read, as one load could.
    pub row: u32,
}

impl Access {
    /// The access of a load in a profile, by its place; where several loads have that place, as in `table[indices[i]]`, by its name.
    pub fn of<'a>(all: &'a [Access], load: &LoadTime) -> Option<&'a Access> {
        let mut there = all.iter().filter(|access| access.place == load.place);
        let first = there.clone().next();
        there.find(|access| access.name == load.name).or(first)
    }
}

/// The loads of global memory of a kernel in work-groups of these sizes.
pub fn accesses(kernel: &Kernel, group: [u32; 3]) -> Vec<Access> {
    // A launch's work-groups have a size even where the kernel requires none.
    let mut sized = kernel.clone();
    sized.group_size = sized.group_size.or(Some(group));
    let definitions = Definitions::of(&sized);
    let mut neighbours = Neighbours::of(&sized, &definitions, false);
    let mut rows = Rows {
        kernel: &sized,
        definitions: &definitions,
        of_loads: HashMap::new(),
    };
    rows.region(&sized.body);
    let mut found: Vec<(LoadId, Access)> = Vec::new();
    sized.body.walk(&mut |op| {
        let Some((ptr, id, bytes)) = global_load(&sized, op) else {
            return;
        };
        if found.iter().any(|(known, _)| *known == id) {
            return;
        }
        let data = &sized.loads[id];
        found.push((
            id,
            Access {
                name: data.name.clone(),
                place: sized.describe_place(data.place),
                bytes,
                stride: neighbours.growth(ptr),
                is_indexed: depends_on_load(&definitions, ptr),
                row: rows.of_loads.get(&id).copied().unwrap_or(bytes),
            },
        ));
    });
    found.into_iter().map(|(_, access)| access).collect()
}

/// A load of global memory: its address, its number and its bytes.
fn global_load(kernel: &Kernel, op: &Op) -> Option<(Value, LoadId, u32)> {
    let OpKind::Load { ptr, id, .. } = &op.kind else {
        return None;
    };
    let is_global = kernel.ty(*ptr).space() == Some(Space::Global);
    let bytes = op.results.iter().map(|&result| kernel.ty(result).bytes()).sum();
    is_global.then_some((*ptr, *id, bytes))
}

/// Whether a value follows from what a load read.
fn depends_on_load(definitions: &Definitions, value: Value) -> bool {
    let mut seen: HashSet<Value> = HashSet::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        if !seen.insert(value) || seen.len() > VISITS {
            continue;
        }
        match definitions.get(value) {
            Some(Definition::LoopParam { initial, next, .. }) => {
                left.push(*initial);
                left.extend(next.iter().copied());
            }
            Some(Definition::Result { kind, passed, .. }) => {
                if matches!(kind, OpKind::Load { .. }) {
                    return true;
                }
                left.extend(passed.iter().copied());
                kind.for_each_operand(|operand| left.push(operand));
            }
            None => {}
        }
    }
    false
}

/// An address apart from its constant part: what it begins at, and the indices that it adds, each with its scale.
type Root = (Value, Vec<(Value, u32)>);

/// Which loads read pieces of one row.
struct Rows<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    /// The bytes of the row that each load is a part of.
    of_loads: HashMap<LoadId, u32>,
}

impl Rows<'_> {
    /// Loads of one region: they run together.
    fn region(&mut self, region: &Region) {
        let mut by_root: HashMap<Root, Vec<(i64, u32, LoadId)>> = HashMap::new();
        for op in &region.ops {
            if let Some((ptr, id, bytes)) = global_load(self.kernel, op) {
                let (root, offset) = self.root(ptr);
                by_root.entry(root).or_default().push((offset, bytes, id));
            }
            for inner in op.kind.regions() {
                self.region(inner);
            }
        }
        for mut pieces in by_root.into_values() {
            pieces.sort_by_key(|&(offset, ..)| offset);
            pieces.dedup_by_key(|(offset, ..)| *offset);
            let side_by_side = |one: &(i64, u32, LoadId), next: &(i64, u32, LoadId)| {
                one.0.checked_add(i64::from(one.1)) == Some(next.0) && one.1 == next.1
            };
            for row in pieces.chunk_by(side_by_side) {
                let all: u32 = row.iter().map(|&(_, bytes, _)| bytes).sum();
                let at_once = match all {
                    WIDEST.. => WIDEST,
                    _ => 1 << all.max(1).ilog2(),
                };
                for &(_, bytes, id) in row {
                    let own = self.of_loads.entry(id).or_insert(bytes);
                    *own = (*own).max(at_once.max(bytes));
                }
            }
        }
    }

    /// An address as where it begins, with its indices, and its constant part in bytes.
    fn root(&self, ptr: Value) -> (Root, i64) {
        let (mut base, mut indices, mut constant) = (ptr, Vec::new(), 0i64);
        while let Some(&OpKind::Address {
            base: inner,
            index,
            scale,
            offset,
        }) = self.definitions.op(base)
        {
            let (root, elements) = self.index(index, 0);
            constant = constant.wrapping_add(elements.wrapping_mul(i64::from(scale)).wrapping_add(offset));
            indices.extend(root.map(|root| (root, scale)));
            base = inner;
        }
        indices.sort_unstable();
        ((base, indices), constant)
    }

    /// An index without the constants that are added to it; no value where it is a constant.
    fn index(&self, index: Value, depth: u32) -> (Option<Value>, i64) {
        let constant = |value: Value| {
            let bits = self.kernel.as_constant(value)?;
            Some(eval::signed(self.kernel.ty(value), bits))
        };
        if let Some(own) = constant(index) {
            return (None, own);
        }
        if depth == DEPTH {
            return (Some(index), 0);
        }
        match self.definitions.op(index) {
            Some(&(OpKind::NoWrap(NoWrapOp::Add, _, a, b) | OpKind::Binary(BinaryOp::Add, a, b))) => {
                let (rest, added) = match (constant(a), constant(b)) {
                    (_, Some(added)) => (a, added),
                    (Some(added), _) => (b, added),
                    _ => return (Some(index), 0),
                };
                let (root, inner) = self.index(rest, depth + 1);
                (root, inner.wrapping_add(added))
            }
            // Widened, a sum is the same sum, but where it wraps: good enough for a hint to its author.
            Some(&OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, narrow)) => {
                self.index(narrow, depth + 1)
            }
            _ => (Some(index), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir;

    fn of(body: &str) -> Vec<Access> {
        let text = format!(
            "hsir 1\nkernel @k(%rows: ptr.global f32[%length] align 16 readonly, %at: ptr.global i32[%length] align 4 readonly, \
             %length: i64) {{\n  file #1 \"k.rs\"\n  load @a #1:1:1\n  load @b #1:2:1\n  load @c #1:3:1\n  load @d #1:4:1\n  %l = id.local.x\n  \
             %i = extend.u %l to i64\n{body}\n  return\n}}\n"
        );
        let kernel = ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        accesses(&kernel, [128, 1, 1])
    }

    #[test]
    fn pieces_of_one_row_are_told_from_elements_side_by_side() {
        let rows = of(
            "  %row = mul %i, 4:i64\n  %p = address %rows + %row * 4\n  %x = load f32 %p, @a\n  \
                       %one = add %row, 1:i64\n  %q = address %rows + %one * 4\n  %y = load f32 %q, @b\n  \
                       %r = address %rows + %row * 4 + 8\n  %z = load f32 %r, @c\n  %s = address %r + 1:i64 * 4\n  %w = load f32 %s, @d",
        );
        assert_eq!(rows.len(), 4, "{rows:?}");
        for row in &rows {
            assert_eq!((row.bytes, row.row, row.stride), (4, 16, Some(16)), "{rows:?}");
            assert!(!row.is_indexed);
        }
        let apart = of(
            "  %p = address %rows + %i * 4\n  %x = load f32 %p, @a\n  %far = add %i, 128:i64\n  \
                        %q = address %rows + %far * 4\n  %y = load f32 %q, @b",
        );
        for access in &apart {
            assert_eq!((access.row, access.stride), (4, Some(4)), "{apart:?}");
        }
    }

    #[test]
    fn an_address_that_was_loaded_is_known() {
        let found = of(
            "  %p = address %at + %i * 4\n  %n = load i32 %p, @a\n  %j = extend.u %n to i64\n  \
                        %q = address %rows + %j * 4\n  %y = load f32 %q, @b",
        );
        let indexed: Vec<bool> = found.iter().map(|access| access.is_indexed).collect();
        assert_eq!(indexed, [false, true], "{found:?}");
        assert_eq!(found[1].stride, None);
    }
}
