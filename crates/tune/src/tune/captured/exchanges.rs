//! A tuned kernel in the place of a captured one: its module, and the facts that every launch is checked for.
//!
//! A plan was derived under what is known of the captured launch. Each such fact that the kernel rests on is written down, in the
//! words that the preloaded library reads (`headstart-driver/src/facts.rs`), and for people.

use std::collections::BTreeSet;

use super::captured_import;
use crate::analysis::messages;
use crate::capture::Captured;
use crate::error::{Error, Result};
use crate::front::ptx::Origin;
use crate::ir::Param;
use crate::prefetch;
use crate::tune::apart::Reached;
use crate::tune::drop_in::{self, Note};
use crate::tune::file_subject::FileSubject;
use crate::tune::granted::Granted;
use crate::tune::modules::{PlannedModule, target_for};
use crate::tune::subject::Subject;

/// The fact that as many work-groups of the better kernel are resident as of the original, whatever the launch: the preloaded
/// library asks the driver.
const RESIDENT: &str = "resident";

/// How a better kernel is put in the place of a captured one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The module to be loaded beside the program's.
    pub module: String,
    /// Variables of it that must hold addresses of the program's: the variable here, and the program's.
    pub addresses: Vec<(String, String)>,
    /// The facts that every launch is checked for, as words separated by spaces, in the format of the preloaded library.
    pub facts: Vec<String>,
    /// The same for people.
    pub sentences: Vec<String>,
}

/// The facts that a launch must meet so that a rewritten module's entry computes the same as the captured kernel.
///
/// # Errors
/// It assumes a fact that cannot be checked when the program launches: which.
pub fn exchange(captured: &Captured, subject: &FileSubject, module: &PlannedModule) -> Result<Exchange> {
    let original = subject
        .original()
        .ok_or_else(|| Error::bug("a captured kernel came from no module"))?;
    let workload = subject.workload()?;
    let kernel = &workload.kernel;
    let refused = |what: &str| {
        Error::input(format!("the better kernel cannot be put in place: {what}"))
            .accepted("another plan; `headstart tune -o FILE` writes the module all the same")
    };
    let is_message = |value| messages::is_message(kernel, value);
    let origins = kernel.params.iter().zip(&original.parameters);
    let variables: Vec<&Param> = origins
        .filter(|(_, origin)| matches!(origin, Origin::Variable { .. }))
        .map(|(param, _)| param)
        .collect();
    let (text, addresses) = match variables.iter().all(|param| is_message(param.value)) {
        true => (module.text.clone(), Vec::new()),
        false => {
            let target = target_for(captured.group);
            let applied = prefetch::apply(kernel, &module.plan, &target)?;
            let beside = drop_in::beside(original, kernel, &applied.kernel, is_message)?;
            let note = Note {
                plan: &applied.plan,
                measured: None,
                checked: None,
                granted: &module.granted,
            };
            let addresses = beside.addresses.into_iter().map(|own| (own.kept_in, own.of));
            (beside.module.with_note(original, &note), addresses.collect())
        }
    };
    let plain = captured_import(captured)?;
    let reached = Reached::of(captured, &plain);
    let number_of = |name: &str| plain.kernel.params.iter().position(|param| param.name == name);
    let matters = |one: &str, other: &str| match (number_of(one), number_of(other)) {
        (Some(one), Some(other)) => reached.matters(one, other),
        _ => true,
    };
    let position = |name: &str| {
        let number = kernel.params.iter().position(|param| param.name == name)?;
        match &original.parameters[number] {
            Origin::Parameter { position, .. } => captured.place_of(*position),
            Origin::Structure { .. } | Origin::Variable { .. } | Origin::Workspace => None,
        }
    };
    let place =
        |name: &str| position(name).ok_or_else(|| Error::bug(format!("parameter `{name}` is nowhere")));
    let pointers = || kernel.params.iter().filter(|param| param.facts.is_some());
    let size = |name: &str| {
        let param = pointers().find(|param| param.name == name);
        param
            .and_then(|param| param.facts)
            .map_or(1, |facts| u64::from(facts.element.bytes()).max(1))
    };
    let mut exchange = Exchange {
        module: text,
        addresses,
        facts: Vec::new(),
        sentences: Vec::new(),
    };
    let mut add = |fact: String, sentence: String| {
        if !exchange.facts.contains(&fact) {
            exchange.facts.push(fact);
            // What only serves another fact has none.
            exchange
                .sentences
                .extend((!sentence.is_empty()).then_some(sentence));
        }
    };
    // Parameters whose reach the launching side has to compute.
    let mut computed = BTreeSet::new();
    let [x, y, z] = captured.group;
    // Even where the entry looks itself: a launch that takes the old body need not take the new module.
    add(
        format!("group {x} {y} {z}"),
        format!("work-groups have {x}×{y}×{z} work-items"),
    );
    if let Some(bytes) = module.drop_in.needs.dynamic_shared_bytes {
        add(
            format!("shared {bytes}"),
            Granted::DynamicSharedBytes(bytes).to_string(),
        );
    }
    for granted in &module.granted {
        match granted {
            Granted::Unaliased(name) => {
                let (index, inside) = place(name)?;
                let is_of_launch = |other: &Param| {
                    let number = kernel.params.iter().position(|param| param.name == other.name);
                    let origin = number.map(|at| &original.parameters[at]);
                    matches!(origin, Some(Origin::Structure { .. } | Origin::Workspace))
                };
                // No pointer of a program's leads into what a launch passes, nor into a workspace.
                // Nor does it matter what two lead to that are only read.
                let others = pointers().filter(|other| {
                    other.name != *name && !is_of_launch(other) && matters(name, &other.name)
                });
                for other in others {
                    if variables.iter().any(|variable| variable.name == other.name) {
                        add(
                            format!("known {index} {inside}"),
                            format!("`{name}` leads into an allocation, and to no variable of a module"),
                        );
                        continue;
                    }
                    let (other_index, other_inside) = place(&other.name)?;
                    // Each pair once.
                    let (first, second) = match (index, inside) <= (other_index, other_inside) {
                        true => (
                            (index, inside, name.as_str()),
                            (other_index, other_inside, other.name.as_str()),
                        ),
                        false => (
                            (other_index, other_inside, other.name.as_str()),
                            (index, inside, name.as_str()),
                        ),
                    };
                    // Also of one alone: bounds say of which allocation a pointer at its border is not.
                    let both = [first.2, second.2].into_iter().filter_map(number_of);
                    let known = both.filter(|&parameter| reached.is_known(parameter));
                    let known: Vec<usize> = known.collect();
                    computed.extend(&known);
                    let apart = match known.len() {
                        2 => "reach different bytes",
                        _ => "lead into different allocations, and neither to the border of the other one's",
                    };
                    add(
                        format!("apart {} {} {} {}", first.0, first.1, second.0, second.1),
                        format!("`{}` and `{}` {apart}", first.2, second.2),
                    );
                }
            }
            Granted::Length(name, length) => {
                let (index, inside) = place(name)?;
                let size = size(name);
                add(
                    format!("ends {index} {inside} {length} {size}"),
                    format!(
                        "`{name}` leads to {length} elements of {size} bytes up to the end of its allocation"
                    ),
                );
            }
            Granted::Alignment(name, bytes) => {
                let (index, inside) = place(name)?;
                add(format!("aligned {index} {inside} {bytes}"), granted.to_string());
            }
            Granted::DynamicSharedBytes(bytes) => add(format!("shared {bytes}"), granted.to_string()),
            Granted::Assembler(own) => add(
                format!("machine {} {}", own.driver, own.capability),
                granted.to_string(),
            ),
            // Of the code, not of a launch: CUDA C++ has no accesses beyond a variable's end.
            Granted::Spaces | Granted::VariablesEnd => {}
            Granted::Residency {
                waits,
                for_each_other: true,
            } => add(
                RESIDENT.to_owned(),
                format!("as many work-groups are resident as of the original: {waits}"),
            ),
            // Of what others need that are waited for, the driver's occupancy says nothing.
            Granted::Residency { .. } | Granted::ReadOnly(_) | Granted::NoOverflow => {
                return Err(refused(&granted.to_string()));
            }
        }
    }
    exchange.facts.extend(reached.lines(computed.into_iter()));
    Ok(exchange)
}
