//! A plan in words, for readers who do not know its grammar.

use crate::prefetch::plan::{JointScope, Layout, Plan, Strategy, Unroll};

/// One sentence a part of the plan: the loops inside, the unrolling, the registers, then each load.
///
/// Every part is the piece of the plan as written, and its effect.
pub(crate) fn plan(plan: &Plan) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    if plan.is_none() {
        return vec![("none".to_owned(), "The kernel stays as it is.".to_owned())];
    }
    if let Some(inner) = plan.inner() {
        let sentence = format!(
            "Up to {inner} iterations of each loop inside become part of the loop around it: that loop has their loads."
        );
        parts.push((format!("inner:{inner}"), sentence));
    }
    if let Some(unroll) = plan.unroll() {
        parts.push((unroll.to_string(), unrolling(unroll, !plan.loads().is_empty())));
    }
    if let Some(registers) = plan.registers() {
        let sentence = format!(
            "The compiler may use {registers} registers for a work-item (`.maxnreg {registers}`): it starts more loads before it \
             waits for the first. In CUDA `__launch_bounds__` says as much by the work-groups that a core is to hold."
        );
        parts.push((format!("registers:{registers}"), sentence));
    }
    for (number, &(ref load, strategy)) in plan.loads().iter().enumerate() {
        let is_said = plan.loads()[..number].iter().any(|(_, other)| *other == strategy);
        let sentence = match is_said {
            true => format!("`{}` in the same way.", load.param()),
            false => for_load(load.param(), strategy),
        };
        parts.push((format!("{load}={strategy}"), sentence));
    }
    parts
}

fn unrolling(unroll: Unroll, with_loads: bool) -> String {
    let group = match unroll {
        Unroll::By(count) => format!("The loop runs {count} iterations at a time"),
        Unroll::Full => "The loop becomes straight code".to_owned(),
        Unroll::Early => "The loads of an iteration are issued first, then their uses follow".to_owned(),
    };
    let effect = if with_loads {
        "the early fetches of a group are issued together and waited for together"
    } else {
        "the loads of a group are issued first, then their uses follow"
    };
    format!("{group}: {effect}.")
}

fn for_load(load: &str, strategy: Strategy) -> String {
    let distance = strategy.distance().get();
    let ahead = if distance == 1 {
        "1 iteration".to_owned()
    } else {
        format!("{distance} iterations")
    };
    let place = strategy.layout().map(|layout| match layout {
        Layout::Plain => "each work-item's values lie together".to_owned(),
        Layout::Padded => {
            format!(
                "each work-item's values lie together, padded to {} elements",
                layout.depth(strategy.distance())
            )
        }
        Layout::Interleaved => "the values of neighbouring work-items are neighbours".to_owned(),
    });
    let filled = [
        ("{load}", load),
        ("{distance}", &distance.to_string()),
        ("{ahead}", &ahead),
        ("{nth}", &nth(distance)),
        ("{place}", &place.unwrap_or_default()),
        ("{level}", strategy.level().map_or("", |level| level.name())),
        (
            "{once}",
            if strategy.is_nontemporal() {
                ", marked as used once"
            } else {
                ""
            },
        ),
        (
            "{who}",
            match strategy.scope() {
                JointScope::SubGroup => "sub-group",
                JointScope::WorkGroup => "work-group",
            },
        ),
    ];
    // A load's name may hold braces: it is filled in last.
    let sentence = strategy.descriptor().sentence.to_owned();
    let fill = |sentence: String, (place, text): &(&str, &str)| sentence.replace(place, text);
    filled.iter().rev().fold(sentence, fill)
}

/// `iteration`, `2nd iteration`, `4th iteration`.
fn nth(distance: u32) -> String {
    let suffix = match (distance % 10, distance % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    if distance == 1 {
        "iteration".to_owned()
    } else {
        format!("{distance}{suffix} iteration")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_plan_has_its_sentence() {
        let text = "unroll:8,registers:128,a=rolling-async:16,b=batched-registers:3,c=cache:L1:1/nt,d=joint:L2:2/group,e=bulk:L2:4,\
                    f=batched-shared:8/padded,g=rolling-shared:2/plain,h=rolling-registers:1";
        let parts = plan(&text.parse().expect("a plan"));
        let written: Vec<&str> = parts.iter().map(|(part, _)| part.as_str()).collect();
        assert_eq!(
            written.join(","),
            text.parse::<Plan>().expect("a plan").to_string()
        );
        assert!(parts[1].1.contains("128 registers"));
        assert!(parts[3].1.starts_with("Every 3rd iteration, 3 values of `b`"));
        assert!(
            parts[4]
                .1
                .contains("1 iteration before its use, marked as used once")
        );
        assert!(parts[7].1.contains("padded to 9 elements"));
        assert_eq!(plan(&Plan::none()).len(), 1);
    }
}
