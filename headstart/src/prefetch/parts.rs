//! Main loop and rest: two loops that a compiler made of one.
//!
//! ```text
//! loop (%i < %n & -4) { %a = load …, @p  %b = load …, @p  %c = load …, @p  %d = load …, @p }     the main loop
//! loop (%i < %n)      { %e = load …, @p }                                                        the rest
//! ```
//!
//! A compiler that unrolls leaves a loop beside the unrolled one that does what is left over. Whoever plans means the
//! loop of the source: its loads are named once, and what is planned for them goes to the main loop. The rest runs fewer
//! iterations than the main loop does at once, so nothing is gained there.

use super::loads::Candidate;
use crate::ir::{Kernel, Label, OpKind};

/// Marks the candidates that lie in the rest of a loop.
pub(super) fn mark_rests(kernel: &Kernel, found: &mut [Candidate]) {
    let loops = innermost(kernel);
    // nvcc puts the rest behind the main loop, clang in front of it.
    for pair in loops.windows(2) {
        for (main, rest) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            if is_rest(found, main, rest) {
                let of_rest = found.iter_mut().filter(|load| load.looped == rest);
                of_rest.for_each(|load| load.is_rest = true);
            }
        }
    }
}

/// Whether each load of one loop stands in another as often or more often, and not all as often.
fn is_rest(found: &[Candidate], main: Label, rest: Label) -> bool {
    let of_main = |load: &Candidate| {
        let mut others = found.iter();
        others.find(|other| other.looped == main && other.id == load.id)
    };
    let own: Vec<&Candidate> = found.iter().filter(|load| load.looped == rest).collect();
    let copies: Option<Vec<(u32, u32)>> = own
        .iter()
        .map(|load| of_main(load).map(|main| (main.copies, load.copies)))
        .collect();
    copies.is_some_and(|copies| {
        copies.iter().all(|(main, rest)| main >= rest) && copies.iter().any(|(main, rest)| main > rest)
    })
}

/// The loops without loops inside, in the order of the text.
fn innermost(kernel: &Kernel) -> Vec<Label> {
    let mut labels = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, body, .. } = &op.kind {
            let mut is_innermost = true;
            body.walk(&mut |inner| is_innermost &= !matches!(inner.kind, OpKind::Loop { .. }));
            if is_innermost {
                labels.push(*label);
            }
        }
    });
    labels
}

#[cfg(test)]
mod tests {
    use super::super::loads::{candidates, resolve};
    use super::super::{Plan, Target, apply};
    use crate::front::ptx::{self, Facts};

    /// What nvcc and clang make of loops whose strides only the run tells: each load has one name, can be fetched early,
    /// and is planned in the unrolled loop.
    #[test]
    fn plans_go_to_the_unrolled_loop() {
        let facts = Facts {
            no_overflow: true,
            ..Facts::default()
        };
        let mut unrolled = 0;
        for text in [
            include_str!("../../../corpus/strided.ptx"),
            include_str!("../../../corpus/strided.clang.ptx"),
        ] {
            for entry in ptx::entries(text).expect("a module") {
                let kernel = ptx::read(text, "strided.ptx", Some(&entry), &facts)
                    .unwrap_or_else(|error| panic!("{entry}: {error}"));
                let all = candidates(&kernel);
                for load in all.iter().filter(|load| load.copies > 1 && !load.is_rest) {
                    unrolled += 1;
                    assert_eq!(load.refusal, None, "{entry}: {}", load.name);
                    let named = resolve(&kernel, &all, &load.name).expect("its own name");
                    let looped: Vec<_> = named.iter().map(|load| load.looped).collect();
                    assert_eq!(looped, [load.looped], "{entry}: {}", load.name);
                    let plan: Plan = format!("{}=rolling-registers:2", load.name)
                        .parse()
                        .expect("a plan");
                    apply(&kernel, &plan, &Target::default())
                        .unwrap_or_else(|error| panic!("{entry}, {plan}: {error}"));
                }
                // What is left over has no load that the unrolled loop has not, and none of its own.
                for rest in all.iter().filter(|load| load.is_rest) {
                    let mut others = all.iter();
                    let main = others.find(|load| load.id == rest.id && !load.is_rest);
                    assert!(
                        main.is_some_and(|main| main.copies > rest.copies),
                        "{entry}: {}",
                        rest.name
                    );
                }
            }
        }
        assert!(unrolled >= 36, "{unrolled}");
    }
}
