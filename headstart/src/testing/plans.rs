//! Random plans for a kernel: legal or not, the passes decide.

use super::random::Random;
use crate::ir::{Kernel, LoadId, OpKind};
use crate::prefetch::Plan;

/// A random plan for loads of parameters that lie in loops.
///
/// Distances reach over the trip counts of random kernels. Some plans name parents of chains, too.
pub fn random_plan(random: &mut Random, kernel: &Kernel) -> Plan {
    let candidates = loads_in_loops(kernel);
    let mut parts = Vec::new();
    if random.chance(40) || candidates.is_empty() {
        let unroll = [
            "unroll:2",
            "unroll:3",
            "unroll:4",
            "unroll:8",
            "unroll:16",
            "unroll:full",
        ];
        parts.push((*random.choose(&unroll)).to_owned());
    }
    if !candidates.is_empty() && (parts.is_empty() || random.chance(70)) {
        for _ in 0..*random.choose(&[1, 1, 1, 2, 3]) {
            let load = *random.choose(&candidates);
            parts.push(format!("{}={}", name(kernel, load), strategy(random)));
        }
    }
    // A load named twice is refused; a single part never is.
    let plan = parts.join(",").parse().or_else(|_| parts[0].parse());
    plan.unwrap_or_else(|_| Plan::none())
}

/// Loads and copies of parameters inside of loops, in order.
fn loads_in_loops(kernel: &Kernel) -> Vec<LoadId> {
    let mut found = Vec::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Loop { body, .. } = &op.kind else {
            return;
        };
        body.walk(&mut |op| {
            if let OpKind::Load { id, .. } = op.kind
                && kernel.param(&kernel.loads[id].name).is_some()
                && !found.contains(&id)
            {
                found.push(id);
            }
        });
    });
    found
}

/// A load as plans name it: with its line, because tables are read in many places.
fn name(kernel: &Kernel, load: LoadId) -> String {
    let data = &kernel.loads[load];
    let place = &kernel.places[data.place];
    match place.line {
        0 => data.name.clone(),
        line => format!("{}@{}:{line}", data.name, place.file),
    }
}

fn strategy(random: &mut Random) -> String {
    let distance = *random.choose(&[1, 1, 2, 2, 3, 4, 5, 8, 16, 21]);
    let layout = *random.choose(&["", "/plain", "/padded", "/interleaved"]);
    match random.below(8) {
        0 => format!("batched-registers:{distance}"),
        1 => format!("rolling-registers:{distance}"),
        2 => format!("batched-shared:{distance}{layout}"),
        3 => format!("rolling-shared:{distance}{layout}"),
        4..7 => format!("rolling-async:{distance}{layout}"),
        _ => {
            let level = random.between(1, 4);
            let nontemporal = if random.chance(30) { "/nt" } else { "" };
            format!("cache:L{level}:{distance}{nontemporal}")
        }
    }
}
