//! The loads that a plan can name: their loops and their names.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoopSummary, summarize};
use crate::analysis::roots::root;
use crate::error::{Error, Result};
use crate::ir::{Kernel, Label, LoadId, Op, OpKind, Region, Space};
use crate::suggest;

use super::candidate::Candidate;
use super::parts::mark_rests;
use super::plan::{LoadName, LoadPlace, Plan};

/// The loads of global memory in loops, in the order of the source.
pub fn candidates(kernel: &Kernel) -> Vec<Candidate> {
    let definitions = Definitions::of(kernel);
    let mut found = Vec::new();
    collect(kernel, &definitions, &kernel.body, &mut found);
    mark_rests(kernel, &mut found);
    let names: Vec<_> = found
        .iter()
        .map(|candidate| shortest_name(kernel, candidate, &found))
        .collect();
    for (candidate, name) in found.iter_mut().zip(names) {
        candidate.name = name;
    }
    found
}

/// Whether plans may change the loop of a load.
pub(super) fn may_change(kernel: &Kernel, looped: Label, load: &str) -> Result<()> {
    if !kernel.labels[looped].is_called {
        return Ok(());
    }
    let why = format!("`{load}` cannot be fetched early: its loop lies in a function that is called");
    Err(Error::usage(why).accepted("loads in loops of the entry itself"))
}

fn collect(kernel: &Kernel, definitions: &Definitions, region: &Region, found: &mut Vec<Candidate>) {
    for op in &region.ops {
        if let OpKind::Loop { label, .. } = &op.kind {
            let summary = summarize(kernel, definitions, op);
            for site in &summary.loads {
                let space = root(kernel, definitions, site.pointer).and_then(|root| root.space(kernel));
                let space = space.or(kernel.ty(site.pointer).space());
                let known = found
                    .iter()
                    .any(|other: &Candidate| other.id == site.id && other.looped == *label);
                if space != Some(Space::Global) || known {
                    continue;
                }
                let data = &kernel.loads[site.id];
                let Ok(name) = LoadName::of_param(data.name.clone()) else {
                    continue;
                };
                let refusal = may_change(kernel, *label, &data.name)
                    .and_then(|()| super::legality::may_move_if(kernel, definitions, &summary, site, 1))
                    .and_then(|_| super::legality::not_constant(kernel, definitions, site))
                    .err();
                found.push(Candidate {
                    name,
                    id: site.id,
                    looped: *label,
                    loop_name: kernel.labels[*label].name.clone(),
                    place: kernel.describe_place(data.place),
                    bytes: kernel.ty(site.results[0]).bytes() * site.results.len() as u32,
                    copies: summary.loads.iter().filter(|other| other.id == site.id).count() as u32,
                    is_rest: false,
                    parents: parents(&summary, site.pointer, &site.conditions),
                    refusal: refusal.map(|error| error.to_string()),
                });
            }
        }
        for inner in op.kind.regions() {
            collect(kernel, definitions, inner, found);
        }
    }
}

/// The loads of the loop that an address, or the conditions around its load, depend on.
pub(super) fn parents(
    summary: &LoopSummary,
    pointer: crate::ir::Value,
    conditions: &[(crate::ir::Value, bool)],
) -> Vec<LoadId> {
    let mut seen = std::collections::HashSet::new();
    let mut work = vec![pointer];
    work.extend(conditions.iter().map(|(cond, _)| *cond));
    let mut parents = Vec::new();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        let Some(inside) = summary.inside.get(&value) else {
            continue;
        };
        if let OpKind::Load { id, .. } = inside.kind {
            if let Some(site) = summary.loads.iter().find(|site| site.results.contains(&value)) {
                if !parents.contains(&id) {
                    parents.push(id);
                }
                // What decides whether the parent is loaded decides whether this one has an address.
                work.extend(site.conditions.iter().map(|(cond, _)| *cond));
            }
            continue;
        }
        inside.kind.for_each_operand(|operand| work.push(operand));
        if let Some(yielded) = &inside.yielded {
            yielded.for_each_value(inside.index, &mut |value| work.push(value));
        }
    }
    parents
}

fn shortest_name(kernel: &Kernel, candidate: &Candidate, all: &[Candidate]) -> LoadName {
    // The load of the rest is the main loop's, and needs no other name there.
    let others = || {
        all.iter()
            .filter(|other| !(other.id == candidate.id && other.looped == candidate.looped))
            .filter(|other| candidate.is_rest || !other.is_rest)
    };
    let same_param = |other: &&Candidate| other.name.param() == candidate.name.param();
    if !others().any(|other| same_param(&other)) {
        return candidate.name.clone();
    }
    let in_same_loop = |other: &&Candidate| same_param(other) && other.loop_name == candidate.loop_name;
    if let Some(name) = &candidate.loop_name
        && !others().any(|other| in_same_loop(&other))
        && let Ok(named) = candidate.name.clone().at(LoadPlace::Loop(name.clone()))
    {
        return named;
    }
    let place = &kernel.places[kernel.loads[candidate.id].place];
    let same_line = |other: &Candidate| kernel.places[kernel.loads[other.id].place].line == place.line;
    let crowded = others().any(|other| same_param(&other) && same_line(other));
    let column = NonZeroU32::new(place.column).filter(|_| crowded);
    let Some(line) = NonZeroU32::new(place.line) else {
        return candidate.name.clone();
    };
    let line = LoadPlace::Line {
        file: file_name(&place.file),
        line,
        column,
    };
    candidate
        .name
        .clone()
        .at(line)
        .unwrap_or_else(|_| candidate.name.clone())
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}

/// The candidates that a name means: one load, possibly in several loops after unrolling, or several that no name tells apart. The
/// rest of an unrolled loop is meant only where the name says so.
pub(super) fn resolve<'c>(
    kernel: &Kernel,
    candidates: &'c [Candidate],
    name: &LoadName,
) -> Result<Vec<&'c Candidate>> {
    let of_param: Vec<_> = candidates
        .iter()
        .filter(|candidate| candidate.name.param() == name.param())
        .collect();
    if of_param.is_empty() {
        let params: Vec<&str> = candidates
            .iter()
            .map(|candidate| candidate.name.param())
            .collect();
        let choices = all_names(candidates);
        let known = kernel.params.iter().any(|param| param.name == name.param());
        let what = match known {
            true => format!(
                "no loop of kernel `{}` loads from `{}`",
                kernel.shown(),
                name.param()
            ),
            false => format!("kernel `{}` has no load `{}`", kernel.shown(), name.param()),
        };
        let hint = suggest::nearest(name.param(), params.iter().copied());
        let hint = hint
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        return Err(Error::usage(what).accepted(format!("its loads are {choices}{hint}")));
    }
    let mut chosen: Vec<_> = of_param
        .iter()
        .copied()
        .filter(|candidate| matches(kernel, candidate, name))
        .collect();
    if chosen.iter().any(|candidate| !candidate.is_rest) {
        chosen.retain(|candidate| !candidate.is_rest);
    }
    let mut ids: Vec<LoadId> = chosen.iter().map(|candidate| candidate.id).collect();
    ids.dedup();
    match ids.len() {
        1 => Ok(chosen),
        1.. if name.place() == Some(&LoadPlace::Everywhere) => Ok(chosen),
        // What no name tells apart, as the copies of a function that was written out on one line, has one strategy.
        1.. if chosen.iter().all(|candidate| candidate.name == *name) => Ok(chosen),
        0 => Err(
            Error::usage(format!("`{name}` names no load of kernel `{}`", kernel.shown()))
                .accepted(format!("its loads are {}", all_names(candidates))),
        ),
        _ => {
            let choices: Vec<String> = chosen
                .iter()
                .map(|candidate| format!("`{}`", candidate.name))
                .collect();
            Err(
                Error::usage(format!("`{name}` means {} loads", ids.len())).accepted(format!(
                    "say which: {}, or `{}@*` for all of them",
                    choices.join(", "),
                    name.param()
                )),
            )
        }
    }
}

/// The plan with one name for the loads of a parameter that all have the same strategy.
pub(super) fn gathered(kernel: &Kernel, all: &[Candidate], plan: Plan) -> Result<Plan> {
    let mut short = plan.clone().without_loads();
    for (name, strategy) in plan.loads() {
        let everywhere = name.clone().at(LoadPlace::Everywhere)?;
        let sites = |name: &LoadName| -> Result<BTreeSet<(Label, LoadId)>> {
            let meant = resolve(kernel, all, name)?.into_iter();
            Ok(meant.map(|candidate| (candidate.looped, candidate.id)).collect())
        };
        let alike = plan
            .loads()
            .iter()
            .filter(|(other, same)| other.param() == name.param() && same == strategy);
        let mut named = BTreeSet::new();
        let mut count = 0;
        for (other, _) in alike {
            named.extend(sites(other)?);
            count += 1;
        }
        let is_all = count > 1 && named == sites(&everywhere)?;
        let name = if is_all { everywhere } else { name.clone() };
        if short.strategy(&name).is_none() {
            short = short.with(name, *strategy)?;
        }
    }
    Ok(short)
}

fn matches(kernel: &Kernel, candidate: &Candidate, name: &LoadName) -> bool {
    match name.place() {
        None | Some(LoadPlace::Everywhere) => true,
        Some(LoadPlace::Loop(name)) => candidate.loop_name.as_deref() == Some(name),
        Some(LoadPlace::Line { file, line, column }) => {
            let place = &kernel.places[kernel.loads[candidate.id].place];
            (place.file == *file || file_name(&place.file) == *file)
                && place.line == line.get()
                && column.is_none_or(|column| column.get() == place.column)
        }
    }
}

fn all_names(candidates: &[Candidate]) -> String {
    match candidates {
        [] => "none: it loads from no global memory in a loop".to_owned(),
        _ => {
            let names: Vec<String> = candidates
                .iter()
                .map(|candidate| format!("`{}`", candidate.name))
                .collect();
            names.join(", ")
        }
    }
}

/// Finds the loop operation of a label.
pub(super) fn find_loop(region: &Region, label: Label) -> Option<&Op> {
    for op in &region.ops {
        if matches!(&op.kind, OpKind::Loop { label: own, .. } if *own == label) {
            return Some(op);
        }
        if let Some(found) = op.kind.regions().find_map(|inner| find_loop(inner, label)) {
            return Some(found);
        }
    }
    None
}

/// Replaces the loop of a label by the output of `make`.
pub(super) fn replace_loop(
    kernel: &mut Kernel,
    label: Label,
    make: impl FnOnce(&mut Kernel, Op) -> Result<Vec<Op>>,
) -> Result<()> {
    let mut body = std::mem::take(&mut kernel.body);
    let mut make = Some(make);
    let outcome = replace_in(kernel, &mut body, label, &mut make);
    kernel.body = body;
    outcome.map(|_| ())
}

fn replace_in<F: FnOnce(&mut Kernel, Op) -> Result<Vec<Op>>>(
    kernel: &mut Kernel,
    region: &mut Region,
    label: Label,
    make: &mut Option<F>,
) -> Result<bool> {
    for index in 0..region.ops.len() {
        if matches!(&region.ops[index].kind, OpKind::Loop { label: own, .. } if *own == label) {
            let Some(make) = make.take() else { return Ok(true) };
            let new = make(kernel, region.ops[index].clone())?;
            region.ops.splice(index..=index, new);
            return Ok(true);
        }
        for inner in region.ops[index].kind.regions_mut() {
            if replace_in(kernel, inner, label, make)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::ir::parse;

    #[test]
    fn constant_memory_is_not_fetched_ahead() -> Result<()> {
        let kernel = parse(
            "hsir 1
             kernel @sum(%weights: ptr.global f32[64:i64] align 4 readonly unaliased constant, \
               %data: ptr.global f32[] align 4 readonly unaliased, %out: ptr.global f32[] align 4 unaliased, %n: i64) {
               load @weights
               load @data
               %sum = loop (%j = 0:i64, %acc = 0.0:f32) -> f32 {
                 %more = lt.s %j, %n
                 if %more { yield } else { break %acc }
                 %from = address %weights + %j * 4
                 %weight = load f32 %from, @weights
                 %at = address %data + %j * 4
                 %value = load f32 %at, @data
                 %product = fmul %weight, %value
                 %acc1 = fadd %acc, %product
                 %j1 = add %j, 1:i64
                 continue %j1, %acc1
               }
               store %out, %sum
               return
             }",
            "sum.hsir",
        )?;
        let refused: Vec<(String, bool)> = candidates(&kernel)
            .into_iter()
            .map(|load| (load.name.to_string(), load.refusal.is_some()))
            .collect();
        assert_eq!(
            refused,
            [("weights".to_owned(), true), ("data".to_owned(), false)]
        );
        assert!(crate::ir::print(&kernel).contains(" constant"), "it is printed");
        Ok(())
    }

    #[test]
    fn one_name_means_every_load_of_a_parameter() -> Result<()> {
        let sum = |name: &str, load: &str| {
            format!(
                "%{name} = loop '{name} (%j{name} = 0:i64, %acc{name} = 0.0:f32) -> f32 {{
                   %more{name} = lt.s %j{name}, %n
                   if %more{name} {{ yield }} else {{ break %acc{name} }}
                   %at{name} = address %data + %j{name} * 4
                   %value{name} = load f32 %at{name}, @{load}
                   %next{name} = fadd %acc{name}, %value{name}
                   %k{name} = add %j{name}, 1:i64
                   continue %k{name}, %next{name}
                 }}"
            )
        };
        let text = format!(
            "hsir 1
             kernel @sum(%data: ptr.global f32[] align 4 readonly unaliased, %out: ptr.global f32[] align 4 unaliased, %n: i64) {{
               load @data
               load @data.2
               {}
               {}
               %all = fadd %one, %two
               store %out, %all
               return
             }}",
            sum("one", "data"),
            sum("two", "data.2")
        );
        let kernel = parse(&text, "sum.hsir")?;
        let carried_out = |plan: &str| {
            let applied = crate::apply(&kernel, &plan.parse()?, &crate::PlanTarget::default())?;
            Ok::<_, Error>((crate::ir::print(&applied.kernel), applied.plan.to_string()))
        };
        let (gathered, name) = carried_out("data@*=cache:L2:4")?;
        assert_eq!(name, "data@*=cache:L2:4");
        let (apart, name) = carried_out("data@one=cache:L2:4,data@two=cache:L2:4")?;
        assert_eq!(name, "data@*=cache:L2:4");
        let derived = |text: &str| {
            text.lines()
                .filter(|line| !line.contains("data@"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(derived(&gathered), derived(&apart));
        for others in ["data@one=cache:L2:4", "data@one=cache:L2:4,data@two=cache:L2:8"] {
            assert_eq!(carried_out(others)?.1, others);
        }
        Ok(())
    }
}
