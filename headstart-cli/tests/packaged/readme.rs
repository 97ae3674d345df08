//! The commands of README.md, run in its order in an empty folder beside the packages: a reader who has no clone gets the same.
//!
//! The command on the path is the one that the caller names; Cargo takes every crate from the registry.

use std::fs;
use std::path::Path;

use headstart_testing::tools;

use crate::registry::{Registry, succeeds, workspace};

/// Commands that cannot run here, and why.
const ELSEWHERE: &[(&str, &str)] = &[("cargo build --release", "builds a clone")];

/// A fenced part of a page.
struct Fence {
    /// `sh`, `rust,no_run`, `text`, …
    language: String,
    text: String,
    /// Whether it is marked as what a command printed.
    is_result: bool,
}

fn fences(page: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let (mut open, mut before) = (false, "");
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            open = !open;
            if open {
                found.push(Fence {
                    language: language.to_owned(),
                    text: String::new(),
                    is_result: before.starts_with("<!-- from results"),
                });
            }
        } else if open {
            let fence = found.last_mut().expect("a fence is open");
            fence.text += line;
            fence.text.push('\n');
        }
        before = line;
    }
    found
}

/// The commands of a fence that run here, without their comments. Without `nvcc`, what it made of a kernel is used.
fn commands(text: &str, nvcc: Option<&Path>) -> Vec<String> {
    let kernel = nvcc.map_or("kernel.ptx", |_| "kernel.cu");
    let mut runs = Vec::new();
    for line in text.lines() {
        let command = line.split("  #").next().unwrap_or(line).trim();
        if command.is_empty() || ELSEWHERE.iter().any(|(known, _)| *known == command) {
            continue;
        }
        // The clone's build is on the path, and the crates are "published".
        runs.push(
            command
                .replace("target/release/headstart", "headstart")
                .replace(" --path .", "")
                .replace("kernel.cu", kernel),
        );
    }
    runs
}

/// Runs every command of README.md with a `headstart`. The number of commands that ran.
pub fn follow(registry: &Registry, headstart: &Path) -> usize {
    let outside = tempfile::tempdir().expect("a folder");
    registry.is_used_in(outside.path());
    let (bin, clone) = (outside.path().join("bin"), outside.path().join("clone"));
    for folder in [&bin, &clone] {
        fs::create_dir(folder).expect("a folder");
    }
    std::os::unix::fs::symlink(headstart, bin.join("headstart")).expect("a link");
    let page = fs::read_to_string(workspace().join("README.md")).expect("README.md");

    let nvcc = tools::program("nvcc");
    let (mut place, mut ran) = (clone, 0);
    let mut printed: Option<String> = None;
    for fence in fences(&page) {
        match fence.language.as_str() {
            "sh" => {
                let runs = commands(&fence.text, nvcc.as_deref());
                if runs.iter().any(|command| command.contains(" kernel.spv")) {
                    // Kernels as a reader would bring them.
                    for (own, theirs) in [
                        ("first.cu", "kernel.cu"),
                        ("first.ptx", "kernel.ptx"),
                        ("spirv/memory.spv", "kernel.spv"),
                    ] {
                        let own = workspace().join("corpus").join(own);
                        fs::copy(own, place.join(theirs)).expect("copied");
                    }
                }
                let last = outside.path().join("place");
                let script = format!("{}\npwd > '{}'", runs.join("\n"), last.display());
                let mut shell = registry.shell(&place, &bin, &script);
                shell.env("HEADSTART_CACHE", outside.path().join("answers"));
                shell.env("CUDA_HOME", tools::folder());
                printed = Some(succeeds(&mut shell));
                place = fs::read_to_string(&last).expect("the last folder").trim().into();
                ran += runs.len();
            }
            "rust,no_run" if place.join("src/main.rs").is_file() => {
                fs::write(place.join("src/main.rs"), &fence.text).expect("a program");
            }
            // The commands before it print each of its paragraphs, and more between them.
            "text" if fence.is_result => {
                if let Some(printed) = printed.take() {
                    for shown in fence.text.trim().split("\n\n") {
                        assert!(
                            printed.contains(shown),
                            "README.md shows\n{shown}\nand its command prints\n{printed}"
                        );
                    }
                }
            }
            _ => {}
        }
        if fence.language != "sh" {
            printed = None;
        }
    }
    let better = fs::read_to_string(place.join("better.ptx")).expect("the rewritten module");
    assert!(better.contains(".entry gather("), "{better}");
    assert!(place.join("better.spv").is_file());
    for (command, why) in ELSEWHERE {
        assert!(
            page.contains(command),
            "README.md has no `{command}`, which {why}"
        );
    }
    ran
}
