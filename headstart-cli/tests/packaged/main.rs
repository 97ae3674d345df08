//! The crates as they are published. The quick tests ask Cargo what each package contains. The others, which
//! `scripts/nightly` runs, package the crates, unpack them into a registry in a folder, and use them from there: nothing comes
//! from the workspace or from a network.
//!
//! Third-party crates come from Cargo's own cache (`cargo fetch --locked` fills it); if some are missing, the test is skipped
//! and says so. Build outputs are kept under `target/tmp`, for the next run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::registry::{EXAMPLES, Registry, cargo, published, run, succeeds, unpack, workspace};

mod readme;
mod registry;

/// A path without `..`.
fn inside(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{} leaves its package", path.display()),
            part => plain.push(part),
        }
    }
    plain
}

/// The part of a file that is built where it is used: without its tests, which need files of the workspace.
fn without_tests(text: &str) -> &str {
    let tests = ["#[cfg(test)]\nmod ", "#[cfg(doctest)]"];
    let start = tests.iter().filter_map(|start| text.find(start)).min();
    &text[..start.unwrap_or(text.len())]
}

/// Every file that a crate includes is in its package, and every package names the versions of those that it uses.
#[test]
fn packages_are_complete() {
    let mut looked_at = 0;
    for package in published() {
        let mut list = cargo(workspace());
        list.args([
            "package",
            "--list",
            "--offline",
            "--allow-dirty",
            "--package",
            &package.name,
        ]);
        let listed = succeeds(&mut list);
        let listed: BTreeSet<&Path> = listed.lines().map(Path::new).collect();
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(
                listed.contains(Path::new(licence)),
                "{} comes without {licence}",
                package.name
            );
        }
        let is_test = |path: &Path| {
            path.components()
                .any(|part| ["tests", "tests.rs"].iter().any(|t| part.as_os_str() == *t))
        };
        let sources = listed
            .iter()
            .filter(|path| path.starts_with("src") && path.extension() == Some(OsStr::new("rs")));
        for source in sources.filter(|path| !is_test(path)) {
            let text = fs::read_to_string(package.folder.join(source)).expect("a source");
            for rest in without_tests(&text).split("include_str!(\"").skip(1) {
                let included = rest.split('"').next().expect("a path");
                let path = inside(&source.with_file_name(included));
                assert!(
                    listed.contains(path.as_path()),
                    "{} includes {included}",
                    source.display()
                );
                looked_at += 1;
            }
        }
        for (dependency, required) in &package.ours {
            let version = &package.version;
            assert!(
                required.trim_start_matches(['=', '^']) == version,
                "{} {version} depends on {dependency} in version {required}",
                package.name
            );
        }
    }
    assert!(looked_at > 5, "only {looked_at} inclusions");
}

#[test]
#[ignore = "nightly: builds the crates again"]
fn a_new_program_builds_and_runs_from_the_packages_alone() {
    let Some(registry) = Registry::new() else { return };
    let outside = tempfile::tempdir().expect("a folder");
    registry.is_used_in(outside.path());
    let mut new = Command::new(env!("CARGO_BIN_EXE_headstart"));
    let said = succeeds(new.args(["new", "demo"]).current_dir(outside.path()));
    assert!(said.contains("cargo run"), "{said}");
    let demo = outside.path().join("demo");
    let manifest = fs::read_to_string(demo.join("Cargo.toml")).expect("a manifest");
    assert!(!manifest.contains("path"), "{manifest}");

    let started = Instant::now();
    let mut build = registry.cargo(&demo);
    let built = succeeds(
        build
            .args(["run", "--quiet"])
            .env("HEADSTART_CACHE", outside.path().join("answers")),
    );
    eprintln!("built and run in {:.0} s", started.elapsed().as_secs_f64());
    let lines: Vec<&str> = built.lines().collect();
    assert!(
        lines.len() == 4
            && lines[0].starts_with("plain: ")
            && lines[1].starts_with("tuned: ")
            && lines[2] == "verdict: prefetch"
            && lines[3] == "the same bits: true",
        "{built}"
    );
    // Its kernels are tuned with the arguments that it gives them.
    let mut tune = Command::new(env!("CARGO_BIN_EXE_headstart"));
    let program = registry.target.join("debug/demo");
    let tuned = succeeds(
        tune.args([
            "tune", "--quiet", "--device", "sim:h200", "--plans", "likely", "--bin",
        ])
        .arg(&program)
        .env("HEADSTART_CACHE", outside.path().join("answers")),
    );
    assert!(tuned.contains("Verdict: "), "{tuned}");
    // The answer is the program's own: with it, and without a search, it launches the same plan.
    let shipped = outside.path().join("shipped");
    let mut ship = Command::new(env!("CARGO_BIN_EXE_headstart"));
    succeeds(
        ship.args(["tune", "--quiet", "--device", "sim:h200", "--ship"])
            .arg(&shipped)
            .args(["--plans", "unroll:2", "--bin"])
            .arg(&program)
            .env("HEADSTART_CACHE", outside.path().join("answers")),
    );
    let said = succeeds(Command::new(&program).env("HEADSTART_CACHE", &shipped));
    assert!(
        said.contains(" with unroll:2\n") && said.contains("verdict: unroll\n"),
        "{said}"
    );
    let tested = succeeds(registry.cargo(&demo).args(["test", "--quiet"]));
    assert!(tested.contains("1 passed; 0 failed"), "{tested}");

    // All that was used is the program and the registry.
    let mut metadata = registry.cargo(&demo);
    metadata.args(["metadata", "--format-version", "1"]);
    let used: serde_json::Value = serde_json::from_str(&succeeds(&mut metadata)).expect("JSON");
    let here = fs::canonicalize(outside.path()).expect("a folder");
    for package in used["packages"].as_array().expect("packages") {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        assert!(
            manifest.starts_with(&here) || manifest.starts_with(&registry.folder),
            "{} is of neither",
            manifest.display()
        );
    }
}

#[test]
#[ignore = "nightly: builds the crates again"]
fn every_command_of_the_readme_runs_from_the_packages_alone() {
    let Some(registry) = Registry::new() else { return };
    let started = Instant::now();
    let ran = readme::follow(&registry, Path::new(env!("CARGO_BIN_EXE_headstart")));
    eprintln!("{ran} commands in {:.0} s", started.elapsed().as_secs_f64());
    assert!(ran >= 11, "only {ran} commands ran");
}

#[test]
#[ignore = "nightly: builds the crates again"]
fn the_examples_run_from_the_packages_alone() {
    let Some(registry) = Registry::new() else { return };
    let outside = tempfile::tempdir().expect("a folder");
    registry.is_used_in(outside.path());
    let package = format!("{EXAMPLES}-{}", env!("CARGO_PKG_VERSION"));
    unpack(&registry.target, &package, outside.path());
    // A workspace around them, as at home: one of them prints the place of its source in it.
    fs::rename(outside.path().join(package), outside.path().join("examples")).expect("renamed");
    let workspace = "[workspace]\nresolver = \"2\"\nmembers = [\"examples\"]\n";
    fs::write(outside.path().join("Cargo.toml"), workspace).expect("a file");
    let started = Instant::now();
    let tested = succeeds(registry.cargo(outside.path()).arg("test"));
    eprintln!("the examples: {:.0} s", started.elapsed().as_secs_f64());
    assert!(
        tested.contains("every_program_prints_what_it_should ... ok"),
        "{tested}"
    );
}

#[test]
#[ignore = "nightly: a release build"]
fn the_command_is_installed_from_the_packages_alone() {
    let Some(registry) = Registry::new() else { return };
    let outside = tempfile::tempdir().expect("a folder");
    registry.is_used_in(outside.path());
    let started = Instant::now();
    let mut install = registry.cargo(outside.path());
    install
        // It looks for settings in the user's folder only, not in this one.
        .args([
            "install",
            "headstart-cli",
            "--locked",
            "--root",
            ".",
            "--config",
            ".cargo/config.toml",
        ])
        .env("CARGO_TARGET_DIR", outside.path().join("target"));
    succeeds(&mut install);
    eprintln!("installed in {:.0} s", started.elapsed().as_secs_f64());
    let command = outside.path().join("bin/headstart");
    let version = succeeds(Command::new(&command).arg("--version"));
    assert_eq!(version, format!("headstart {}\n", env!("CARGO_PKG_VERSION")));
    let told =
        succeeds(Command::new(&command).args(["run", "gather", "--device", "sim:h200", "--set", "items=8"]));
    assert!(told.contains("gather"), "{told}");
    // The library that is preloaded came with it.
    let caches = outside.path().join("caches");
    let mut capture = Command::new(&command);
    capture
        .args(["capture", "--list", "-o", "capture", "--", "true"])
        .current_dir(outside.path())
        .env("XDG_CACHE_HOME", &caches);
    let said = String::from_utf8_lossy(&run(&mut capture).stderr).into_owned();
    assert!(said.contains("did not call the CUDA driver"), "{said}");
    let library = format!("headstart/{}-libheadstart_driver.so", env!("CARGO_PKG_VERSION"));
    assert!(caches.join(library).is_file(), "{said}");
    succeeds(
        Command::new(&command)
            .args(["new", "demo"])
            .current_dir(outside.path()),
    );
}

/// `rust-version` is a promise: CI keeps it by building with no later one.
#[test]
fn ci_builds_with_the_oldest_rust_that_is_promised() {
    let promised = env!("CARGO_PKG_RUST_VERSION");
    let read = |name: &str| fs::read_to_string(workspace().join(name)).expect("a file");
    let ci = read(".github/workflows/ci.yml");
    let image = ci.split("container: rust:").nth(1).expect("CI names its Rust");
    assert!(
        image.starts_with(&format!("{promised}-")),
        "CI does not build with Rust {promised}"
    );
    for (page, sentence) in [
        ("README.md", "Rust {} or later"),
        ("CONTRIBUTING.md", "Rust {}, nothing else"),
    ] {
        let sentence = sentence.replace("{}", promised);
        assert!(read(page).contains(&sentence), "{page} does not say: {sentence}");
    }
    let lints: toml::Table = read("Cargo.toml").parse().expect("TOML");
    let lint = lints["workspace"]["lints"]["clippy"]["incompatible_msrv"].as_str();
    assert_eq!(lint, Some("warn"), "and clippy looks for what is newer");
}
