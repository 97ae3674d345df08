//! Asynchronous copies, for devices that have none.
//!
//! ```text
//! before                          after
//! %t = copy 8 to %s from %p, @a   %x, %y = load i32 %p, @a
//!                                 store %s, %x, %y
//! wait %t
//! ```
//!
//! A token is complete from the start, so nothing waits for it. The text that the device gets and the instructions that the timer
//! runs are both made from this form: what is timed is what is emitted.

use std::collections::HashSet;

use crate::ir::{Builder, CacheUse, Kernel, LoadId, OpKind, Region, Type, Value};

/// Bytes of the words that a copy moves.
const WORD: u32 = 4;

/// Replaces every asynchronous copy by a load and a store. The kernel stays verified.
pub(crate) fn expand(kernel: &mut Kernel) {
    let mut tokens = HashSet::new();
    kernel.body.walk(&mut |op| {
        if matches!(op.kind, OpKind::Copy { .. } | OpKind::Join(_)) {
            tokens.insert(op.results[0]);
        }
    });
    if tokens.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let complete = kernel.constant(Type::Token, 0);
    region(kernel, &mut body);
    body.walk_mut(&mut |op| {
        op.kind.map_operands(|value| match tokens.contains(&value) {
            true => complete,
            false => value,
        });
    });
    kernel.body = body;
}

fn region(kernel: &mut Kernel, body: &mut Region) {
    for mut op in std::mem::take(&mut body.ops) {
        for inner in op.kind.regions_mut() {
            region(kernel, inner);
        }
        match op.kind {
            OpKind::Copy { to, from, bytes, id } => {
                let mut builder = Builder::new(kernel, op.place);
                moved(&mut builder, to, from, bytes, id);
                body.ops.extend(builder.finish().ops);
            }
            OpKind::Join(_) | OpKind::Wait(_) => {}
            _ => body.ops.push(op),
        }
    }
}

fn moved(b: &mut Builder<'_>, to: Value, from: Value, bytes: u32, id: LoadId) {
    let words = vec![Type::I32; (bytes / WORD) as usize];
    let load = OpKind::load(from, id, CacheUse::Default);
    let values = b.push(load, &words);
    let store = OpKind::store(to, values, CacheUse::Default);
    b.push(store, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup;
    use crate::ir::{parse, print, verify};

    const RING: &str = "hsir 1\nkernel @k(%a: ptr.global i32[%n] align 16, %n: i64) {\nshared @s: i32[4] align 16\nload @a\nload @b\n\
                        %slot = array @s\n%x = copy 16 to %slot from %a, @a\n\
                        loop 'l (%i = 0:i64, %t = %x) {\n%more = lt.u %i, %n\nif %more { yield } else { break }\nwait %t\n\
                        %v = load i32 %slot, @b\nstore %a, %v\n%y = copy 4 to %slot from %a, @a\n%z = copy 4 to %slot from %a, @a\n\
                        %both = join %y, %z\n%next = add.nw %i, 1:i64\ncontinue %next, %both\n}\nreturn\n}\n";

    #[test]
    fn a_copy_is_a_load_and_a_store_and_no_token_is_left() {
        let mut kernel = parse(RING, "ring.hsir").unwrap();
        verify(&kernel).unwrap();
        expand(&mut kernel);
        verify(&kernel).unwrap();
        let cleaned = cleanup::clean(&kernel);
        verify(&cleaned).unwrap();
        let printed = print(&cleaned);
        let count = |what: &str| printed.matches(what).count();
        assert_eq!(
            (count("copy"), count("join"), count("wait"), count("token")),
            (0, 0, 0, 0),
            "{printed}"
        );
        // Three copies, and the loop's own load and store.
        assert_eq!((count("= load"), count("store")), (4, 4), "{printed}");
    }
}
