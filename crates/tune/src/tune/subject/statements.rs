//! Statements of a launch file that would allow more plans for a module's entry.
//!
//! PTX does not state, and SPIR-V need not state, which memory nothing writes, which parameters share none, or that a counter
//! does not overflow. Each missing statement is tried: the entry is read again with it, and the loads that can then be fetched
//! early are counted.

use crate::error::Result;
use crate::front::ptx::Facts;
use crate::ir::Kernel;
use crate::prefetch::Loads;

/// Most parameters that statements are tried for.
const MOST_TRIED: usize = 16;

/// The statements that unlock something, a sentence each, as far as there is time. `again` reads the entry with other facts;
/// `is_given` says which of the kernel's parameters the host passes.
pub(in crate::tune) fn unlocking(
    again: &dyn Fn(&Facts) -> Result<Kernel>,
    is_given: &dyn Fn(usize) -> bool,
    kernel: &Kernel,
    facts: &Facts,
    is_over: &dyn Fn() -> bool,
) -> Vec<String> {
    if is_over() {
        return Vec::new();
    }
    let read = |facts: &Facts| -> Option<Vec<String>> {
        let kernel = again(facts).ok()?;
        Some(fetched_early(&kernel))
    };
    let now = fetched_early(kernel);
    let more = |facts: &Facts| -> Option<String> {
        if is_over() {
            return None;
        }
        let then = read(facts)?;
        let gained: Vec<&str> = then
            .iter()
            .filter(|load| !now.contains(load))
            .map(String::as_str)
            .collect();
        (!gained.is_empty()).then(|| format!("`{}`", gained.join("`, `")))
    };
    let mut sentences = Vec::new();
    if !facts.no_overflow {
        let assumed = Facts {
            no_overflow: true,
            ..facts.clone()
        };
        if let Some(loads) = more(&assumed) {
            sentences.push(format!(
                "If signed loop counters do not overflow, `no_overflow = true` in the launch file lets {loads} be fetched early."
            ));
        }
    }
    let pointers = kernel
        .params
        .iter()
        .enumerate()
        .filter(|(number, param)| is_given(*number) && param.facts.is_some_and(|facts| !facts.read_only));
    for (_, param) in pointers.take(MOST_TRIED) {
        for (word, meaning) in [
            ("readonly", "no launch writes memory that is read through it"),
            (
                "unaliased",
                "memory accessed through it is accessed through no other parameter",
            ),
        ] {
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
            if let Some(loads) = more(&assumed) {
                let name = &param.name;
                sentences.push(format!(
                    "If {meaning}, `{word} = [\"{name}\"]` in the launch file lets {loads} be fetched early."
                ));
                break;
            }
        }
    }
    sentences
}

/// The loads of loops that can be fetched early, by name.
fn fetched_early(kernel: &Kernel) -> Vec<String> {
    let loads = Loads::of(kernel);
    let all = loads.all().iter().zip(loads.can_be_early());
    let early = all.filter(|(load, early)| load.refusal.is_none() && early.is_ok());
    early.map(|(load, _)| load.name.to_string()).collect()
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
