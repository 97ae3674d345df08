//! `headstart capture`: which kernels a program launches, and copies of the launches that matter.
//!
//! The program runs twice. The first run counts launches and takes their times; the second copies the chosen ones with their
//! memory. All files lie in one folder; see [`headstart::capture`].

mod shown;
mod traced;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use headstart::capture::{Counts, LAUNCH, MODULE, Process, Text, WHOLE, texts};
use headstart::device::cuda::failure::FailureKind;
use headstart::device::cuda::gpu;
use headstart::front::ptx::{Facts, Module, Origin, entries};
use headstart::suggest::quoted;
use headstart::{Error, Result};
use regex_lite::Regex;

use crate::arguments::Capture;
use crate::program::{Heard, Program};
use headstart_cli::output::print;
use shown::{next, remarks, table, whole};

pub use shown::{aligned, geometry, toml_string};

/// A kind of launches takes part in the second run from this share of the time on.
const SHARE: f64 = 0.01;
/// Kinds of a kernel's launches of which one is copied, at most.
const MOST_KINDS: usize = 8;

/// A kernel of the program, over all its processes.
struct Kernel {
    name: String,
    image: Option<String>,
    /// Of all launches.
    counts: Counts,
    /// The kinds of its launches, those that take longest first.
    kinds: Vec<Kind>,
    ptx: Ptx,
}

/// Launches of a kernel that are alike.
struct Kind {
    /// What is the same of all.
    hash: String,
    /// Their parameters, in words.
    like: String,
    counts: Counts,
    /// Whether the captured one is the one that says most of them.
    is_typical: bool,
    /// The folder of a captured one, or why there is none; nothing if none was chosen.
    captured: Option<std::result::Result<String, String>>,
}

/// A launch that is to be captured.
struct Chosen {
    /// The kernel's number in the list, and the kind's among its kinds.
    kernel: usize,
    kind: usize,
    which: Which,
    folder: String,
}

/// A launch of a kernel: by its number among all of it, or among those of its kind.
#[derive(Clone, Copy)]
enum Which {
    Launch(u64),
    OfKind(u64),
}

/// The available forms of a kernel's text.
enum Ptx {
    Text {
        text: String,
        variables: Vec<String>,
    },
    Unreadable(String),
    /// Only for devices from this compute capability on, and the program's was older.
    Newer(u32),
    None,
}

/// A captured program, and what is said of it.
pub struct Taken {
    /// Where it lies.
    pub folder: PathBuf,
    /// Its kernels, a row each.
    pub table: String,
    /// What is remarkable, a line each.
    pub remarks: String,
    /// What to do next.
    next: String,
}

/// Runs the command.
pub fn run(options: &Capture) -> Result<()> {
    if let Some(trace) = &options.import {
        return traced::import(trace, options);
    }
    let taken = take(options)?;
    print(&taken.table)?;
    print(&taken.remarks)?;
    print(&taken.next)
}

/// Captures a program.
///
/// # Errors
/// The folder is not empty or cannot be written, the program cannot be run, or it launches no kernel.
pub fn take(options: &Capture) -> Result<Taken> {
    let pattern = options.kernel.as_deref().map(|text| {
        Regex::new(text).map_err(|error| {
            Error::usage(format!("`--kernel {text}` is not a regular expression: {error}"))
                .accepted("such as `--kernel 'gather|scatter'`")
        })
    });
    let pattern = pattern.transpose()?;
    let folder = new_folder(&options.output)?;
    let mut program = Program::new(&options.program)?;
    program.limit(options.limits.max_bytes, options.limits.patience);
    program.compile_again();
    let status = program.run("list", &folder, Heard::Aloud)?.status;
    let processes = Process::all_in(&folder)?;
    let mut kernels = kernels(&folder, &processes)?;
    if kernels.is_empty() {
        return Err(no_kernel(&processes, status));
    }
    let total = kernels
        .iter()
        .map(|kernel| kernel.counts.estimated_ns())
        .sum::<f64>();
    let chosen = match options.list {
        true => Vec::new(),
        false => chosen(&kernels, total, pattern.as_ref(), options.launch),
    };
    if !chosen.is_empty() {
        // The first run's counts are kept beside the second's.
        let first = folder.join("first");
        let moved = fs::create_dir_all(&first).and_then(|()| move_processes(&folder, &first));
        moved.map_err(|error| unwritable(&folder, &error))?;
        fs::write(folder.join("selection.txt"), selection(&kernels, &chosen))
            .map_err(|error| unwritable(&folder, &error))?;
        program.run("capture", &folder, Heard::Dropped)?;
        note_outcome(&folder, &mut kernels, &chosen)?;
    }
    let whole = whole(options, &kernels, &processes, total).text()?;
    fs::write(folder.join(WHOLE), whole).map_err(|error| unwritable(&folder, &error))?;
    Ok(Taken {
        table: table(&kernels, total),
        remarks: remarks(&kernels, &processes, status),
        next: next(&folder, &kernels),
        folder,
    })
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Error {
    Error::device(format!("the capture cannot be written: {error}")).at(quoted(&folder.to_string_lossy()))
}

/// Makes the folder; one with something in it is refused.
fn new_folder(path: &Path) -> Result<PathBuf> {
    let shown = || quoted(&path.to_string_lossy());
    fs::create_dir_all(path).map_err(|error| Error::usage(format!("{} cannot be made: {error}", shown())))?;
    let mut inside = fs::read_dir(path).map_err(|error| unwritable(path, &error))?;
    if inside.next().is_some() {
        return Err(Error::usage(format!("{} is not empty", shown())).accepted("a new or an empty folder"));
    }
    fs::canonicalize(path).map_err(|error| unwritable(path, &error))
}

fn no_kernel(processes: &[Process], status: ExitStatus) -> Error {
    if processes.is_empty() {
        // A program says little of that, or nothing.
        match gpu::count() {
            Err(failure) if failure.kind == FailureKind::MissingDriver => {
                return Error::device(failure.what)
                    .accepted("a machine with NVIDIA's driver; what is captured there can be tuned here");
            }
            Ok(0) => return Error::device("the NVIDIA driver of this machine sees no GPU"),
            _ => {}
        }
    }
    if !status.success() && processes.is_empty() {
        return Error::input(format!(
            "the program ended with {status} before it called the CUDA driver"
        ));
    }
    match processes.is_empty() {
        true => Error::input("the program did not call the CUDA driver, or could not be observed").accepted(
            "a dynamically linked program that is not setuid, and room on the disk for its record; for others, the system ignores \
             LD_PRELOAD",
        ),
        false => Error::input("the program called the CUDA driver and launched no kernel"),
    }
}

/// The kernels of all processes, each once, the ones that take longest first.
fn kernels(folder: &Path, processes: &[Process]) -> Result<Vec<Kernel>> {
    type Kinds = HashMap<(String, String), Counts>;
    let mut all: BTreeMap<(String, Option<String>), (Counts, Kinds)> = BTreeMap::new();
    for seen in processes.iter().flat_map(|process| &process.kernels) {
        let counts = &seen.counts;
        if counts.launches + u64::from(counts.in_graphs) == 0 {
            continue;
        }
        let (own, kinds) = all.entry((seen.name.clone(), seen.image.clone())).or_default();
        own.add(counts);
        if let Some(kind) = &seen.kind {
            kinds.entry(kind.clone()).or_default().add(counts);
        }
    }
    let mut images: HashMap<String, Vec<Text>> = HashMap::new();
    let capability = processes.iter().find_map(|process| process.capability);
    let mut kernels = Vec::new();
    for ((name, image), (counts, kinds)) in all {
        let texts = image.clone().map(|hash| {
            images
                .entry(hash.clone())
                .or_insert_with(|| texts_of(folder, &hash, processes))
        });
        let ptx = texts.map_or(Ptx::None, |texts| {
            ptx_of(texts, &name, counts.shared_bytes, capability)
        });
        let mut kinds: Vec<Kind> = kinds
            .into_iter()
            .map(|((hash, like), counts)| Kind {
                hash,
                like,
                counts,
                is_typical: true,
                captured: None,
            })
            .collect();
        kinds.sort_by(|one, other| {
            let time = |kind: &Kind| kind.counts.estimated_ns();
            let by_time = time(other).total_cmp(&time(one));
            by_time.then(one.counts.typical().0.cmp(&other.counts.typical().0))
        });
        kernels.push(Kernel {
            name,
            image,
            counts,
            kinds,
            ptx,
        });
    }
    kernels.sort_by(|one, other| other.counts.estimated_ns().total_cmp(&one.counts.estimated_ns()));
    Ok(kernels)
}

/// The modules of PTX in an image, for the newest devices first; none where it has none, or none that can be taken out.
fn texts_of(folder: &Path, hash: &str, processes: &[Process]) -> Vec<Text> {
    let of = |hash: &str| {
        let bytes = fs::read(folder.join("images").join(hash)).unwrap_or_default();
        texts(&bytes).unwrap_or_default()
    };
    let mut found = of(hash);
    // Machine code that the driver linked for the program from one text alone is that text's.
    let linked = processes.iter().find_map(|process| process.linked.get(hash));
    if let (true, Some([text])) = (found.is_empty(), linked.map(Vec::as_slice)) {
        found = of(text);
    }
    // The newest architecture says most.
    found.sort_by_key(|text| std::cmp::Reverse(text.architecture));
    found
}

/// The text of a kernel for a device of this compute capability.
fn ptx_of(texts: &[Text], name: &str, shared_bytes: u32, capability: Option<u32>) -> Ptx {
    let has = |text: &&Text| entries(&text.text).is_ok_and(|names| names.iter().any(|own| own == name));
    let is_newer = |text: &&Text| text.architecture > capability && capability.is_some();
    let Some(Text { text, .. }) = texts.iter().filter(|text| !is_newer(text)).find(has) else {
        let oldest = texts.iter().rev().find(has).and_then(|text| text.architecture);
        return oldest.map_or(Ptx::None, Ptx::Newer);
    };
    let facts = Facts {
        dynamic_shared_bytes: Some(shared_bytes),
        ..Facts::default()
    };
    let read = Module::new(text, "module").and_then(|module| {
        let imported = module.import_alone(name, &facts)?;
        // Whatever is made of the text is compiled: a library's module has a hundred entries.
        Ok((module.alone(name), imported))
    });
    match read {
        Ok((text, imported)) => {
            let variable = |origin: &Origin| match origin {
                Origin::Variable { name, .. } => Some(name.clone()),
                Origin::Parameter { .. } | Origin::Structure { .. } | Origin::Workspace => None,
            };
            Ptx::Text {
                text,
                variables: imported.original.parameters.iter().filter_map(variable).collect(),
            }
        }
        Err(error) => Ptx::Unreadable(error.to_string()),
    }
}

/// The launches to be captured: of each kernel that is wanted the one that is named, or one of each kind that takes enough time.
fn chosen(kernels: &[Kernel], total: f64, pattern: Option<&Regex>, launch: Option<u64>) -> Vec<Chosen> {
    let mut names: HashMap<String, u32> = HashMap::new();
    let mut all = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let own = kernel.counts.estimated_ns();
        let is_wanted = match pattern {
            Some(pattern) => pattern.is_match(&kernel.name),
            None => total <= 0.0 || own >= SHARE * total,
        };
        if !is_wanted || !matches!(kernel.ptx, Ptx::Text { .. }) || kernel.counts.launches == 0 {
            continue;
        }
        // Named kernels are about their own time, not the program's.
        let of = if pattern.is_some() { own } else { total };
        let most = if launch.is_some() { 1 } else { MOST_KINDS };
        let takes_enough = |kind: &Kind| kind.counts.estimated_ns() >= SHARE * of;
        for (number, kind) in kernel.kinds.iter().enumerate().take(most) {
            if number > 0 && !takes_enough(kind) {
                continue;
            }
            let name = short(&kernel.name);
            let count = names.entry(name.clone()).or_default();
            *count += 1;
            all.push(Chosen {
                kernel: index,
                kind: number,
                which: launch.map_or(Which::OfKind(kind.counts.typical().0), Which::Launch),
                folder: match count {
                    1 => name,
                    count => format!("{name}-{count}"),
                },
            });
        }
    }
    all
}

/// A kernel's name as people wrote it, fit for a folder: of a C++ name its last part.
fn short(name: &str) -> String {
    let own = cpp_name(name).unwrap_or_else(|| name.to_owned());
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let fit: String = own.chars().map(fit).take(80).collect();
    match fit.as_str() {
        "" | "buffers" | "images" | "first" => format!("kernel_{fit}"),
        _ => fit,
    }
}

/// The last name in a C++ symbol: `_Z6gatherPKi`, `_ZN3app4scanIfEEvPT_`.
fn cpp_name(symbol: &str) -> Option<String> {
    let mut rest = symbol.strip_prefix("_Z")?;
    let is_nested = rest.starts_with('N');
    rest = rest.strip_prefix('N').unwrap_or(rest);
    rest = rest.strip_prefix('L').unwrap_or(rest);
    let mut last = None;
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(length) = rest[..digits].parse::<usize>() else {
            break;
        };
        let name = rest.get(digits..digits.checked_add(length)?)?;
        rest = &rest[digits + length..];
        last = Some(name.to_owned());
        if !is_nested {
            break;
        }
    }
    last
}

fn selection(kernels: &[Kernel], chosen: &[Chosen]) -> String {
    let mut text = String::new();
    for own in chosen {
        let kernel = &kernels[own.kernel];
        let image = kernel.image.as_deref().unwrap_or("-");
        let weight = if own.kind == 0 { "main" } else { "lesser" };
        let which = match own.which {
            Which::Launch(number) => number.to_string(),
            Which::OfKind(number) => format!("{}:{number}", kernel.kinds[own.kind].hash),
        };
        let _ = write!(
            text,
            "{image}\t{}\t{which}\t{}\t{weight}",
            kernel.name, own.folder
        );
        if let Ptx::Text { variables, .. } = &kernel.ptx {
            for variable in variables {
                let _ = write!(text, "\t{variable}");
            }
        }
        text.push('\n');
    }
    text
}

fn move_processes(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("process-") {
            fs::rename(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Notes at each kind what became of its chosen launch. One that was named may be of any kind.
fn note_outcome(folder: &Path, kernels: &mut [Kernel], chosen: &[Chosen]) -> Result<()> {
    let processes = Process::all_in(folder)?;
    let skipped: HashMap<&String, &String> = processes
        .iter()
        .flat_map(|process| process.skipped.iter().map(|(name, why)| (name, why)))
        .collect();
    let hashes: HashMap<&String, &String> = processes
        .iter()
        .flat_map(|process| process.captured.iter().map(|(name, hash)| (name, hash)))
        .collect();
    for own in chosen {
        let name = &own.folder;
        let path = folder.join(name);
        let kernel = &mut kernels[own.kernel];
        let found = match (path.join(LAUNCH).is_file(), &kernel.ptx) {
            (true, Ptx::Text { text, .. }) => {
                // The launch is written last: where it is, all its memory is.
                fs::write(path.join(MODULE), text).map_err(|error| unwritable(&path, &error))?;
                Ok(())
            }
            _ => Err(match skipped.get(name) {
                Some(why) => (*why).clone(),
                None => match own.which {
                    Which::Launch(number) => format!("in the second run there was no launch {number}"),
                    Which::OfKind(number) => {
                        format!("in the second run there was no launch {number} of this kind")
                    }
                },
            }),
        };
        match found {
            Ok(()) => {
                let hash = hashes.get(name);
                let is_own = |kind: &Kind| Some(&&kind.hash) == hash;
                let number = kernel.kinds.iter().position(is_own).unwrap_or(own.kind);
                let kind = &mut kernel.kinds[number];
                kind.captured = Some(Ok(name.clone()));
                kind.is_typical = matches!(own.which, Which::OfKind(_));
            }
            Err(why) => {
                let _ = fs::remove_dir_all(&path);
                let kind = &mut kernel.kinds[own.kind];
                kind.captured.get_or_insert(Err(why));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_newer_devices_is_none() {
        let entry = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
        let text = |architecture| Text {
            architecture,
            text: entry.to_owned(),
        };
        let texts = [text(Some(120)), text(Some(80))];
        let of = |texts: &[Text], capability| ptx_of(texts, "k", 0, capability);
        assert!(matches!(of(&texts, Some(90)), Ptx::Text { .. }));
        assert!(matches!(of(&texts[..1], Some(90)), Ptx::Newer(120)));
        assert!(matches!(of(&texts[..1], Some(120)), Ptx::Text { .. }));
        assert!(matches!(of(&texts[..1], None), Ptx::Text { .. }));
        // Text alone says itself which GPU it is for; the driver has taken it.
        assert!(matches!(of(&[text(None)], Some(90)), Ptx::Text { .. }));
        assert!(matches!(ptx_of(&texts, "other", 0, Some(90)), Ptx::None));
    }

    #[test]
    fn names_are_as_people_wrote_them() {
        assert_eq!(short("gather"), "gather");
        assert_eq!(short("_Z6gatherPKiPKfPfi"), "gather");
        assert_eq!(short("_ZN3app4scanIfEEvPT_"), "scan");
        assert_eq!(short("_ZN12_GLOBAL__N_15innerEv"), "inner");
        assert_eq!(short("_Z4spmvIdEvPKT_"), "spmv");
        assert_eq!(short("triton_poi_fused_0"), "triton_poi_fused_0");
        assert_eq!(short("a/../b"), "a____b");
        assert_eq!(short("buffers"), "kernel_buffers");
        assert_eq!(short("_Z99x"), "_Z99x");
    }
}
