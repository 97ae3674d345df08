//! A tuned kernel in the place of a captured one: its module, and the facts that every launch is checked for.
//!
//! A plan was derived under what is known of the captured launch. Each such fact that the kernel rests on is written down, in the
//! words that the preloaded library reads (`headstart-driver/src/facts.rs`), and for people.

use std::collections::BTreeSet;

use super::captured_import;
use crate::analysis::messages;
use crate::capture::Captured;
use crate::error::{Error, Result};
use crate::front::ptx::{Origin, Original};
use crate::ir::{Kernel, Param};
use crate::prefetch;
use crate::tune::modules::drop_in::{self, Note};
use crate::tune::modules::granted::Granted;
use crate::tune::modules::{PlannedModule, target_for};
use crate::tune::subject::Subject;
use crate::tune::subject::file::FileSubject;
use crate::tune::subject::reach::Reached;

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
    let plain = captured_import(captured)?;
    let mut facts = FactsOfLaunches {
        captured,
        original,
        kernel: &workload.kernel,
        reached: Reached::of(captured, &plain),
        plain: &plain.kernel,
        computed: BTreeSet::new(),
        facts: Vec::new(),
        sentences: Vec::new(),
    };
    let (module_text, addresses) = facts.module(module)?;
    let [x, y, z] = captured.group;
    // Even where the entry looks itself: a launch that takes the old body need not take the new module.
    facts.add(
        format!("group {x} {y} {z}"),
        format!("work-groups have {x}×{y}×{z} work-items"),
    );
    if let Some(bytes) = module.drop_in.needs.dynamic_shared_bytes {
        facts.granted(&Granted::DynamicSharedBytes(bytes))?;
    }
    for granted in &module.granted {
        facts.granted(granted)?;
    }
    let lines = facts.reached.lines(facts.computed.iter().copied());
    facts.facts.extend(lines);
    Ok(Exchange {
        module: module_text,
        addresses,
        facts: facts.facts,
        sentences: facts.sentences,
    })
}

/// The facts of a better kernel's launches, as they are collected.
struct FactsOfLaunches<'f> {
    captured: &'f Captured,
    original: &'f Original,
    /// The kernel as plans were derived from it.
    kernel: &'f Kernel,
    /// The same for any parameters, and what it reaches.
    plain: &'f Kernel,
    reached: Reached<'f>,
    /// Parameters whose reach the launching side has to compute, by number.
    computed: BTreeSet<usize>,
    facts: Vec<String>,
    sentences: Vec<String>,
}

impl FactsOfLaunches<'_> {
    /// The module that is loaded beside the program's, and the variables that must hold addresses of the program's.
    fn module(&self, module: &PlannedModule) -> Result<(String, Vec<(String, String)>)> {
        let is_message = |value| messages::is_message(self.kernel, value);
        let params = self.kernel.params.iter().zip(&self.original.parameters);
        let mut variables = params.filter(|(_, origin)| matches!(origin, Origin::Variable { .. }));
        let are_messages = variables.all(|(param, _)| is_message(param.value));
        if are_messages {
            return Ok((module.text.clone(), Vec::new()));
        }
        let target = target_for(self.captured.group);
        let applied = prefetch::apply(self.kernel, &module.plan, &target)?;
        let beside = drop_in::beside(self.original, self.kernel, &applied.kernel, is_message)?;
        let note = Note {
            plan: &applied.plan,
            measured: None,
            checked: None,
            granted: &module.granted,
        };
        let addresses = beside.addresses.into_iter().map(|own| (own.kept_in, own.of));
        Ok((beside.module.with_note(self.original, &note), addresses.collect()))
    }

    /// Adds a fact, once. What only serves another fact has no sentence.
    fn add(&mut self, fact: String, sentence: String) {
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
            self.sentences.extend((!sentence.is_empty()).then_some(sentence));
        }
    }

    /// Adds what a launch is checked for so that this holds.
    fn granted(&mut self, granted: &Granted) -> Result<()> {
        let sentence = granted.to_string();
        match granted {
            Granted::Unaliased(name) => self.unaliased(name)?,
            Granted::Length(name, length) => {
                let (index, inside) = self.place(name)?;
                let size = self.element_bytes(name);
                self.add(
                    format!("ends {index} {inside} {length} {size}"),
                    format!(
                        "`{name}` leads to {length} elements of {size} bytes up to the end of its allocation"
                    ),
                );
            }
            Granted::Alignment(name, bytes) => {
                let (index, inside) = self.place(name)?;
                self.add(format!("aligned {index} {inside} {bytes}"), sentence);
            }
            Granted::DynamicSharedBytes(bytes) => self.add(format!("shared {bytes}"), sentence),
            Granted::Assembler(own) => {
                self.add(format!("machine {} {}", own.driver, own.capability), sentence);
            }
            // Of the code, not of a launch: CUDA C++ has no accesses beyond a variable's end.
            Granted::Spaces | Granted::VariablesEnd => {}
            Granted::Residency {
                waits,
                for_each_other: true,
            } => self.add(
                RESIDENT.to_owned(),
                format!("as many work-groups are resident as of the original: {waits}"),
            ),
            // Of what others need that are waited for, the driver's occupancy says nothing.
            Granted::Residency { .. } | Granted::ReadOnly(_) | Granted::NoOverflow => {
                let error = Error::input(format!("the better kernel cannot be put in place: {sentence}"));
                return Err(
                    error.accepted("another plan; `headstart tune -o FILE` writes the module all the same")
                );
            }
        }
        Ok(())
    }

    /// No other pointer leads where this one does. No pointer of a program's leads into what a launch passes, nor into a
    /// workspace; nor does it matter what two lead to that are only read.
    fn unaliased(&mut self, name: &str) -> Result<()> {
        let (index, inside) = self.place(name)?;
        let (kernel, original) = (self.kernel, self.original);
        let params = kernel.params.iter().zip(&original.parameters);
        let others: Vec<(&Param, bool)> = params
            .filter(|(other, origin)| {
                let is_of_launch = matches!(origin, Origin::Structure { .. } | Origin::Workspace);
                other.facts.is_some()
                    && other.name != name
                    && !is_of_launch
                    && self.matters(name, &other.name)
            })
            .map(|(other, origin)| (other, matches!(origin, Origin::Variable { .. })))
            .collect();
        for (other, is_variable) in others {
            if is_variable {
                self.add(
                    format!("known {index} {inside}"),
                    format!("`{name}` leads into an allocation, and to no variable of a module"),
                );
                continue;
            }
            let (other_index, other_inside) = self.place(&other.name)?;
            // Each pair once.
            let mut pair = [
                (index, inside, name),
                (other_index, other_inside, other.name.as_str()),
            ];
            pair.sort_by_key(|(index, inside, _)| (*index, *inside));
            let [first, second] = pair;
            // Also of one alone: bounds say of which allocation a pointer at its border is not.
            let both = [first.2, second.2]
                .into_iter()
                .filter_map(|name| self.number_of(name));
            let known: Vec<usize> = both
                .filter(|&parameter| self.reached.is_known(parameter))
                .collect();
            self.computed.extend(&known);
            let apart = match known.len() {
                2 => "reach different bytes",
                _ => "lead into different allocations, and neither to the border of the other one's",
            };
            self.add(
                format!("apart {} {} {} {}", first.0, first.1, second.0, second.1),
                format!("`{}` and `{}` {apart}", first.2, second.2),
            );
        }
        Ok(())
    }

    fn number_of(&self, name: &str) -> Option<usize> {
        self.plain.params.iter().position(|param| param.name == name)
    }

    fn matters(&self, one: &str, other: &str) -> bool {
        match (self.number_of(one), self.number_of(other)) {
            (Some(one), Some(other)) => self.reached.matters(one, other),
            _ => true,
        }
    }

    /// The launch's parameter that a pointer is in, and the byte in it.
    fn place(&self, name: &str) -> Result<(usize, u64)> {
        let number = self.kernel.params.iter().position(|param| param.name == name);
        let place = number.and_then(|number| match &self.original.parameters[number] {
            Origin::Parameter { position, .. } => self.captured.place_of(*position),
            Origin::Structure { .. } | Origin::Variable { .. } | Origin::Workspace => None,
        });
        place.ok_or_else(|| Error::bug(format!("parameter `{name}` is nowhere")))
    }

    fn element_bytes(&self, name: &str) -> u64 {
        let param = self.kernel.params.iter().find(|param| param.name == name);
        param
            .and_then(|param| param.facts)
            .map_or(1, |facts| u64::from(facts.element.bytes()).max(1))
    }
}
