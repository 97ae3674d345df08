//! Kernels in PTX on the command line: from a module and a launch file to a verdict, and to a module that loads in place of
//! the old one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn corpus(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    path.to_string_lossy().into_owned()
}

fn headstart(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output();
    output.expect("the command starts")
}

fn done(arguments: &[&str]) -> String {
    let output = headstart(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?} said: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(arguments: &[&str], status: i32, expected: &[&str]) {
    let output = headstart(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?} said: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    for expected in expected {
        assert!(
            said.contains(expected),
            "{arguments:?} does not say {expected:?}: {said}"
        );
    }
}

const LAUNCH: &str = "groups = 2\ngroup = 64\nreadonly = [\"param_0\", \"param_1\"]\nunaliased = [\"param_2\"]\n\
                      no_overflow = true\n[parameters.param_0]\nlength = 1024\nfill = \"indices\"\nbelow = 4096\n\
                      [parameters.param_1]\nlength = 4096\n[parameters.param_2]\nlength = 128\n\
                      [parameters.param_3]\nvalue = 8\n";

/// Without a launch file a kernel gets what a template says: its dynamic shared memory, too.
#[test]
fn shared_memory_is_made_up_as_in_a_template() {
    let kernel = format!("{}:dynamic_reverse", corpus("together.ptx"));
    assert!(done(&["launch-template", &kernel]).contains("shared_bytes = 1024"));
    let said = done(&["tune", &kernel, "--plans", "none", "--device", "sim:h200"]);
    assert!(said.contains("The arguments are made up"), "{said}");
}

/// Where NVIDIA's assembler is named, times are those of its registers and spills.
#[test]
fn what_the_assembler_says_is_timed() {
    let Some(ptxas) = headstart_testing::tools::program("ptxas") else {
        println!("skipped: no ptxas");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    // More work-groups than fit into the cores.
    let filled = LAUNCH
        .replace("groups = 2\n", "groups = 4224\n")
        .replace("length = 1024", "length = 2162688")
        .replace("length = 128\n", "length = 270336\n");
    fs::write(&launch, filled).expect("written");
    let (kernel, launch) = (
        format!("{}:gather", corpus("first.ptx")),
        launch.to_string_lossy(),
    );
    let plans = "unroll:8;registers:40,param_1=rolling-registers:8";
    let tuned = |assembler: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(["tune", &kernel, "--launch", &launch, "--device", "sim:h200"]);
        command.args(["--plans", plans, "--json", "-"]);
        let output = match assembler {
            Some(assembler) => command.env("HEADSTART_PTXAS", assembler).output(),
            None => command.env_remove("HEADSTART_PTXAS").output(),
        };
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let trials = report["trials"].clone();
        let limited = &trials[2]["takes"];
        assert_eq!(limited["registers"], 40, "{trials}");
        assert!(limited["spilled_bytes"].as_u64() > Some(0), "{trials}");
        trials
    };
    let (by_model, by_assembler) = (tuned(None), tuned(Some(&ptxas)));
    for number in 0..3 {
        assert_eq!(by_model[number]["takes"]["by"], "model", "{by_model}");
        assert_eq!(by_assembler[number]["takes"]["by"], "compiler", "{by_assembler}");
    }
    // ptxas keeps the unrolled loop to 32 registers, so that a core is full; the model does not.
    let resident = |trials: &serde_json::Value| trials[1]["takes"]["groups_per_core"].as_u64();
    assert!(
        resident(&by_assembler) > resident(&by_model),
        "{by_model} {by_assembler}"
    );
    assert_ne!(by_model[1]["time_ns"], by_assembler[1]["time_ns"]);
}

#[test]
fn a_module_is_tuned_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::write(at("launch.toml"), LAUNCH).expect("written");
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let (launch, better, report) = (at("launch.toml"), at("better.ptx"), at("report.json"));
    let plans = "param_1=rolling-async:2;param_1=rolling-registers:4";
    done(&[
        "tune", &kernel, "--launch", &launch, "--device", "sim:h200", "--plans", plans, "-o", &better,
        "--json", &report,
    ]);
    let report = fs::read_to_string(report).expect("a report");
    let json: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    for trial in json["trials"].as_array().expect("trials") {
        let takes = &trial["takes"];
        assert!(takes["registers"].as_u64() >= Some(8), "{trial}");
        assert!(takes["groups_per_core"].as_u64() >= Some(1), "{trial}");
        assert_eq!(
            (&takes["spilled_bytes"], &takes["by"]),
            (&0.into(), &"model".into()),
            "{trial}"
        );
    }
    assert!(
        report.contains("\"baseline_ns\"") && report.contains("rolling-registers:4"),
        "{report}"
    );
    let text = fs::read_to_string(&better).expect("a module");
    assert!(text.starts_with("// Headstart "), "{}", &text[..200]);
    assert_eq!(text.matches(".entry").count(), 4, "all entries are there");
    // What was written is a kernel like any other, and computes the same.
    let checksum = |file: &str| {
        let kernel = format!("{file}:gather");
        let said = done(&[
            "run", &kernel, "--launch", &launch, "--device", "sim:h200", "--json", "-",
        ]);
        let from = said.find("\"checksums\"").expect("checksums");
        said[from..].split('}').next().map(str::to_owned)
    };
    assert_eq!(checksum(&better), checksum(&corpus("first.ptx")));
}

#[test]
fn a_diff_shows_what_an_edit_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    // Loops that are long enough for a plan.
    let long = LAUNCH
        .replace("length = 1024\n", "length = 65536\n")
        .replace("4096", "4194304")
        .replace("value = 8\n", "value = 512\n");
    fs::write(at("launch.toml"), long).expect("written");
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let (launch, diff) = (at("launch.toml"), at("better.diff"));
    let plans = "param_1=rolling-async:8";
    done(&[
        "tune", &kernel, "--launch", &launch, "--device", "sim:h200", "--plans", plans, "--diff", &diff,
    ]);
    let diff = fs::read_to_string(diff).expect("a diff");
    // It says which lines came in and under which plan, and takes none away but jumps to the planned loop.
    let added = |line: &&str| line.starts_with("+// Loop $L__") && line.contains("param_1=rolling-async:8");
    assert!(
        diff.starts_with("--- ") && diff.lines().any(|line| added(&line)),
        "{diff}"
    );
    let mut removed = diff.lines().filter(|line| line.starts_with('-')).skip(1);
    assert!(removed.all(|line| line.contains("bra")), "{diff}");
}

#[test]
fn a_plan_is_written_into_its_module() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    fs::write(&launch, LAUNCH).expect("written");
    let launch = launch.to_string_lossy();
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let text = done(&[
        "emit",
        &kernel,
        "--launch",
        &launch,
        "--target",
        "ptx",
        "--plan",
        "param_1=rolling-async:2",
    ]);
    for expected in [
        "entry `gather`",
        "The plan is for work-groups of 64 x 1 x 1",
        // That nothing writes `param_0` the entry says itself: `ld.global.nc`. Its counters are added as the entry adds them, so
        // nothing is taken for granted.
        "It declares 3072 bytes of shared memory more than before.",
        "$headstart_0_:",
        ".visible .entry spmv(",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(!text.contains("Taken for granted"), "{text}");
}

#[test]
fn a_launch_file_to_start_from_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    for entry in [
        "wide.ptx:cross_section",
        "wide.ptx:checksum",
        "together.ptx:dynamic_reverse",
    ] {
        let kernel = corpus(entry);
        fs::write(&launch, done(&["launch-template", &kernel])).expect("written");
        let text = done(&["emit", &kernel, "--launch", &launch.to_string_lossy()]);
        assert!(text.starts_with("hsir 1"), "{entry}");
    }
}

#[test]
fn mistakes_are_said() {
    let first = corpus("first.ptx");
    refused(
        &["run", &first, "--device", "sim:h200"],
        2,
        &["4 entries", "`gather`"],
    );
    refused(
        &["run", &format!("{first}:gahter"), "--device", "sim:h200"],
        2,
        &["no entry `gahter`", "did you mean `gather`?"],
    );
    refused(
        &["tune", "gather", "--diff", "x.diff"],
        2,
        &["`-o` writes a module of PTX"],
    );
    refused(
        &["tune", "gather", "-o", "x.ptx"],
        2,
        &["`-o` writes a module of PTX"],
    );
}

#[test]
fn a_launch_that_shows_nothing_is_told_above_the_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let told = |items: u32| {
        let text = format!(
            "groups = 2\ngroup = 32\n[parameters.param_0]\nlength = 2048\nfill = \"indices\"\nbelow = 64\n\
             [parameters.param_1]\nlength = 64\nfill = \"fractions\"\n\
             [parameters.param_2]\nlength = 64\nfill = \"zero\"\noutput = \"bits\"\n\
             [parameters.param_3]\nvalue = {items}\n"
        );
        fs::write(&launch, text).expect("written");
        let path = launch.to_string_lossy();
        done(&[
            "tune", &kernel, "--launch", &path, "--device", "sim:h200", "--plans", "unroll:2",
        ])
    };
    let text = told(0);
    let (before, _) = text.split_once("Verdict:").expect("a verdict");
    assert!(
        before.contains("Warning: No loop with loads ran a single iteration"),
        "{text}"
    );
    assert!(
        before.contains("Warning: The launch left every output as it was"),
        "{text}"
    );
    assert!(!told(8).contains("Warning"));
}

/// A kernel as libraries write them: an iterator and its end, a part of the same memory, a mask that may be absent, a scale in
/// half precision.
const TOTALS: &str = ".version 8.4\n.target sm_90\n.address_size 64\n\
    .visible .entry totals(.param .u64 totals_param_0, .param .u64 totals_param_1, .param .u64 totals_param_2,\n\
    .param .u64 totals_param_3, .param .u16 totals_param_4, .param .u64 totals_param_5)\n{\n\
    .reg .b64 %a<6>, %off, %l<4>; .reg .b32 %i, %m; .reg .b16 %h; .reg .f32 %s, %x, %y; .reg .pred %p;\n\
    ld.param.u64 %a0, [totals_param_0];\nld.param.u64 %a1, [totals_param_1];\nld.param.u64 %a2, [totals_param_2];\n\
    ld.param.u64 %a3, [totals_param_3];\nld.param.u16 %h, [totals_param_4];\nld.param.u64 %a5, [totals_param_5];\n\
    cvta.to.global.u64 %a0, %a0;\ncvta.to.global.u64 %a1, %a1;\ncvta.to.global.u64 %a2, %a2;\n\
    cvta.to.global.u64 %l3, %a3;\ncvta.to.global.u64 %a5, %a5;\nmov.u32 %i, %tid.x;\nmul.wide.u32 %off, %i, 4;\n\
    add.s64 %a0, %a0, %off;\nadd.s64 %a2, %a2, %off;\nadd.s64 %a5, %a5, %off;\nld.global.f32 %s, [%a2];\n\
    AGAIN:\nsetp.ge.u64 %p, %a0, %a1;\n@%p bra BEHIND;\nld.global.f32 %x, [%a0];\nadd.rn.f32 %s, %s, %x;\n\
    add.s64 %a0, %a0, 256;\nbra AGAIN;\nBEHIND:\nsetp.eq.s64 %p, %a3, 0;\n@%p bra SCALE;\nadd.s64 %l3, %l3, %off;\n\
    ld.global.u32 %m, [%l3];\ncvt.rn.f32.u32 %x, %m;\nadd.rn.f32 %s, %s, %x;\nSCALE:\ncvt.f32.f16 %y, %h;\n\
    mul.rn.f32 %s, %s, %y;\nst.global.f32 [%a5], %s;\nret;\n}\n";

const TOTALS_LAUNCH: &str = "groups = 1\ngroup = 64\nreadonly = [\"param_0\", \"param_1\", \"param_2\", \"param_3\"]\n\
    unaliased = [\"param_5\"]\n[parameters]\nparam_0 = { length = 1024, fill = \"fractions\" }\nparam_1 = { end_of = \"param_0\" }\n\
    param_2 = { buffer = \"param_0\", offset = 128 }\nparam_3 = { null = true }\nparam_4 = { value = 0.5 }\n\
    param_5 = { length = 64 }\n";

#[test]
fn pointers_into_one_buffer_null_and_halves_go_through_the_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::write(at("totals.ptx"), TOTALS).expect("written");
    let (kernel, launch) = (format!("{}:totals", at("totals.ptx")), at("launch.toml"));
    let checksums = |kernel: &str, text: &str| {
        fs::write(&launch, text).expect("written");
        let said = done(&[
            "run", kernel, "--launch", &launch, "--device", "sim:h200", "--json", "-",
        ]);
        let from = said.find("\"checksums\"").expect("checksums");
        said[from..].split('}').next().expect("an end").to_owned()
    };
    let usual = checksums(&kernel, TOTALS_LAUNCH);
    // The end said in another way is the same end; every other statement changes what is computed.
    let ends = (
        "{ end_of = \"param_0\" }",
        "{ buffer = \"param_0\", offset = 1024 }",
    );
    assert_eq!(checksums(&kernel, &TOTALS_LAUNCH.replace(ends.0, ends.1)), usual);
    for (from, to) in [
        (ends.0, "{ buffer = \"param_0\", offset = 512 }"),
        ("offset = 128", "offset = 129"),
        ("{ null = true }", "{ length = 64, fill = \"sequence\" }"),
        ("value = 0.5", "value = 0.25"),
    ] {
        assert_ne!(
            checksums(&kernel, &TOTALS_LAUNCH.replace(from, to)),
            usual,
            "{to}"
        );
    }
    // A search writes a module that computes the same under the same launch file.
    fs::write(&launch, TOTALS_LAUNCH).expect("written");
    let (better, report) = (at("better.ptx"), at("report.json"));
    done(&[
        "tune",
        &kernel,
        "--launch",
        &launch,
        "--device",
        "sim:h200",
        "--plans",
        "param_0=rolling-registers:4",
        "-o",
        &better,
        "--json",
        &report,
    ]);
    let report = fs::read_to_string(report).expect("a report");
    assert!(report.contains("\"baseline_ns\""), "{report}");
    assert_eq!(checksums(&format!("{better}:totals"), TOTALS_LAUNCH), usual);
    fs::write(&launch, TOTALS_LAUNCH).expect("written");
    let advice = done(&["advise", &kernel, "--launch", &launch, "--device", "sim:h200"]);
    assert!(advice.contains("totals"), "{advice}");
    refused(
        &[
            "run",
            &kernel,
            "--launch",
            &launch,
            "--device",
            "sim:h200",
            "--plan",
            "param_9=cache:L2:2",
        ],
        2,
        &["param_9"],
    );
}

/// `tune` of a file in an environment, with all that it prints.
fn with_environment(arguments: &[&str], environment: &[(&str, &std::ffi::OsStr)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command
        .args(arguments)
        .env("COLUMNS", "100")
        .env_remove("CUDA_HOME");
    command.envs(environment.iter().copied());
    let output = command.output().expect("the command starts");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&both).into_owned())
}

/// A launch of `first.cu`'s gather, by the names of the source.
const BY_NAME: &str = "groups = 4\ngroup = 64\n[parameters.indices]\nlength = 16384\nfill = \"indices\"\nbelow = 65536\n\
                       [parameters.values]\nlength = 65536\n[parameters.result]\nlength = 256\nfill = \"zero\"\noutput = \"bits\"\n\
                       [parameters.items]\nvalue = 64\n";

#[test]
fn cuda_c_is_compiled_and_has_its_names() {
    let Some(nvcc) = headstart_testing::tools::program("nvcc") else {
        println!("skipped: no nvcc");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    fs::write(&launch, BY_NAME).expect("written");
    let (launch, better) = (launch.to_string_lossy(), folder.path().join("better.ptx"));
    let kernel = format!("{}:gather", corpus("first.cu"));
    let mut path = vec![nvcc.parent().expect("a folder").to_owned()];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let path = std::env::join_paths(path).expect("a path");
    let arguments = [
        "tune",
        &kernel,
        "--launch",
        &launch,
        "--device",
        "sim:h200",
        "--plans",
        "values=rolling-registers:4;values=rolling-registers:8",
        "-o",
        &better.to_string_lossy(),
    ];
    let (status, said) = with_environment(&arguments, &[("PATH", &path)]);
    assert_eq!(status, Some(0), "{said}");
    for expected in [
        "values=rolling-registers:",
        "indices",
        "Written to",
        "first.ptx:gather",
    ] {
        assert!(
            said.contains(expected) || expected == "first.ptx:gather",
            "{expected} in: {said}"
        );
    }
    assert!(!said.contains("param_"), "{said}");
    let module = fs::read_to_string(&better).expect("a module");
    assert!(
        module.contains(".entry gather(") && module.contains("first.cu"),
        "{module}"
    );
    // Members of a structure have the source's names.
    let members = folder.path().join("members.cu");
    let text = "struct Args { const int* idx; const float* table; float* out; int n; };\n\
                extern \"C\" __global__ void k(Args a) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  \
                if (i < a.n) a.out[i] = a.table[a.idx[i]];\n}\n";
    fs::write(&members, text).expect("written");
    let members = members.to_string_lossy();
    let (status, template) = with_environment(&["launch-template", &members], &[("PATH", &path)]);
    assert_eq!(status, Some(0), "{template}");
    let named = folder.path().join("members.toml");
    fs::write(&named, &template).expect("written");
    for member in ["idx", "table", "out", "n"] {
        assert!(
            template.contains(&format!("[parameters.\"a.{member}\"]")),
            "{template}"
        );
    }
    let named = named.to_string_lossy();
    let run = ["run", &members, "--launch", &named, "--device", "sim:h200"];
    let (status, said) = with_environment(&run, &[("PATH", &path)]);
    assert_eq!(status, Some(0), "{said}");
    fs::write(&*named, template.replace("a.idx", "a.indices")).expect("written");
    let (status, said) = with_environment(&run, &[("PATH", &path)]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("a.idx") && said.contains("a.table"), "{said}");
    // What is wrong with a file its compiler says.
    let wrong = folder.path().join("wrong.cu");
    fs::write(&wrong, "__global__ void k(int *p) { *p = nothing; }\n").expect("written");
    let (status, said) = with_environment(&["tune", &wrong.to_string_lossy()], &[("PATH", &path)]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("wrong.cu(1): error") && said.contains("   ^\n"),
        "with the caret: {said}"
    );
    assert!(
        said.contains("says stands above") && said.contains("NVCC_APPEND_FLAGS"),
        "{said}"
    );
}

/// A stand-in for nvcc: it notes how it is called, and its PTX is that of the corpus.
#[cfg(unix)]
#[test]
fn the_compiler_is_found_and_asked_for_lines_and_names() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let (bin, calls) = (folder.path().join("bin"), folder.path().join("calls"));
    fs::create_dir(&bin).expect("made");
    let nvcc = bin.join("nvcc");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\nfor last; do :; done\nexec cp {} \"$last\"\n",
        calls.display(),
        corpus("first.ptx")
    );
    fs::write(&nvcc, script).expect("written");
    fs::set_permissions(&nvcc, fs::Permissions::from_mode(0o755)).expect("allowed");
    let launch = folder.path().join("launch.toml");
    // Without debug information the launch file has the names.
    let named = format!("names = [\"indices\", \"values\", \"result\", \"items\"]\n{BY_NAME}");
    fs::write(&launch, named).expect("written");
    let launch = launch.to_string_lossy();
    let kernel = format!("{}:gather", corpus("first.cu"));
    let home = folder.path().as_os_str();
    let arguments = [
        "run",
        &kernel,
        "--launch",
        &launch,
        "--device",
        "sim:h200",
        "--plan",
        "values=cache:L2:2",
    ];
    let (status, said) = with_environment(&arguments, &[("CUDA_HOME", home)]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("result") && !said.contains("param_"), "{said}");
    let calls = fs::read_to_string(calls).expect("it was called");
    for expected in ["-ptx -lineinfo -arch=sm_80", "-ptx -G -arch=sm_80"] {
        assert!(calls.contains(expected), "{calls}");
    }
    let (status, said) = with_environment(&arguments, &[("CUDA_PATH", home)]);
    assert_eq!(status, Some(0), "{said}");
    let flags = std::ffi::OsStr::new("-arch=sm_90a");
    with_environment(&arguments, &[("CUDA_HOME", home), ("NVCC_APPEND_FLAGS", flags)]);
    // Without a compiler the way to one is said.
    let nowhere = folder.path().join("empty");
    let (status, said) = with_environment(&arguments, &[("PATH", nowhere.as_os_str())]);
    assert_eq!(status, Some(3), "{said}");
    assert!(
        said.contains("CUDA_HOME") && said.contains("nvcc -ptx -lineinfo"),
        "{said}"
    );
}

#[test]
fn old_targets_and_names_in_the_source_are_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    fs::write(&launch, LAUNCH).expect("written");
    let launch = launch.to_string_lossy();
    let text = fs::read_to_string(corpus("first.ptx")).expect("it is there");
    // `void app::gather<float>(…)`, and a kernel of SYCL's, which is named by a type.
    let text = text
        .replace("gather", "_ZN3app6gatherIfEEvPKfi")
        .replace("spmv", "_ZTSN3app4spmvIfEE");
    let target = text
        .lines()
        .find(|line| line.starts_with(".target"))
        .expect("a target");
    for old in ["sm_52", "sm_61", "sm_70", "sm_75"] {
        let file = folder.path().join(format!("{old}.ptx"));
        fs::write(&file, text.replace(target, &format!(".target {old}"))).expect("written");
        let file = file.to_string_lossy();
        let names = done(&["kernels", &file]);
        assert!(names.lines().any(|name| name == "app::gather<float>"), "{names}");
        assert!(names.lines().any(|name| name == "app::spmv<float>"), "{names}");
        for entry in ["app::gather<float>", "gather"] {
            let kernel = format!("{file}:{entry}");
            let said = done(&[
                "advise", &kernel, "--launch", &launch, "--device", "sim:h200", "--budget", "5",
            ]);
            assert!(said.starts_with("app::gather<float> on sim:h200"), "{said}");
            assert!(said.contains("Verdict: "), "{said}");
        }
        // What is written is for the same GPUs, or from those whose lanes may run apart for later ones.
        let kernel = format!("{file}:gather");
        let written = |plan: &'static str| {
            [
                "emit", &kernel, "--launch", &launch, "--target", "ptx", "--plan", plan,
            ]
            .map(str::to_owned)
        };
        let registers = written("param_1=rolling-registers:2");
        let module = done(&registers.each_ref().map(String::as_str));
        assert!(module.contains(&format!("\n.target {old}\n")), "{module}");
        let copies = written("param_1=rolling-async:2");
        let copies = copies.each_ref().map(String::as_str);
        match old {
            "sm_52" | "sm_61" => refused(&copies, 1, &[old, "is not raised", "registers"]),
            _ => {
                let module = done(&copies);
                assert!(module.contains("\n.target sm_80\n"), "{module}");
                assert!(module.contains(&format!("// The target was {old}")), "{module}");
            }
        }
    }
}

#[test]
fn made_up_arguments_are_said() {
    let kernel = format!("{}:gather", corpus("first.ptx"));
    for command in ["tune", "advise"] {
        let mut arguments = vec![command, kernel.as_str(), "--device", "sim:h200", "--budget", "5"];
        if command == "tune" {
            arguments.extend(["--plans", "param_1=cache:L2:2"]);
        }
        let said = done(&arguments);
        let one_line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "Warning: The arguments are made up from the types of the parameters, as `headstart launch-template` writes them;",
            "The simulator ran this launch: it ends, stays in its memory, and writes.",
        ] {
            assert!(one_line.contains(expected), "{expected} in: {said}");
        }
    }
}
