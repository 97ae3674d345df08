//! What profilers export on devices that no model is of, in the words of several of their versions.

use super::{close, ncu};
use crate::advise::profiler::{Profiled, Profiler, Wanted, parse, read};
use crate::advise::{Advice, Answer, text};
use crate::evidence::{Profile, Resources};
use crate::report::columns::Columns;
use crate::report::terms::Terms;
use crate::report::{Geometry, Verdict};

const DETAILS: &str = include_str!("../../../../../../headstart/tests/data/profiles/ncu-details-8.6.csv");
const OLD: &str = include_str!("../../../../../../headstart/tests/data/profiles/ncu-details-2020.csv");
const RAW: &str = include_str!("../../../../../../headstart/tests/data/profiles/ncu-raw-12.0.csv");
const STALLS: &str = include_str!("../../../../../../headstart/tests/data/profiles/vtune-stalls.csv");

fn vtune(text: &str, device: Option<&str>) -> crate::error::Result<Profiled> {
    let model = device.map(|name| crate::model::built_in(name, &[]).expect("a model"));
    let wanted = Wanted {
        model: model.as_ref(),
        ..Wanted::default()
    };
    parse(Profiler::VTune, text.as_bytes(), &wanted)
}

#[test]
fn occupancy_is_the_file_s_on_a_gpu_without_a_model() {
    let profiled = ncu(DETAILS).expect("a profile");
    let evidence = &profiled.evidence;
    // Compute capability 8.6 has places for 48 warps, not for 64.
    assert_eq!((evidence.cores, evidence.places), (84, 48));
    assert_eq!((evidence.groups, evidence.group), (4096, 256));
    assert_eq!(evidence.resident(), Some(40));
    assert!(close(evidence.occupancy(), 0.6342), "{evidence:?}");
    assert_eq!(profiled.registers, Some(38));
    assert_eq!(profiled.simulated, None);
    assert!(close(evidence.bandwidth_used(), 0.621), "{evidence:?}");
    assert!(close(evidence.waiting_for_loads, 0.729), "{evidence:?}");
    let advice = Advice::of_profiler(&profiled);
    let shown = text(&advice, Columns::UNLIMITED.in_terms(Some(Terms::Cuda)));
    assert!(
        shown.contains("Device memory is busy 62 % of the time."),
        "{shown}"
    );
    assert!(
        shown.contains("30.4 of 48 warps are resident on each SM on average (63 % occupancy)"),
        "{shown}"
    );
    assert!(
        !shown.contains("work-item") && !shown.contains("sub-group"),
        "{shown}"
    );
}

/// The share by scheduler and the share of the places say the same as the warps do.
#[test]
fn each_of_the_counters_of_warps_is_enough() {
    let without = |names: &[&str]| {
        let lines = DETAILS
            .lines()
            .filter(|line| !names.iter().any(|name| line.contains(name)));
        let text = lines.collect::<Vec<_>>().join("\n");
        ncu(&text).expect("a profile").evidence
    };
    let warps = "\"Achieved Active Warps Per SM\"";
    let share = "\"Achieved Occupancy\"";
    for names in [&[warps][..], &[share], &[warps, share]] {
        let evidence = without(names);
        assert!(close(evidence.achieved, 30.44), "{names:?}: {evidence:?}");
    }
    assert_eq!(
        without(&["\"Theoretical Active Warps per SM\""]).resident(),
        Some(40)
    );
    assert_eq!(without(&["\"Theoretical"]).resident(), None);
    let unknown = DETAILS.replace("\"8.6\"", "\"99.9\"");
    assert_eq!(ncu(&unknown).expect("a profile").evidence.occupancy(), None);
}

#[test]
fn registers_and_residency_are_the_file_s_without_a_model_and_without_the_cores() {
    let lines = DETAILS.lines().filter(|line| !line.contains("\"# SMs\""));
    let advice = Advice::of_profiler(&ncu(&lines.collect::<Vec<_>>().join("\n")).expect("a profile"));
    let said = text(&advice, Columns::UNLIMITED.in_terms(Some(Terms::Cuda)));
    for expected in [
        "30.4 of 48 warps are resident on each SM on average (63 % occupancy)",
        "A thread has 38 registers",
    ] {
        assert!(said.contains(expected), "{expected} in:\n{said}");
    }
    assert!(!said.contains("does not say how many"), "{said}");
    // A model's registers are those of another compiler.
    let own = ncu(DETAILS).expect("a profile").profile;
    let resources = Resources {
        registers: 16,
        registers_possible: 255,
        shared: 0,
        shared_possible: 0,
    };
    let other = Profile {
        resources: Some(resources),
        ..Profile::default()
    };
    assert_eq!(own.with_gaps_from(Some(&other)).resources, own.resources);
}

#[test]
fn the_profile_s_own_rule_is_the_first_advice() {
    let advice = Advice::of_profiler(&ncu(DETAILS).expect("a profile"));
    assert_eq!(advice.verdict, Verdict::Undecided, "{}", advice.conclusion);
    assert!(
        advice
            .conclusion
            .starts_with("First: Let neighbouring work-items access neighbouring elements"),
        "{}",
        advice.conclusion
    );
    assert!(
        advice.conclusion.contains("75 % of the sectors"),
        "{}",
        advice.conclusion
    );
    let first = &advice.first.first().expect("a remedy").finding;
    assert!(first.contains("75 % of the sectors"), "{first}");
    let coalesced = DETAILS.replace("(75% of", "(2% of");
    let advice = Advice::of_profiler(&ncu(&coalesced).expect("a profile"));
    assert!(
        !advice.conclusion.contains("neighbouring"),
        "{}",
        advice.conclusion
    );
}

#[test]
fn the_columns_of_2020_are_read() {
    let profiled = ncu(OLD).expect("a profile");
    let evidence = &profiled.evidence;
    assert_eq!((evidence.groups, evidence.group), (506, 192));
    assert!(close(Some(evidence.time_ns), 50e3), "{evidence:?}");
    assert!(close(evidence.bandwidth_used(), 0.315), "{evidence:?}");
    assert_eq!(profiled.registers, Some(24));
    // Neither a capability nor the places: the warps alone make no occupancy.
    assert_eq!(evidence.occupancy(), None);
}

#[test]
fn blackwell_s_bytes_and_busy_pipelines_are_read() {
    let profiled = ncu(RAW).expect("a profile");
    let evidence = &profiled.evidence;
    assert!(close(evidence.memory_bytes, 160e6), "{evidence:?}");
    assert!(close(evidence.delivered(), 800.0), "{evidence:?}");
    assert!(close(evidence.bandwidth_used(), 0.446), "{evidence:?}");
    assert_eq!((evidence.places, evidence.resident()), (48, Some(16)));
    assert!(close(evidence.achieved, 16.0), "{evidence:?}");
    // Nothing says what it waits for, and 91 % of the pipelines' time is taken.
    let advice = Advice::of_profiler(&profiled);
    assert_eq!(advice.verdict, Verdict::LeaveIt, "{advice:?}");
    assert!(
        advice
            .conclusion
            .contains("instructions are busy 91 % of the time"),
        "{}",
        advice.conclusion
    );
}

#[test]
fn vtune_s_stalls_are_no_waiting_and_its_device_is_named() {
    let refused = vtune(STALLS, None).expect_err("no device").to_string();
    assert!(
        refused.contains("does not name its device") && refused.contains("--device"),
        "{refused}"
    );
    let profiled = vtune(STALLS, Some("pvc-1550")).expect("a profile");
    assert_eq!(profiled.kernel, "smooth");
    assert_eq!(profiled.evidence.waiting_for_loads, None);
    assert!(close(profiled.profile.idle, 0.533), "{:?}", profiled.profile.idle);
    // A quarter of 64 places, as counted, and not the peak.
    assert!(close(profiled.evidence.achieved, 16.0), "{:?}", profiled.evidence);
    let notes = profiled.notes.join("\n");
    assert!(
        notes.contains(
            "active 7.3 % of the time, stalled for any reason 39 %, and idle, without a thread, 53 %"
        ),
        "{notes}"
    );
    assert!(notes.contains("stall-sampling"), "{notes}");
    let advice = Advice::of_profiler(&profiled);
    assert_eq!(advice.steps[1].answer, Answer::Unknown);
    assert!(
        advice
            .instead
            .iter()
            .any(|remedy| remedy.finding.contains("no sub-group at all 53 % of the time")),
        "{:?}",
        advice.instead
    );

    let adapter = "Intel(R) Data Center GPU Max 1550";
    let grouped = STALLS
        .replace(
            "Computing Task\tComputing",
            "Computing Task\tGPU Adapter\tComputing",
        )
        .replace("smooth\t", &format!("smooth\t{adapter}\t"))
        .replace("task]\t", "task]\t\t")
        .replace("Copy\t", "Copy\t\t");
    let named = vtune(&grouped, None).expect("it names its device");
    assert!(
        named
            .simulated
            .as_deref()
            .is_some_and(|name| name.starts_with("sim:pvc-1550")),
        "{named:?}"
    );
    let other = grouped.replace(adapter, "Intel(R) Arc(TM) B580 Graphics");
    assert!(vtune(&other, None).is_err());
}

#[test]
fn a_profile_of_another_launch_is_refused_with_both_numbers() {
    let mut profiled = ncu(DETAILS).expect("a profile");
    let own = Geometry {
        groups: 4096,
        group: 256,
    };
    assert!(profiled.is_of_geometry(own).is_ok());
    let other = Geometry { groups: 1024, ..own };
    let refused = profiled
        .is_of_geometry(other)
        .expect_err("another grid")
        .to_string();
    assert!(
        refused.contains("4,096 work-groups of 256") && refused.contains("1,024 work-groups of 256"),
        "{refused}"
    );
    assert!(refused.contains("--profile-is-of-another-launch"), "{refused}");
    assert!(profiled.is_of_geometry(Geometry { group: 128, ..own }).is_err());
    assert!(profiled.is_of_run(300e3, Some(40)).is_ok());
    let refused = profiled
        .is_of_run(200e3, Some(40))
        .expect_err("half the time")
        .to_string();
    assert!(
        refused.contains("412 µs") && refused.contains("200 µs"),
        "{refused}"
    );
    let refused = profiled
        .is_of_run(412e3, Some(128))
        .expect_err("other registers")
        .to_string();
    assert!(
        refused.contains("38 registers") && refused.contains("128 registers"),
        "{refused}"
    );
    profiled.is_of_another_launch = true;
    assert!(profiled.is_of_geometry(other).is_ok() && profiled.is_of_run(1.0, Some(128)).is_ok());
}

#[test]
fn reports_of_the_profilers_themselves_are_to_be_exported() {
    let folder = std::env::temp_dir();
    let refused = |profiler, path: &std::path::Path| {
        read(profiler, path, &Wanted::default())
            .expect_err("no CSV")
            .to_string()
    };
    let report = refused(Profiler::NsightCompute, &folder.join("run.ncu-rep"));
    assert!(report.contains("ncu --import FILE.ncu-rep --csv"), "{report}");
    let result = refused(Profiler::VTune, &folder);
    assert!(result.contains("vtune -report hotspots -r FOLDER"), "{result}");
}
