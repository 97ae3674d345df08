//! Main loop and remainder: two loops into which a compiler split one.
//!
//! ```text
//! loop (%i < %n & -4) { %a = load …, @p  %b = load …, @p  %c = load …, @p  %d = load …, @p }     the main loop
//! loop (%i < %n)      { %e = load …, @p }                                                        the rest
//! ```
//!
//! A compiler that unrolls leaves a remainder loop beside the unrolled one. A plan refers to the loop of the source: its loads
//! are named once, and the plan applies to the main loop. The remainder runs fewer iterations than the main loop does at once:
//! where a plan fetches a load ahead in the main loop, the remainder loads all of its values at once.
//!
//! A loop of which some iterations became part of the loop around it ([`inner`](super::inner)) is a remainder, too; it stays as it is.

use std::collections::HashMap;

use super::candidate::Candidate;
use super::loads::find_loop;
use super::plan::{Distance, Strategy, StrategyKind};
use crate::error::Result;
use crate::ir::{Kernel, Label, LoadId, OpKind};

/// Most iterations whose loads a rest makes at once: they take as many registers.
const MOST_AT_ONCE: u32 = 7;

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
    for number in 0..found.len() {
        let (id, looped) = (found[number].id, found[number].looped);
        let mut others = found.iter().filter(|other| other.id == id);
        let is_left = others.any(|other| is_inside(kernel, looped, other.looped));
        found[number].is_rest |= is_left;
    }
}

/// The remainders of planned loops: the loads that are fetched ahead in the main loop are issued together for as many
/// iterations as may be left over.
pub(super) fn planned_rests(
    kernel: &Kernel,
    found: &[Candidate],
    planned: &[(Label, HashMap<LoadId, Strategy>)],
) -> Result<Vec<(Label, HashMap<LoadId, Strategy>)>> {
    let mut rests: Vec<(Label, HashMap<LoadId, Strategy>)> = Vec::new();
    for (main, strategies) in planned {
        let of_main = found.iter().filter(|load| load.looped == *main && !load.is_rest);
        for load in of_main.filter(|load| strategies.get(&load.id).is_some_and(|own| !own.is_hint())) {
            let mut others = found.iter();
            let is_beside = |rest: &Candidate| !is_inside(kernel, rest.looped, *main);
            let rest = others.find(|other| other.is_rest && other.id == load.id && is_beside(other));
            let Some(rest) = rest.filter(|rest| planned.iter().all(|(label, _)| *label != rest.looped))
            else {
                continue;
            };
            let left = (load.copies / rest.copies.max(1))
                .saturating_sub(1)
                .min(MOST_AT_ONCE);
            if left < 2 {
                continue;
            }
            let together = Strategy::new(StrategyKind::BatchedRegisters, Distance::new(left)?);
            match rests.iter_mut().find(|(label, _)| *label == rest.looped) {
                Some((_, own)) => {
                    own.insert(rest.id, together);
                }
                None => rests.push((rest.looped, HashMap::from([(rest.id, together)]))),
            }
        }
    }
    // Batches of one loop have one size.
    for (_, own) in &mut rests {
        let least = own.values().map(|strategy| strategy.distance()).min();
        for strategy in own.values_mut() {
            *strategy = Strategy::new(
                StrategyKind::BatchedRegisters,
                least.unwrap_or(strategy.distance()),
            );
        }
    }
    Ok(rests)
}

/// Whether a loop stands in another one.
pub(super) fn is_inside(kernel: &Kernel, inner: Label, outer: Label) -> bool {
    let outer = find_loop(&kernel.body, outer).filter(|_| inner != outer);
    outer.is_some_and(|op| op.kind.regions().any(|region| find_loop(region, inner).is_some()))
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
    use super::super::loads::{candidates, find_loop, resolve};
    use super::super::{Plan, PlanTarget, apply};
    use crate::ir::{Kernel, OpKind};
    use headstart_front::ptx::{self, Facts};

    /// The output of nvcc and clang for loops with run-time strides: each load has one name, can be fetched early, and is
    /// planned in the unrolled loop.
    #[test]
    fn plans_go_to_the_unrolled_loop() {
        let facts = Facts {
            no_overflow: true,
            ..Facts::default()
        };
        let (mut unrolled, mut together) = (0, 0);
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
                    apply(&kernel, &plan, &PlanTarget::default())
                        .unwrap_or_else(|error| panic!("{entry}, {plan}: {error}"));
                }
                // The remainder is loaded at once: as often as may be needed.
                let named: Vec<String> = all
                    .iter()
                    .filter(|load| load.copies >= 4 && !load.is_rest)
                    .map(|load| format!("{}=rolling-registers:2", load.name))
                    .collect();
                if let Some(rest) = all.iter().find(|load| load.is_rest)
                    && !named.is_empty()
                {
                    let mut places = Vec::new();
                    let looped = find_loop(&kernel.body, rest.looped).expect("it is there");
                    let inside = looped.kind.regions().next().expect("a body");
                    inside.walk(&mut |op| {
                        if matches!(op.kind, OpKind::Load { .. }) {
                            places.push(kernel.describe_place(op.place));
                        }
                    });
                    let loads = |of: &Kernel| {
                        let mut count = 0;
                        of.body.walk(&mut |op| {
                            let is_load = matches!(op.kind, OpKind::Load { .. });
                            count += usize::from(is_load && places.contains(&of.describe_place(op.place)));
                        });
                        count
                    };
                    let plan: Plan = named.join(",").parse().expect("a plan");
                    let planned = apply(&kernel, &plan, &PlanTarget::default()).expect("legal");
                    together += usize::from(loads(&planned.kernel) >= 3 * loads(&kernel));
                }
                // The remainder has exactly the loads of the unrolled loop.
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
        assert!(
            unrolled >= 36 && together >= 12,
            "{unrolled} loads, {together} rests"
        );
    }

    /// Whether a counter may wrap around says nothing about which loads are copies of one: rows of a sparse matrix, and all
    /// others.
    #[test]
    fn copies_are_copies_whether_counters_may_wrap_or_not() {
        let mut unrolled = 0;
        for text in [
            include_str!("../../../corpus/strided.ptx"),
            include_str!("../../../corpus/first.ptx"),
        ] {
            for entry in ptx::entries(text).expect("a module") {
                let most = |no_overflow: bool| {
                    let facts = Facts {
                        no_overflow,
                        ..Facts::default()
                    };
                    let kernel = ptx::read(text, "corpus.ptx", Some(&entry), &facts)
                        .unwrap_or_else(|error| panic!("{entry}: {error}"));
                    candidates(&kernel)
                        .iter()
                        .map(|load| load.copies)
                        .max()
                        .unwrap_or(0)
                };
                assert_eq!(most(false), most(true), "{entry}");
                unrolled += u32::from(most(false) > 1);
            }
        }
        assert!(unrolled >= 10, "{unrolled}");
    }
}
