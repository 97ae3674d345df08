//! Profiles recorded and made by hand (`tests/data/profiles/README.md`), whole, mangled and cut short.

mod exports;

use super::*;
use crate::advise::{Advice, Answer};
use crate::random::Random;
use crate::report::Verdict;
use crate::report::columns::Columns;

const RAW: &str = include_str!("../../../../../headstart/tests/data/profiles/ncu-raw.csv");
const DETAILS: &str = include_str!("../../../../../headstart/tests/data/profiles/ncu-details-comma.csv");
const VTUNE: &str = include_str!("../../../../../headstart/tests/data/profiles/vtune-synthetic.csv");

const RECORDED_RAW: &str = include_str!("../../../../../headstart/tests/data/profiles/recorded-raw.csv");
const RECORDED_DETAILS: &str =
    include_str!("../../../../../headstart/tests/data/profiles/recorded-details.csv");
const GALLERY: &str = include_str!("../../../../../headstart/tests/data/profiles/gallery-raw.csv");
const RECORDED_BASIC: &str = include_str!("../../../../../headstart/tests/data/profiles/recorded-basic.csv");

fn ncu(text: &str) -> Result<Profiled> {
    parse(Profiler::NsightCompute, text.as_bytes(), &Wanted::default())
}

fn vtune(text: &str) -> Result<Profiled> {
    let model = crate::model::built_in("pvc-1550", &[]).expect("a model");
    let wanted = Wanted {
        model: Some(&model),
        ..Wanted::default()
    };
    parse(Profiler::VTune, text.as_bytes(), &wanted)
}

fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() <= 0.01 * expected.abs())
}

#[test]
fn the_raw_page_is_found_behind_what_the_program_printed() {
    let profiled = ncu(RAW).expect("a profile");
    assert!(profiled.kernel.starts_with("gather("), "{}", profiled.kernel);
    assert_eq!(profiled.device, "NVIDIA H200");
    let evidence = &profiled.evidence;
    assert_eq!((evidence.cores, evidence.groups, evidence.group), (132, 132, 128));
    assert_eq!(evidence.time_ns, 1_273_440.0);
    assert!(close(evidence.memory_bytes, 1_205.93e6), "{evidence:?}");
    assert!(close(evidence.waiting_for_loads, 12.40 / 15.18), "{evidence:?}");
    assert_eq!(evidence.resident(), Some(4));
    assert!(close(evidence.issued, 0.0612));
    let resources = profiled
        .profile
        .resources
        .expect("registers and shared memory are there");
    assert_eq!((resources.registers, resources.shared), (32, 0));
    // Two launches: the longer one is taken, and that is said.
    assert_eq!(profiled.notes.len(), 1, "{:?}", profiled.notes);
    assert!(profiled.notes[0].contains("Launch 0 of the profile, the longest of 2"));
}

#[test]
fn recorded_profiles_of_one_program_agree() {
    // The details page has the profiler's rule: what is not coalesced comes first.
    for (text, waiting, verdict) in [
        (RECORDED_RAW, 18.0 / 22.95, Verdict::Prefetch),
        (RECORDED_DETAILS, 0.784, Verdict::Undecided),
    ] {
        let profiled = ncu(text).expect("a profile");
        let evidence = &profiled.evidence;
        assert!(profiled.kernel.starts_with("gather("), "{}", profiled.kernel);
        assert_eq!((evidence.cores, evidence.groups, evidence.group), (132, 132, 128));
        assert!((1.2e6..1.3e6).contains(&evidence.time_ns), "{evidence:?}");
        assert!(close(evidence.delivered(), 936.0), "{evidence:?}");
        assert!(close(evidence.waiting_for_loads, waiting), "{evidence:?}");
        assert_eq!(evidence.resident(), Some(4));
        let resources = profiled.profile.resources.expect("there");
        assert_eq!((resources.registers, resources.shared), (20, 0));
        assert_eq!(profiled.notes.len(), 1, "{:?}", profiled.notes);
        assert_eq!(Advice::of_profiler(&profiled).verdict, verdict);
    }
    let basic = ncu(RECORDED_BASIC).expect("a profile");
    assert_eq!(basic.evidence.waiting_for_loads, None);
    assert!(
        basic
            .notes
            .last()
            .is_some_and(|note| note.contains("--section WarpStateStats"))
    );
    // With sixteen times the work-groups memory reaches its limit for scattered accesses.
    let full = Wanted {
        launch: Some(2),
        ..Wanted::default()
    };
    let full = parse(Profiler::NsightCompute, RECORDED_RAW.as_bytes(), &full).expect("there");
    let advice = Advice::of_profiler(&full);
    assert_eq!(advice.steps.last().map(|step| step.answer), Some(Answer::No));
    assert_eq!(advice.steps[0].answer, Answer::No, "{:?}", advice.steps[0]);
    assert_eq!(advice.verdict, Verdict::LeaveIt);
    assert!(
        advice
            .first
            .iter()
            .any(|remedy| remedy.finding.contains("4.50 bytes for each byte requested"))
    );
}

/// The measurements of each kernel of the gallery: whether memory has bandwidth to spare, whether sub-groups mostly wait for
/// loads, and the verdict without analysing the kernel.
#[test]
fn recorded_profiles_of_the_gallery_say_what_was_measured() {
    let expected = [
        ("gather", Answer::Yes, Answer::Yes, Verdict::Prefetch, 919.0),
        ("article", Answer::Yes, Answer::Yes, Verdict::Prefetch, 312.0),
        ("chase", Answer::Yes, Answer::Yes, Verdict::Prefetch, 1495.0),
        ("triad", Answer::No, Answer::Yes, Verdict::LeaveIt, 4324.0),
        ("nbody", Answer::Yes, Answer::Yes, Verdict::Prefetch, 0.105),
    ];
    for (kernel, spare, waits, verdict, delivered) in expected {
        let wanted = Wanted {
            kernel: Some(kernel),
            ..Wanted::default()
        };
        let profiled = parse(Profiler::NsightCompute, GALLERY.as_bytes(), &wanted).expect("there");
        let advice = Advice::of_profiler(&profiled);
        let answers = (advice.steps[0].answer, advice.steps[1].answer);
        assert_eq!((answers, advice.verdict), ((spare, waits), verdict), "{kernel}");
        assert!(
            close(profiled.evidence.delivered(), delivered),
            "{kernel}: {profiled:?}"
        );
        // Waiting kernels could be faster by the unused issue slots and bytes, and not by factors of thousands.
        let bounds = advice.bounds.expect("there are roofs");
        assert!((1.0..15.0).contains(&bounds.best_speedup), "{kernel}: {bounds:?}");
    }
}

#[test]
fn another_launch_is_taken_by_name_or_number() {
    let by_name = Wanted {
        kernel: Some("clear"),
        ..Wanted::default()
    };
    let by_number = Wanted {
        launch: Some(1),
        ..Wanted::default()
    };
    for wanted in [by_name, by_number] {
        let profiled = parse(Profiler::NsightCompute, RAW.as_bytes(), &wanted).expect("there");
        assert_eq!(profiled.evidence.group, 256);
    }
    let wanted = Wanted {
        kernel: Some("scatter"),
        ..Wanted::default()
    };
    let refused = parse(Profiler::NsightCompute, RAW.as_bytes(), &wanted).expect_err("not there");
    assert!(refused.to_string().contains("no kernel `scatter`"), "{refused}");
    assert!(refused.to_string().contains("gather("), "{refused}");
}

#[test]
fn the_details_page_tells_stalls_in_a_sentence_and_numbers_with_a_comma() {
    let profiled = ncu(DETAILS).expect("a profile");
    let evidence = &profiled.evidence;
    assert_eq!(evidence.time_ns, 1_273_440.0);
    assert!(close(evidence.delivered(), 947.02), "{evidence:?}");
    assert!(close(evidence.waiting_for_loads, 0.817), "{evidence:?}");
    assert!(close(
        profiled.profile.cache.as_ref().map(|cache| cache.hits),
        0.0086
    ));
    assert_eq!(evidence.resident(), Some(4));
    assert!(profiled.notes.is_empty(), "{:?}", profiled.notes);
}

#[test]
fn the_procedure_runs_on_a_profile() {
    for text in [RAW, DETAILS] {
        let profiled = ncu(text).expect("a profile");
        let advice = Advice::of_profiler(&profiled);
        // Nothing says that the work may be split: that is mentioned, not advised.
        assert_eq!(advice.verdict, Verdict::Prefetch, "{advice:?}");
        assert!(
            advice.conclusion.contains("more work-groups would fit"),
            "{advice:?}"
        );
        let answers: Vec<Answer> = advice.steps.iter().map(|step| step.answer).collect();
        assert_eq!(&answers[..2], [Answer::Yes, Answer::Yes]);
        // Without the kernel its loops are not known.
        assert_eq!(answers[3], Answer::Unknown);
        assert!(advice.bounds.is_some());
    }
}

#[test]
fn what_is_missing_is_named_with_the_command_that_collects_it() {
    // The names of the stalls are spoilt, as if they had not been collected.
    let text = RAW.replace("issue_stalled_", "issue_");
    let profiled = ncu(&text).expect("a profile without stalls");
    assert_eq!(profiled.evidence.waiting_for_loads, None);
    let note = profiled.notes.last().expect("a note");
    let expected = "Missing in the profile: reasons of stalls. To collect them: `ncu --csv --page raw --section WarpStateStats \
                    PROGRAM > FILE.csv`";
    assert_eq!(note, expected);
    let advice = Advice::of_profiler(&profiled);
    assert_eq!(advice.steps[1].answer, Answer::Unknown);
    assert_eq!(advice.verdict, Verdict::Undecided);

    // Not available is as good as not collected.
    let wanted = Wanted {
        launch: Some(1),
        ..Wanted::default()
    };
    let other = parse(Profiler::NsightCompute, RAW.as_bytes(), &wanted).expect("there");
    assert!(
        other.evidence.memory_bytes.is_some(),
        "the share of the bandwidth stands in"
    );

    let without_time = ncu(&RAW.replace("gpu__time_duration.sum", "gpu__other.sum")).expect_err("no time");
    assert!(
        without_time.to_string().contains("gpu__time_duration.sum"),
        "{without_time}"
    );
}

#[test]
fn files_of_other_kinds_are_refused_in_one_line() {
    for (bytes, expected) in [
        (&b""[..], "the profile is empty"),
        (b"hello\n", "ncu --csv --page raw"),
        (b"\x7fNVR\0\0\0\x01", "ncu --import"),
        (
            VTUNE.as_bytes(),
            "no line of the profile has the columns `ID`, `Kernel Name`",
        ),
        (b"\"ID\",\"Kernel Name\"\n", "no launch"),
        (b"\"ID\",\"Kernel Name\"\n\"x\",\"k\"\n", "number `x`"),
        (
            b"\"ID\",\"Kernel Name\"\n\"0\",\"k\",\"1\"\n",
            "a row has 3 cells, its header has 2",
        ),
    ] {
        let error = parse(Profiler::NsightCompute, bytes, &Wanted::default()).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains(expected), "{expected}: {text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn wide_text_is_read_as_text() {
    let mut bytes = vec![0xff, 0xfe];
    bytes.extend(RAW.encode_utf16().flat_map(u16::to_le_bytes));
    let profiled = parse(Profiler::NsightCompute, &bytes, &Wanted::default()).expect("a profile");
    assert_eq!(profiled.evidence.time_ns, 1_273_440.0);
}

#[test]
fn vtune_s_columns_are_found_by_what_their_names_hold() {
    let profiled = vtune(VTUNE).expect("a profile");
    assert_eq!(profiled.kernel, "gather");
    let evidence = &profiled.evidence;
    assert!((evidence.time_ns - 1_720_000.0).abs() < 1.0, "{evidence:?}");
    assert!(close(evidence.waiting_for_loads, 0.884 * 0.93), "{evidence:?}");
    assert!(close(evidence.delivered(), 613.5), "{evidence:?}");
    let advice = Advice::of_profiler(&profiled);
    assert_eq!(advice.verdict, Verdict::Prefetch, "{advice:?}");

    let other = VTUNE.replace("XVE Array", "Array");
    let profiled = vtune(&other).expect("a profile");
    assert!(
        profiled
            .notes
            .iter()
            .all(|note| !note.contains("XVE Array: Stalled")),
        "the reason is enough"
    );
    let refused = parse(Profiler::VTune, RAW.as_bytes(), &Wanted::default()).expect_err("another profiler's");
    assert!(refused.to_string().contains("vtune -report"), "{refused}");
}

/// VTune's counters beyond stalls and bandwidth answer the remaining questions. The file is synthetic.
#[test]
fn vtune_s_full_set_answers_the_procedure() {
    let text = include_str!("../../../../../headstart/tests/data/profiles/vtune-full-synthetic.csv");
    let profiled = vtune(text).expect("a profile");
    let evidence = &profiled.evidence;
    assert_eq!((evidence.groups, evidence.group), (64 * 264 / 128, 128));
    // 132 work-groups of four threads for 64 cores, which hold 64 threads each.
    assert!(evidence.is_starved(), "{evidence:?}");
    let advice = Advice::of_profiler(&profiled);
    let open: Vec<&str> = advice
        .steps
        .iter()
        .filter(|step| step.answer == Answer::Unknown)
        .map(|step| step.question)
        .collect();
    // Facts that only the kernel's text has.
    assert_eq!(
        open,
        [
            "Is the waiting in a sizeable loop?",
            "Are its iterations independent?"
        ]
    );
    let says = |what: &str| advice.instead.iter().any(|remedy| remedy.finding.contains(what));
    assert!(
        says("62 % of a sub-group's work-items are active") || says("61 % of a sub-group's"),
        "{:?}",
        advice.instead
    );
    let steps = format!("{:?}", advice.steps);
    assert!(steps.contains("L3 hit rate 16 %"), "{steps}");
}

/// Cut short anywhere, or with bytes changed anywhere, a file ends in advice or in one line, never in a panic.
#[test]
fn mangled_files_end_in_one_line() {
    let mut numbers = Random::new(7);
    let mut random = |below: usize| numbers.below(below as u64) as usize;
    let model = crate::model::built_in("pvc-1550", &[]).expect("a model");
    let device = |profiler| Some(&model).filter(|_| profiler == Profiler::VTune);
    let wanted = |profiler| Wanted {
        model: device(profiler),
        ..Wanted::default()
    };
    let check = |profiler, bytes: &[u8]| match parse(profiler, bytes, &wanted(profiler)) {
        Ok(profiled) => {
            let advice = Advice::of_profiler(&profiled);
            assert!(advice.time_ns > 0.0);
            crate::advise::text(&advice, Columns::UNLIMITED);
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    };
    for (profiler, text) in [
        (Profiler::NsightCompute, RAW),
        (Profiler::NsightCompute, DETAILS),
        (Profiler::NsightCompute, RECORDED_BASIC),
        (Profiler::VTune, VTUNE),
    ] {
        let bytes = text.as_bytes();
        for _ in 0..150 {
            check(profiler, &bytes[..random(bytes.len())]);
            let mut mangled = bytes.to_vec();
            for _ in 0..=random(8) {
                let at = random(mangled.len());
                match random(4) {
                    0 => drop(mangled.remove(at)),
                    1 => mangled.insert(at, b"\",;\n.-9e%("[random(10)]),
                    2 => mangled[at] = random(256) as u8,
                    _ => mangled.truncate(at + 1),
                }
            }
            check(profiler, &mangled);
        }
    }
    // Cut in the middle of a row, it is said to be so.
    let cut = RAW.len() - 100;
    let error = ncu(&RAW[..cut]).expect_err("cut short");
    assert!(error.to_string().contains("the whole file"), "{error}");
}

#[test]
fn a_profile_of_another_device_is_refused() {
    let gen11 = crate::model::built_in("gen11", &[]).expect("a model");
    let wanted = Wanted {
        model: Some(&gen11),
        ..Wanted::default()
    };
    let error = parse(Profiler::NsightCompute, RAW.as_bytes(), &wanted).expect_err("an H200's");
    assert!(error.to_string().contains("of the NVIDIA H200"), "{error}");
    // VTune names no device; its memory's throughput identifies it.
    let error = parse(Profiler::VTune, VTUNE.as_bytes(), &wanted).expect_err("a larger GPU's");
    assert!(error.to_string().contains("of another device"), "{error}");
}

#[test]
fn kernels_are_found_as_modules_spell_them() {
    let spelled = "kernel_gather_hint_l1";
    for (profiler, text) in [
        (
            Profiler::NsightCompute,
            RAW.replace("gather(", &format!("{spelled}(")),
        ),
        (Profiler::VTune, VTUNE.replace("gather", spelled)),
    ] {
        let model = crate::model::built_in("pvc-1550", &[]).expect("a model");
        let wanted = Wanted {
            kernel: Some("gather-hint-l1"),
            model: Some(&model).filter(|_| profiler == Profiler::VTune),
            ..Wanted::default()
        };
        let profiled = parse(profiler, text.as_bytes(), &wanted).unwrap_or_else(|error| panic!("{error}"));
        assert!(profiled.kernel.contains(spelled), "{}", profiled.kernel);
    }
}
