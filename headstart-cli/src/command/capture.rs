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

use headstart::capture::{Captured, Counts, LAUNCH, MODULE, Process, Text, WHOLE, texts};
use headstart::front::ptx::{Facts, Origin, entries, import};
use headstart::suggest::quoted;
use headstart::{Error, Result};
use regex_lite::Regex;

use crate::arguments::Capture;
use crate::output::print;
use crate::program::Program;
use shown::{closing, table, whole};

pub use shown::toml_string;

/// A kernel takes part in the second run from this share of the time on.
const SHARE: f64 = 0.01;
/// A kernel of the program, over all its processes.
struct Kernel {
    name: String,
    image: Option<String>,
    counts: Counts,
    ptx: Ptx,
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

/// Runs the command.
pub fn run(options: &Capture) -> Result<()> {
    if let Some(trace) = &options.import {
        return traced::import(trace, options);
    }
    let pattern = options.kernel.as_deref().map(|text| {
        Regex::new(text).map_err(|error| {
            Error::usage(format!("`--kernel {text}` is not a regular expression: {error}"))
                .accepted("such as `--kernel 'gather|scatter'`")
        })
    });
    let pattern = pattern.transpose()?;
    let folder = new_folder(&options.output)?;
    let mut program = Program::new(&options.program)?;
    program.limit(options.max_bytes, options.patience);
    program.compile_again();
    let status = program.run("list", &folder, true)?;
    let processes = Process::all_in(&folder)?;
    let kernels = kernels(&folder, &processes)?;
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
    let mut captured = HashMap::new();
    if !chosen.is_empty() {
        // The first run's counts are kept beside the second's.
        let first = folder.join("first");
        let moved = fs::create_dir_all(&first).and_then(|()| move_processes(&folder, &first));
        moved.map_err(|error| unwritable(&folder, &error))?;
        fs::write(folder.join("selection.txt"), selection(&kernels, &chosen))
            .map_err(|error| unwritable(&folder, &error))?;
        program.run("capture", &folder, false)?;
        captured = outcome(&folder, &kernels, &chosen)?;
    }
    let whole = whole(options, &kernels, &processes, total);
    fs::write(folder.join(WHOLE), whole).map_err(|error| unwritable(&folder, &error))?;
    print(&table(&kernels, total, &captured))?;
    print(&closing(&folder, &kernels, &processes, status, &captured))
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
    let mut all: BTreeMap<(String, Option<String>), Counts> = BTreeMap::new();
    for seen in processes.iter().flat_map(|process| &process.kernels) {
        if seen.counts.launches + u64::from(seen.counts.in_graphs) == 0 {
            continue;
        }
        let own = all.entry((seen.name.clone(), seen.image.clone())).or_default();
        own.add(&seen.counts);
    }
    let mut images: HashMap<String, Vec<Text>> = HashMap::new();
    let capability = processes.iter().find_map(|process| process.capability);
    let mut kernels = Vec::new();
    for ((name, image), counts) in all {
        let texts = image.clone().map(|hash| {
            images
                .entry(hash.clone())
                .or_insert_with(|| texts_of(folder, &hash, processes))
        });
        let ptx = texts.map_or(Ptx::None, |texts| {
            ptx_of(texts, &name, counts.shared_bytes, capability)
        });
        kernels.push(Kernel {
            name,
            image,
            counts,
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
    match import(text, "module", Some(name), &facts) {
        Ok(imported) => {
            let variable = |origin: &Origin| match origin {
                Origin::Variable { name, .. } => Some(name.clone()),
                Origin::Parameter { .. } | Origin::Structure { .. } | Origin::Workspace => None,
            };
            Ptx::Text {
                text: text.clone(),
                variables: imported.original.parameters.iter().filter_map(variable).collect(),
            }
        }
        Err(error) => Ptx::Unreadable(error.to_string()),
    }
}

/// The launches to be captured: a kernel's number in the list, which launch, and the folder's name.
fn chosen(
    kernels: &[Kernel],
    total: f64,
    pattern: Option<&Regex>,
    launch: Option<u64>,
) -> Vec<(usize, u64, String)> {
    let mut names: HashMap<String, u32> = HashMap::new();
    let mut chosen = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let is_wanted = match pattern {
            Some(pattern) => pattern.is_match(&kernel.name),
            None => total <= 0.0 || kernel.counts.estimated_ns() >= SHARE * total,
        };
        if !is_wanted || !matches!(kernel.ptx, Ptx::Text { .. }) || kernel.counts.launches == 0 {
            continue;
        }
        let name = short(&kernel.name);
        let count = names.entry(name.clone()).or_default();
        *count += 1;
        let name = match count {
            1 => name,
            count => format!("{name}-{count}"),
        };
        chosen.push((index, launch.unwrap_or(kernel.counts.typical().0), name));
    }
    chosen
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

fn selection(kernels: &[Kernel], chosen: &[(usize, u64, String)]) -> String {
    let mut text = String::new();
    for (index, launch, name) in chosen {
        let kernel = &kernels[*index];
        let image = kernel.image.as_deref().unwrap_or("-");
        let _ = write!(text, "{image}\t{}\t{launch}\t{name}", kernel.name);
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

/// The outcome of each chosen launch, by the kernel's number: its folder, or why there is none.
fn outcome(
    folder: &Path,
    kernels: &[Kernel],
    chosen: &[(usize, u64, String)],
) -> Result<HashMap<usize, std::result::Result<String, String>>> {
    let processes = Process::all_in(folder)?;
    let skipped: HashMap<&String, &String> = processes
        .iter()
        .flat_map(|process| process.skipped.iter().map(|(name, why)| (name, why)))
        .collect();
    let mut outcome = HashMap::new();
    for (index, launch, name) in chosen {
        let own = folder.join(name);
        let found = match (own.join(LAUNCH).is_file(), &kernels[*index].ptx) {
            (true, Ptx::Text { text, .. }) => {
                fs::write(own.join(MODULE), text).map_err(|error| unwritable(&own, &error))?;
                // An incomplete folder is no capture.
                Captured::read(&own)
                    .map(|_| name.clone())
                    .map_err(|error| error.to_string())
            }
            _ => Err(match skipped.get(name) {
                Some(why) => (*why).clone(),
                None => format!("in the second run there was no launch {launch}"),
            }),
        };
        if found.is_err() {
            let _ = fs::remove_dir_all(&own);
        }
        outcome.insert(*index, found);
    }
    Ok(outcome)
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
        // Text alone says itself whom it is for; the driver has taken it.
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
