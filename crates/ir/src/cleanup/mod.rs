//! Clean-up passes: the same semantics with less to read or to execute.
//!
//! [`tidy`] is for kernels that people read: it simplifies the straightforward output of a front end or a prefetching pass.
//!
//! ```text
//! before                                        after
//! if true { yield %a } else { break 'items }    (nothing; %r is %a)
//! %x = add %i, 1                                %y = add %i, 2
//! %y = add %x, 1
//! loop 'items (%unused = 0: i32, …) { …         loop 'items (…) { …
//!   continue %unused2, … }                        continue … }
//! ```
//!
//! [`clean`] is for back ends, and does what every vendor's compiler would: common subexpressions are merged, invariant code is
//! hoisted, loops are tested at the bottom, a loop's guards share one test, counters are narrowed to 32 bits if those suffice,
//! addresses become a pointer and a constant offset. Only back ends read its output.
//!
//! Both keep stores, copies, waits, hints, barriers and jumps. Loads whose result is unused go, so an access out of
//! bounds must be looked for in the kernel that went in.

mod addresses;
mod affine;
mod copied;
mod dead;
mod exits;
mod fold;
mod guards;
mod hoist;
mod merge;
mod narrow;
mod rotate;
mod saturated;
mod spaces;
mod unreachable;

pub use exits::own_exits;
pub use spaces::find_spaces;

use crate::ir::Kernel;

/// Folds constants, then removes unused operations.
pub fn tidy(kernel: &mut Kernel) {
    fold::fold(kernel);
    dead::remove(kernel);
}

/// The kernel as a back end lowers it.
pub fn clean(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    merge(&mut kernel);
    dead::remove(&mut kernel);
    hoist::hoist(&mut kernel);
    rotate::rotate(&mut kernel);
    merge(&mut kernel);
    guards::unite(&mut kernel);
    narrow::narrow(&mut kernel);
    // Before merging could take the sum that a loop no longer needs for the one on its way out.
    dead::remove(&mut kernel);
    addresses::reduce(&mut kernel);
    merge(&mut kernel);
    hoist::hoist(&mut kernel);
    dead::remove(&mut kernel);
    kernel
}

/// Merges equal operations, and removes unreachable ones: a condition that merging decides may have guarded the only jump to
/// the following code.
fn merge(kernel: &mut Kernel) {
    merge::merge(kernel);
    unreachable::remove(kernel);
}

#[cfg(test)]
mod tests {
    use super::clean;
    use crate::ir::{parse, print, verify};

    /// The cleaned kernel as text, verified.
    fn cleaned(text: &str) -> String {
        let kernel = parse(text, "test.hsir").unwrap();
        verify(&kernel).unwrap();
        let cleaned = clean(&kernel);
        verify(&cleaned).unwrap();
        print(&cleaned)
    }

    /// The lines of the body, without the header's parameters.
    fn body(text: &str, lines: &str) -> String {
        let params = "%a: ptr.global i32[%n] align 4 unaliased, %n: i64, %k: i64";
        let text = cleaned(&format!("hsir 1\nkernel @t({params}) {{\n{text}\n{lines}\n}}"));
        text.split_once(") {").unwrap().1.to_string()
    }

    #[test]
    fn a_loop_through_memory_carries_a_pointer() {
        let text = include_str!("../../../../headstart/tests/in/gather.hsir");
        let cleaned = cleaned(text);
        let inside = cleaned
            .split_once("= loop")
            .unwrap()
            .1
            .split_once("continue")
            .unwrap()
            .0;
        assert!(!inside.contains("mul ") && !inside.contains("shl "), "{cleaned}");
        assert!(inside.contains("+ 0:i64 * 0 + 128"), "{cleaned}");
        // Tested at the bottom, behind one test in front.
        assert!(
            !inside.starts_with("break") && cleaned.contains("if %more ->"),
            "{cleaned}"
        );
    }

    #[test]
    fn neighbouring_addresses_share_a_pointer() {
        let text = body(
            "load @a\n%x = id.local.x\n%i = extend.u %x to i64\n%j = add %i, 1:i64\n%j3 = mul %j, 3:i64\n\
             %i3 = mul %i, 3:i64\n%p = address %a + %i3 * 4\n%q = address %a + %j3 * 4",
            "%v = load i32 %p, @a\nstore %q, %v\nreturn",
        );
        assert!(
            text.contains("%i * 12") && text.contains("+ 0:i64 * 0 + 12"),
            "{text}"
        );
        assert!(!text.contains("mul"), "{text}");
    }

    #[test]
    fn copies_that_lie_close_to_each_other_share_a_pointer() {
        let copies = |far: u32| {
            let text = body(
                &format!(
                    "shared @s: i32[1024] align 16\nload @a\nloop 'l (%i = 0:i64, %t = 0:token) {{\n%more = lt.u %i, %n\n\
                     if %more {{ yield }} else {{ wait %t\nbreak }}\n%at = array @s\n%j = add %k, %i\n\
                     %p = address %a + %j * 4 + 8192\n%q = address %a + %j * 4 + {far}\n\
                     %x = copy 4 to %at from %p, @a\n%y = copy 4 to %at from %q, @a\n%both = join %x, %y\n\
                     %next = add.nw %i, 1:i64\ncontinue %next, %both\n}}",
                ),
                "return",
            );
            let (before, inside) = text.split_once("loop").unwrap();
            (
                before.matches("+ 10240").count(),
                inside.matches("* 0 - 2048").count(),
                text.clone(),
            )
        };
        let (moved, near, text) = copies(9216);
        assert_eq!((moved, near), (1, 1), "{text}");
        let (moved, near, text) = copies(16384);
        assert_eq!((moved, near), (1, 2), "{text}");
    }

    #[test]
    fn nothing_follows_a_loop_that_is_never_left() {
        let text = body(
            "load @a\n%y = loop 'l () -> i32 {\n%x = load i32 %a, @a\n%z = eq %x, 0:i32\n\
             if %z { return } else { yield }\ncontinue\n}",
            "store %a, %y\nreturn",
        );
        assert!(!text.contains("store"), "{text}");
    }

    #[test]
    fn what_an_enclosing_if_decided_is_known() {
        let text = body(
            "%c = lt.s %n, %k\nif %c { yield } else {\n%again = lt.s %n, %k\nif %again {\n\
             store %a, 1:i32\nyield\n} else { yield }\nyield\n}",
            "store %a, 2:i32\nreturn",
        );
        assert!(!text.contains("1:i32") && text.contains("2:i32"), "{text}");
    }

    #[test]
    fn nothing_follows_a_block_whose_jumps_are_decided_away() {
        let text = body(
            "%c = lt.s %n, %k\nif %c { yield } else {\n%y = block 'b -> i32 {\nif %c { break 'b 1:i32 } else { yield }\n\
             return\n}\nstore %a, %y\nyield\n}",
            "store %a, 2:i32\nreturn",
        );
        assert!(!text.contains("%y") && text.contains("2:i32"), "{text}");
    }

    #[test]
    fn what_only_feeds_itself_goes() {
        let text = body(
            "load @a\nloop 'l (%i = 0:i64, %sum = 0:i64) {\n%m = lt.s %i, %n\n\
             if %m { yield } else { break }\n%next = add.nw %i, 1:i64\n%more = add %sum, %i\n\
             continue %next, %more\n}",
            "return",
        );
        assert!(!text.contains("%sum") && text.contains("%next"), "{text}");
    }

    #[test]
    fn only_cheap_operations_leave_an_if_in_a_loop() {
        let text = body(
            "load @a\nloop 'l (%i = 0:i64) {\n%m = lt.s %i, %n\nif %m { yield } else { break }\n\
             %odd = eq %i, %k\nif %odd {\n%d = div.u %n, %k\n%s = add %n, %k\n%t = add %d, %s\n\
             %t32 = truncate %t to i32\nstore %a, %t32\nyield\n} else { yield }\n\
             %next = add.nw %i, 1:i64\ncontinue %next\n}",
            "return",
        );
        let (before, inside) = text.split_once("loop").unwrap();
        assert!(
            before.contains("%s = add") && inside.contains("%d = div.u"),
            "{text}"
        );
    }
}
