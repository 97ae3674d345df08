//! The plans and counters of the workloads that `headstart-lab bench` measures; the gallery lists the workloads.

use headstart::ir::CacheLevel;
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::prefetch::plan::LoadName;
use headstart::tune::search::main_loads;
use headstart::tune::space::likely_plans;
use headstart::{Result, tune};
use headstart_gallery::workloads::cases::{Case, Moves};

/// The plans that are tried for a workload: those that win most often, and the small groups that suit short loops.
///
/// # Errors
/// There are more loads than a plan can name.
pub fn plans(plain: &Kernel) -> Result<Vec<Plan>> {
    let loads: Vec<LoadName> = main_loads(plain);
    let mut plans = vec!["unroll:2".parse()?];
    plans.extend(likely_plans(&loads, &[CacheLevel::L1, CacheLevel::L2])?);
    if loads.is_empty() {
        return Ok(plans);
    }
    for template in [
        "unroll:2,LOAD=rolling-registers:2",
        "unroll:4,LOAD=rolling-registers:4",
        "unroll:4,LOAD=rolling-async:16",
        "LOAD=rolling-registers:1",
        "LOAD=rolling-async:8",
    ] {
        let (start, strategy) = template.split_once("LOAD=").unwrap_or((template, ""));
        let named: Vec<String> = loads.iter().map(|load| format!("{load}={strategy}")).collect();
        plans.push(format!("{start}{}", named.join(",")).parse()?);
    }
    // One of several loads alone.
    for load in loads.iter().filter(|_| loads.len() > 1) {
        for strategy in ["rolling-registers:4", "rolling-async:8"] {
            plans.push(format!("unroll:4,{load}={strategy}").parse()?);
        }
    }
    plans.dedup();
    Ok(plans)
}

/// The bytes that a workload has to move.
pub fn moved(case: &Case, workload: &tune::Workload) -> Option<u64> {
    let length = |name: &str| {
        let given = workload.given.iter().zip(&workload.kernel.params);
        given.into_iter().find_map(|(given, param)| match given {
            tune::ArgumentSpec::Input { element, length, .. }
            | tune::ArgumentSpec::Output { element, length, .. } => {
                (param.name == name).then_some((*length, u64::from(element.bytes())))
            }
            tune::ArgumentSpec::Scalar(..) | tune::ArgumentSpec::Part { .. } => None,
        })
    };
    match case.moves {
        Moves::Unknown => None,
        Moves::Buffers => Some(workload.bytes()),
        Moves::Rows => {
            let ((indices, index), (results, size)) = (length("indices")?, length("result")?);
            let (bags, offset) = length("offsets")?;
            let dim = results / (bags - 1).max(1);
            Some(indices * (dim * size + index) + results * size + bags * offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_gallery::kernels;
    use headstart_gallery::workloads::cases::{Bags, all};

    #[test]
    fn every_shape_can_be_set_and_every_workload_has_plans() {
        for case in all(Bags::All) {
            assert!(!case.shapes.is_empty(), "{}", case.name);
            for (kernel, shape) in &case.shapes {
                let chosen = case.chosen(kernel, shape);
                chosen.unwrap_or_else(|error| panic!("{}: {error}", case.name));
            }
        }
        let small = ["bags=2".to_owned(), "rows=10".to_owned()];
        let bag = kernels::find("embedding-bag")
            .and_then(|kernel| kernel.with(&small, None))
            .expect("a kernel");
        let workload = tune::Subject::workload(&bag).expect("a workload");
        let plans = plans(&workload.kernel).expect("plans");
        assert!(plans.len() > 20, "{}", plans.len());
        assert!(plans.contains(&"unroll:8,table=rolling-registers:8".parse().expect("a plan")));
        // Two bags of 150 indices of 4 bytes, rows of 512, results and three offsets.
        let case = &all(Bags::Pairs)[0];
        assert_eq!(moved(case, &workload), Some(300 * (512 + 4) + 2 * 512 + 3 * 4));
    }
}
