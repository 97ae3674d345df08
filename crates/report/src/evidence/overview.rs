//! Overview of a kernel before anything runs: a sentence for each load in a loop.

use std::collections::HashMap;

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::summarize;
use crate::analysis::neighbours::Neighbours;
use crate::ir::{Kernel, Label, LoadId, OpKind};
use crate::prefetch::Loads;

use super::structure::described;

/// Sentences about the loads from global memory in a kernel's loops: their sources, the stride between neighbours, the loads on
/// which their addresses depend, and those that cannot be fetched early. One sentence if there are none.
pub fn overview(kernel: &Kernel) -> Vec<String> {
    let apart = apart(kernel);
    let found = Loads::of(kernel);
    let (ids, loads) = (found.all(), described(kernel, &found));
    let rest_of = |id: LoadId| {
        let mut rests = loads.iter().zip(ids);
        let rest = rests.find(|(_, other)| other.is_rest && other.id == id);
        rest.map(|(load, _)| load.loop_place.as_str())
    };
    let sentences = loads
        .iter()
        .zip(ids)
        .filter(|(_, candidate)| !candidate.is_rest)
        .map(|(load, candidate)| {
            let mut text = format!(
                "in the loop at {}, `{}` reads {} bytes per work-item",
                load.loop_place,
                load.whole_chain(),
                load.bytes
            );
            if candidate.copies > 1 {
                text.push_str(&format!(" in each of {} copies", candidate.copies));
            }
            text.push_str(&match apart.get(&(candidate.looped, candidate.id)) {
                Some(Some(0)) => ", the same for neighbours".to_owned(),
                Some(Some(bytes)) if bytes.unsigned_abs() == u64::from(load.bytes) => {
                    ", adjacent for neighbours".to_owned()
                }
                Some(Some(bytes)) => format!(", {} bytes apart for neighbours", bytes.unsigned_abs()),
                _ if load.chain.is_empty() => String::new(),
                _ => ", at scattered addresses".to_owned(),
            });
            if let Some(rest) = rest_of(candidate.id) {
                text.push_str(&format!("; the remainder runs at {rest}"));
            }
            if let Some(refusal) = &load.refusal {
                text.push_str(&format!("; {refusal}"));
            }
            text
        });
    // The same is said of each copy of a function.
    let mut counted: Vec<(String, usize)> = Vec::new();
    for sentence in sentences {
        match counted.iter_mut().find(|(known, _)| *known == sentence) {
            Some((_, count)) => *count += 1,
            None => counted.push((sentence, 1)),
        }
    }
    match counted.is_empty() {
        true => vec!["no loop has a load from global memory".to_owned()],
        false => counted
            .into_iter()
            .map(|(sentence, count)| match count {
                1 => sentence,
                _ => format!("{count} times: {sentence}"),
            })
            .collect(),
    }
}

/// By how many bytes each load's address grows from one work-item of a sub-group to the next, by loop and load.
fn apart(kernel: &Kernel) -> HashMap<(Label, LoadId), Option<i64>> {
    let definitions = Definitions::of(kernel);
    let mut neighbours = Neighbours::of(kernel, &definitions, false);
    let mut found = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = &op.kind {
            for site in &summarize(kernel, &definitions, op).loads {
                found
                    .entry((*label, site.id))
                    .or_insert_with(|| neighbours.growth(site.pointer));
            }
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::read;

    #[test]
    fn loads_are_told_with_their_chains_and_neighbours() {
        let kernel = read(
            include_str!("../../../../headstart/tests/in/gather.hsir"),
            "gather.hsir",
        )
        .expect("a kernel");
        let told = overview(&kernel);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].ends_with("`indices` reads 4 bytes per work-item"),
            "{told:?}"
        );
        assert!(
            told[1].contains("`indices → values`") && told[1].ends_with("at scattered addresses"),
            "{told:?}"
        );
    }

    #[test]
    fn neighbours_that_read_side_by_side_or_the_same_are_told() {
        let text = "hsir 1
            kernel @sum(%in: ptr.global f32[%length] align 4 readonly, %length: i64, %count: i64) group 128,1,1 {
              file #1 \"sum.rs\"
              load @own #1:1:1
              load @rows #1:2:1
              %local = id.local.x
              %item = extend.u %local to i64
              %own = address %in + %item * 4
              loop 'rows (%j = 0:i64, %at = %own) {
                %more = lt.s %j, %count
                if %more { yield } else { break }
                %x = load f32 %at, @own
                %row = address %in + %j * 4
                %y = load f32 %row, @rows
                %k = add %j, 1:i64
                %next = address %at + %count * 4
                continue %k, %next
              }
              return
            }";
        let kernel = read(text, "sum.hsir").unwrap_or_else(|error| panic!("{error}"));
        let told = overview(&kernel);
        assert!(told[0].contains("adjacent for neighbours"), "{told:?}");
        assert!(told[1].contains("the same for neighbours"), "{told:?}");
    }

    #[test]
    fn what_is_said_of_each_copy_of_a_function_is_said_once() {
        let looped = |label: &str, load: &str| {
            format!(
                "loop '{label} (%j{label} = 0:i64) #1:2:1 {{
                   %more{label} = lt.s %j{label}, %count
                   if %more{label} {{ yield }} else {{ break }}
                   %row{label} = address %in + %j{label} * 4
                   %x{label} = load f32 %row{label}, @{load}
                   %next{label} = add %j{label}, 1:i64
                   continue %next{label}
                 }}"
            )
        };
        let text = format!(
            "hsir 1
            kernel @sum(%in: ptr.global f32[%length] align 4 readonly, %length: i64, %count: i64) group 128,1,1 {{
              file #1 \"sum.rs\"
              load @rows #1:3:1
              load @rows.2 #1:3:1
              {}
              {}
              return
            }}",
            looped("a", "rows"),
            looped("a.2", "rows.2"),
        );
        let kernel = read(&text, "sum.hsir").unwrap_or_else(|error| panic!("{error}"));
        let told = overview(&kernel);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("2 times: in the loop at sum.rs:2:1"),
            "{told:?}"
        );
    }

    #[test]
    fn a_kernel_without_loads_in_loops_is_told_so() {
        let text = "hsir 1\nkernel @nothing() { return }";
        let kernel = read(text, "nothing.hsir").expect("a kernel");
        assert_eq!(overview(&kernel), ["no loop has a load from global memory"]);
    }
}
