//! An assembler in the place of the driver's compiler, where the environment names one.
//!
//! Who loads kernels that another `ptxas` has assembled wants times of the code that this one makes; and a driver may be too
//! old for the PTX of a newer compiler. `HEADSTART_PTXAS` names the program, `HEADSTART_PTXAS_OPTIONS` has words for it, and
//! `HEADSTART_PTXAS_LIMIT` says how many seconds it may take, or the driver's compiler where none is named: thousands of
//! instructions in one loop can keep either busy for minutes, and a search waits for the slowest of its kernels. Without that
//! variable a search with a budget says it ([`be_patient`]).
//!
//! Models of GPUs only ask what the code takes. Where the environment names none, they ask the assembler of the toolkit that is
//! installed ([`found_for_models`]); with `HEADSTART_PTXAS` set to nothing they estimate.

use std::collections::HashMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::cubin;
pub use super::cubin::Resources;
use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;

/// Seconds that a kernel may take where nothing is said.
const LIMIT: f64 = 120.0;

/// The variable that says otherwise, in seconds.
pub(crate) const LIMIT_VARIABLE: &str = "HEADSTART_PTXAS_LIMIT";

/// What [`found_for_models`] found.
static FOR_MODELS: OnceLock<PathBuf> = OnceLock::new();

/// What [`be_patient`] said, in nanoseconds; 0 if nothing.
static PATIENCE_NS: AtomicU64 = AtomicU64::new(0);

/// A kernel may be compiled for so long from now on, where the environment does not say it.
pub fn be_patient(patience: Duration) {
    let ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
    PATIENCE_NS.store(ns.max(1), Ordering::Relaxed);
}

/// Models may ask this assembler what code takes, where the environment names none.
pub fn found_for_models(program: PathBuf) {
    // It is the same whenever a device is opened.
    let _ = FOR_MODELS.set(program);
}

/// How long one kernel may be compiled.
pub(crate) fn limit() -> Duration {
    let limit = env::var(LIMIT_VARIABLE).ok();
    let limit = limit
        .and_then(|text| text.parse().ok())
        .filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    match (limit, PATIENCE_NS.load(Ordering::Relaxed)) {
        (Some(seconds), _) => Duration::from_secs_f64(seconds.min(1e6)),
        (None, 0) => Duration::from_secs_f64(LIMIT),
        (None, ns) => Duration::from_nanos(ns),
    }
}

/// Machine code of a text for this GPU; nothing where no assembler is named.
///
/// # Errors
/// It cannot be started, refuses the text, or takes too long.
pub(crate) fn assembled(gpu: &Gpu, ptx: &str) -> Result<Option<Vec<u8>>, Failure> {
    let (major, minor) = gpu.facts().capability;
    assembled_for(&format!("sm_{major}{minor}"), ptx)
}

/// The same for a GPU of this generation, such as `sm_90`, or the variant of it that the text names, such as `sm_90a`.
///
/// # Errors
/// As for a GPU that is here.
pub fn assembled_for(generation: &str, ptx: &str) -> Result<Option<Vec<u8>>, Failure> {
    let assemble = |program: OsString| assembled_with(&program, generation, ptx);
    named().map(assemble).transpose()
}

/// What this program makes of a text, with the options and in the time that the environment says.
fn assembled_with(program: &OsStr, generation: &str, ptx: &str) -> Result<Vec<u8>, Failure> {
    let options = env::var("HEADSTART_PTXAS_OPTIONS").unwrap_or_default();
    assembled_by(program, &options, variant(generation, ptx), limit(), ptx)
}

/// The variant of this generation that a text names; else the generation.
fn variant<'t>(generation: &'t str, ptx: &'t str) -> &'t str {
    let named = ptx.lines().find_map(|line| line.trim().strip_prefix(".target "));
    let named = named.and_then(|rest| rest.split([',', ' ', '\t']).next());
    let is_variant = |name: &&str| matches!(name.strip_prefix(generation), Some("a" | "f"));
    named.filter(is_variant).unwrap_or(generation)
}

/// The assembler that the environment names.
fn named() -> Option<OsString> {
    env::var_os("HEADSTART_PTXAS").filter(|name| !name.is_empty())
}

/// Whether the environment names an assembler.
pub(crate) fn is_named() -> bool {
    named().is_some()
}

/// The assembler that models ask: the named one, or the one that was found; none where the environment names nothing.
fn for_models() -> Option<OsString> {
    let found = || FOR_MODELS.get().map(|program| program.clone().into());
    let program = env::var_os("HEADSTART_PTXAS").map_or_else(found, Some);
    program.filter(|name| !name.is_empty())
}

/// The assembler that models ask, with its options, after a space; empty where there is none.
pub fn asked() -> String {
    let options = env::var_os("HEADSTART_PTXAS_OPTIONS").filter(|options| !options.is_empty());
    for_models().map_or_else(String::new, |program| {
        let parts = [Some(program), options];
        let parts = parts.iter().flatten();
        parts.map(|part| format!(" {}", part.to_string_lossy())).collect()
    })
}

/// The machine code that this program makes of a text within a time.
///
/// # Errors
/// As for a GPU that is here.
pub(crate) fn assembled_by(
    program: &OsStr,
    options: &str,
    generation: &str,
    limit: Duration,
    ptx: &str,
) -> Result<Vec<u8>, Failure> {
    // By the name that the user knows: of the variable, where that names it.
    let name = match env::var_os("HEADSTART_PTXAS").as_deref() == Some(program) {
        true => "HEADSTART_PTXAS".into(),
        false => program.to_string_lossy(),
    };
    let failed = |what: &str| Failure::new(FailureKind::Compilation, format!("{name}: {what}"));
    let folder = tempfile::tempdir().map_err(|error| failed(&error.to_string()))?;
    let (text, code) = (
        folder.path().join("kernel.ptx"),
        folder.path().join("kernel.cubin"),
    );
    std::fs::write(&text, ptx).map_err(|error| failed(&error.to_string()))?;
    let mut command = Command::new(program);
    command.arg("-lineinfo").args(options.split_whitespace());
    if !options.contains("--gpu-name") {
        command.arg(format!("--gpu-name={generation}"));
    }
    let said = folder.path().join("said");
    let output = File::create(&said).map_err(|error| failed(&error.to_string()))?;
    let child = command
        .arg(&text)
        .arg("-o")
        .arg(&code)
        // The worker's own output is for its replies.
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .map_err(|error| failed(&format!("cannot be started: {error}")))?;
    let ended = wait(child, limit).map_err(|error| failed(&error.to_string()))?;
    let Some(status) = ended else {
        let seconds = limit.as_secs_f64();
        let what = format!("the assembler was not done with a kernel after {seconds} s");
        return Err(Failure::new(FailureKind::Resources, what));
    };
    if !status.success() {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        return Err(failed("it refuses the text").with_log(said.trim().to_owned()));
    }
    std::fs::read(&code).map_err(|error| failed(&error.to_string()))
}

/// What code takes, by the generation, the text and the entry: a search asks twice for most plans.
static KNOWN: Mutex<Option<HashMap<[String; 3], Resources>>> = Mutex::new(None);

/// What an assembler's code takes for an entry of a text: of the named one, or of the one that was found for models; nothing where
/// there is none.
///
/// # Errors
/// As for machine code, or that cannot be read.
pub fn resources_for(generation: &str, ptx: &str, entry: &str) -> Result<Option<Resources>, Failure> {
    let Some(program) = for_models() else {
        return Ok(None);
    };
    let key = [generation, ptx, entry].map(str::to_owned);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&taken) = known().as_ref().and_then(|known| known.get(&key)) {
        return Ok(Some(taken));
    }
    let code = assembled_with(&program, generation, ptx)?;
    let unread = |why| {
        let what = format!("{}: its code: {why}", program.to_string_lossy());
        Failure::new(FailureKind::Compilation, what)
    };
    let taken = cubin::resources(&code, entry).map_err(unread)?;
    known().get_or_insert_default().insert(key, taken);
    Ok(Some(taken))
}

/// Waits for a process to end; stops it where that takes too long, and says nothing then.
fn wait(mut child: Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_of_the_generation_is_assembled_for_itself() {
        let of = |target: &str| {
            let text = format!("//\n.version 8.0\n.target {target}\n.address_size 64\n");
            variant("sm_90", &text).to_owned()
        };
        assert_eq!([of("sm_90a"), of("sm_90a, debug")], ["sm_90a", "sm_90a"]);
        assert_eq!([of("sm_80"), of("sm_90"), of("sm_100a")], ["sm_90"; 3]);
    }

    #[test]
    fn what_takes_too_long_is_stopped() {
        let sleep = |seconds: &str| Command::new("sleep").arg(seconds).spawn().expect("it starts");
        let ended = wait(sleep("0"), Duration::from_secs(20)).expect("it is waited for");
        assert!(ended.is_some_and(|status| status.success()));
        let start = Instant::now();
        assert_eq!(
            wait(sleep("20"), Duration::from_millis(50)).expect("it is stopped"),
            None
        );
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
