//! Statements of a launch file that would allow more plans for a module's entry.
//!
//! PTX does not state, and SPIR-V need not state, which memory nothing writes, which parameters share none, or that a counter
//! does not overflow. Each missing statement is tried: the entry is read again with it, and the loads that can then be fetched
//! early are counted.

use crate::error::Result;
use crate::front::ptx::Facts;
use crate::ir::Kernel;
use crate::prefetch::Loads;
use crate::prefetch::plan::LoadName;

/// Most parameters that statements are tried for.
const MOST_TRIED: usize = 16;

/// The statements that unlock something, a sentence each, as far as there is time. `again` reads the entry with other facts;
/// `is_given` says which of the kernel's parameters the host passes.
pub(in crate::tune) fn unlocking(
    again: &dyn Fn(&Facts) -> Result<Kernel>,
    is_given: &dyn Fn(usize) -> bool,
    kernel: &Kernel,
    facts: &Facts,
    is_cuda: bool,
    is_over: &dyn Fn() -> bool,
) -> Vec<String> {
    if is_over() {
        return Vec::new();
    }
    let now = fetched_early(kernel);
    // The loads that are gained, and what they load from.
    let more = |facts: &Facts| -> Option<(usize, Vec<String>)> {
        if is_over() {
            return None;
        }
        let then = fetched_early(&again(facts).ok()?);
        let gained = then
            .iter()
            .filter(|(load, _)| now.iter().all(|(own, _)| own != load));
        let mut from: Vec<String> = gained.clone().map(|(_, from)| from.clone()).collect();
        from.sort_unstable();
        from.dedup();
        (!from.is_empty()).then(|| (gained.count(), from))
    };
    let mut sentences = Vec::new();
    let mut say = |count: usize, condition: &str, statement: &str, in_source: &str, from: &[String]| {
        let from = listed(from);
        sentences.push((
            count,
            format!(
                "If {condition}, say so: `{statement}` in the launch file{in_source} lets loads from {from} be fetched early."
            ),
        ));
    };
    if !facts.no_overflow {
        let assumed = Facts {
            no_overflow: true,
            ..facts.clone()
        };
        if let Some((count, from)) = more(&assumed) {
            say(
                count,
                "signed loop counters do not overflow",
                "no_overflow = true",
                "",
                &from,
            );
        }
    }
    let pointers = kernel
        .params
        .iter()
        .enumerate()
        .filter(|(number, param)| is_given(*number) && param.facts.is_some_and(|facts| !facts.read_only));
    for (_, param) in pointers.take(MOST_TRIED) {
        let name = &param.name;
        for word in ["readonly", "unaliased"] {
            let mut assumed = facts.clone();
            let own = assumed.parameters.entry(param.name.clone()).or_default();
            match word {
                "readonly" => own.read_only = true,
                _ => own.unaliased = true,
            }
            // Memory that the entry itself writes is not read-only.
            if word == "readonly" && writes(kernel, &param.name) {
                continue;
            }
            if let Some((count, from)) = more(&assumed) {
                let condition = match word {
                    "readonly" => format!("no launch writes memory that is read through `{name}`"),
                    _ => format!("memory accessed through `{name}` is accessed through no other parameter"),
                };
                // Without a statement of its compiler a module does not tell that a pointer is restricted.
                let is_read = !from.iter().any(|from| writes(kernel, from));
                let in_source = match is_cuda && is_read {
                    true => format!(", or `const` and `__restrict__` on {} in CUDA C,", listed(&from)),
                    false => String::new(),
                };
                say(
                    count,
                    &condition,
                    &format!("{word} = [\"{name}\"]"),
                    &in_source,
                    &from,
                );
                break;
            }
        }
    }
    sentences.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    sentences.into_iter().map(|(_, sentence)| sentence).collect()
}

/// Names, in a sentence.
fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// The loads of loops that can be fetched early, by name, and what they load from.
fn fetched_early(kernel: &Kernel) -> Vec<(String, String)> {
    let loads = Loads::of(kernel);
    let all = loads.all().iter().zip(loads.can_be_early());
    let early = all.filter(|(load, early)| load.refusal.is_none() && early.is_ok());
    let named = |name: &LoadName| (name.to_string(), name.param().to_owned());
    early.map(|(load, _)| named(&load.name)).collect()
}

/// Whether the kernel writes memory that it accesses through a parameter, or through unknown pointers.
fn writes(kernel: &Kernel, name: &str) -> bool {
    use crate::analysis::definitions::Definitions;
    use crate::analysis::roots::root;
    use crate::ir::effects::Memory;
    let definitions = Definitions::of(kernel);
    let mut found = false;
    kernel.body.walk(&mut |op| {
        if let Memory::At(pointer) = op.kind.effects().writes {
            let to = root(kernel, &definitions, pointer);
            found |= to.is_none_or(|root| root.name(kernel) == name);
        }
    });
    found
}
