//! Processes of other programs: found by their command line, waited for, ended.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any step takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// How often a file or a process is looked at.
const SOON: Duration = Duration::from_millis(10);

/// How often a program is asked.
const LATER: Duration = Duration::from_millis(200);

/// Waits until something is there.
///
/// # Panics
/// It does not come.
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait(what, SOON, look)
}

/// The same, where to look takes another program.
///
/// # Panics
/// It does not come.
pub fn ask_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait(what, LATER, look)
}

fn wait<T>(what: &str, pause: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "{what} does not come");
        thread::sleep(pause);
    }
}

/// The standard output of a command.
///
/// # Panics
/// The command fails.
pub fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The processes, other than this one, with an argument that holds the text.
pub fn with_argument(text: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("processes");
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|&process| {
            process != std::process::id() && read(process, "cmdline").is_some_and(|line| line.contains(text))
        })
        .collect()
}

/// The process that started this one.
pub fn parent(process: u32) -> Option<u32> {
    // The name before it is in parentheses, and may hold anything.
    let status = read(process, "stat")?;
    status.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// A variable of the environment that a process was started with.
pub fn variable(process: u32, name: &str) -> Option<String> {
    let all = read(process, "environ")?;
    let mut pairs = all.split('\0').filter_map(|pair| pair.split_once('='));
    Some(pairs.find(|(own, _)| *own == name)?.1.to_owned())
}

/// A process's name, as it calls itself.
pub fn name(process: u32) -> String {
    read(process, "cmdline").unwrap_or_default()
}

/// Whether it has ended. One that only its parent's question is left of has no command line.
pub fn has_ended(process: u32) -> bool {
    read(process, "cmdline").is_none_or(|line| line.is_empty())
}

/// Ends a process at once, if it is still there.
pub fn kill(process: u32) {
    let _ = Command::new("kill")
        .args(["-KILL", &process.to_string()])
        .stderr(Stdio::null())
        .status();
}

fn read(process: u32, file: &str) -> Option<String> {
    let bytes = fs::read(Path::new("/proc").join(process.to_string()).join(file)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
