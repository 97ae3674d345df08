//! `--seed`: the launches that plans are checked on besides the one at hand, and those of a report again.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const KERNEL: [&str; 7] = [
    "gather", "--set", "groups=8", "--set", "items=64", "--device", "sim:h200",
];

fn headstart(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output()
        .expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn done(arguments: &[&str]) -> String {
    let (status, out, error) = headstart(arguments);
    assert_eq!(status, Some(0), "{arguments:?} said: {error}");
    out
}

/// What the JSON of a command with these options says of the launches.
fn launches(command: &str, options: &[&str]) -> Value {
    let mut arguments = vec![command];
    arguments.extend(KERNEL);
    arguments.extend(options);
    arguments.extend(["--json", "-"]);
    let report: Value = serde_json::from_str(&done(&arguments)).expect("JSON");
    report["perturbed"].clone()
}

#[test]
fn a_reports_seed_gives_its_launches_again() {
    let run = |seed: &str| launches("run", &["--plan", "unroll:4", "--seed", seed]);
    let seven = run("7");
    assert_eq!(seven["seed"], 7);
    assert!(
        seven["agreed"].as_u64().is_some_and(|agreed| agreed > 50),
        "{seven}"
    );
    assert_eq!(seven["digest"].as_str().map(str::len), Some(32), "{seven}");
    assert_eq!(run(&seven["seed"].to_string()), seven);
    assert_ne!(run("8")["digest"], seven["digest"]);
    // Without the option a report has a seed, too.
    let own = launches("run", &["--plan", "unroll:4"]);
    assert_eq!(run(&own["seed"].to_string()), own);
    // A search for the same plan has the same launches.
    let tuned = launches("tune", &["--plans", "unroll:4", "--seed", "7"]);
    assert_eq!(tuned, seven);
    assert_ne!(
        launches("tune", &["--plans", "unroll:4", "--seed", "8"])["digest"],
        seven["digest"]
    );
}

#[test]
fn people_read_the_seed() {
    let mut arguments = vec!["run"];
    arguments.extend(KERNEL);
    arguments.extend(["--plan", "unroll:2", "--seed", "18446744073709551615"]);
    let said = done(&arguments);
    assert!(
        said.contains("data and sizes (seed 18446744073709551615)"),
        "{said}"
    );
    *arguments.last_mut().expect("a seed") = "many";
    let (status, _, error) = headstart(&arguments);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("--seed"), "{error}");
}

#[test]
fn a_module_says_the_seed_that_it_was_checked_with() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/first.ptx");
    let kernel = format!("{}:gather", corpus.to_string_lossy());
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    let text = "groups = 2\ngroup = 64\nunaliased = [\"param_2\"]\nno_overflow = true\n[parameters.param_0]\nlength = 8192\n\
                fill = \"indices\"\nbelow = 4096\n[parameters.param_1]\nlength = 4096\n[parameters.param_2]\nlength = 128\n\
                [parameters.param_3]\nvalue = 64\n";
    fs::write(&launch, text).expect("written");
    let launch = launch.to_string_lossy();
    let plan = ["--launch", &launch, "--plan", "unroll:2", "--seed"];
    let emit = |seed: &str, target: &str| {
        let mut arguments = vec!["emit", &kernel];
        arguments.extend(plan);
        arguments.extend([seed, "--target", target]);
        done(&arguments)
    };
    let module = emit("7", "ptx");
    assert!(module.contains("(seed 7)"), "{}", &module[..600]);
    assert!(emit("9", "ptx").contains("(seed 9)"));
    // Another seed is another check of the same kernel.
    assert_eq!(emit("7", "ir"), emit("9", "ir"));
    // A search says it in the module that it writes.
    let output = folder.path().join("better.ptx").to_string_lossy().into_owned();
    done(&[
        "tune",
        &kernel,
        "--launch",
        &launch,
        "--device",
        "sim:h200",
        "--plans",
        "param_1=batched-registers:4,param_0=batched-registers:4",
        "--seed",
        "11",
        "-o",
        &output,
    ]);
    let better = fs::read_to_string(&output).expect("a module");
    assert!(better.contains("(seed 11)"), "{}", &better[..600]);
}
