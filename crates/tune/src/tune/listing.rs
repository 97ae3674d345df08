//! The code of a kernel in each form on its way to the device, and its source lines, for a page that shows two plans side by
//! side.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use super::bench::Looked;
use crate::back::machine::MachineProgram;
use crate::device::sim::timer::StallReason;
use crate::files;
use crate::ir::{Kernel, print};
use crate::report::detail::{Listing, Source};

/// Lines of a listing that are shown.
const LINES: usize = 1000;

/// A share of the time below which waiting is not mentioned.
const NOTICED: f64 = 0.0005;

/// Lines of a source file around those that code comes from, and the most that are shown of one.
const AROUND: u32 = 4;
const SOURCE_LINES: u32 = 400;

/// The longest source file that is read, in bytes.
const SOURCE_BYTES: u64 = 1 << 20;

/// A kernel's code in each form that there is of it.
pub(super) fn listings(kernel: &Kernel, looked: &Looked) -> Vec<Listing> {
    let mut listings = vec![listing("IR", print(kernel))];
    listings.extend(looked.ptx.clone().map(|text| listing("PTX", text)));
    if let Some(program) = &looked.program {
        listings.push(listing("machine code", machine(program, &looked.waited)));
    }
    listings
}

fn listing(form: &str, text: String) -> Listing {
    let count = text.lines().count();
    let text = match count > LINES {
        true => text.lines().take(LINES).fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        }),
        false => text,
    };
    Listing {
        form: form.to_owned(),
        text,
        cut: count.saturating_sub(LINES),
    }
}

/// Instructions with the share of the time that sub-groups wait at each, their source lines, and the reasons for waiting.
fn machine(program: &MachineProgram, waited: &[[f64; StallReason::ALL.len()]]) -> String {
    let kernel = &program.kernel;
    let mut files: Vec<&str> = Vec::new();
    let mut lines = String::new();
    let none = [0.0; StallReason::ALL.len()];
    for (number, (line, instruction)) in program.lines().iter().zip(&program.instructions).enumerate() {
        let own = waited.get(number).unwrap_or(&none);
        let share: f64 = own.iter().sum();
        let shown = match share >= NOTICED {
            true => format!("{:.1} %", 100.0 * share),
            false => String::new(),
        };
        let _ = write!(lines, "{shown:>7} {line}");
        if let Some(data) = kernel.places.get(instruction.place).filter(|data| data.line > 0) {
            let file = match files.iter().position(|known| *known == data.file) {
                Some(file) => file,
                None => {
                    files.push(&data.file);
                    files.len() - 1
                }
            };
            let _ = write!(lines, " #{}:{}:{}", file + 1, data.line, data.column);
        }
        let mut reasons: Vec<(StallReason, f64)> = StallReason::ALL.into_iter().zip(*own).collect();
        reasons.retain(|(_, share)| *share >= NOTICED);
        reasons.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let reasons: Vec<String> = reasons
            .iter()
            .map(|(reason, share)| format!("{} {:.1} %", reason.words(), 100.0 * share))
            .collect();
        if !reasons.is_empty() {
            let _ = write!(lines, " ! {}", reasons.join(", "));
        }
        lines.push('\n');
    }
    let mut text = String::new();
    for (number, file) in files.iter().enumerate() {
        let _ = writeln!(text, "file #{} {file:?}", number + 1);
    }
    text + &lines
}

/// The source lines of these kernels, from files inside a folder. Files elsewhere are not read: a kernel may be someone
/// else's, and a page may be published.
pub(super) fn sources(kernels: &[Arc<Kernel>], folder: &Path) -> Vec<Source> {
    let mut ranges: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for data in kernels.iter().flat_map(|kernel| kernel.places.values()) {
        if data.line > 0 && !data.file.is_empty() {
            let (first, last) = ranges.entry(&data.file).or_insert((data.line, data.line));
            (*first, *last) = ((*first).min(data.line), (*last).max(data.line));
        }
    }
    let Ok(folder) = folder.canonicalize() else {
        return Vec::new();
    };
    let source = |(file, (first, last)): (&str, (u32, u32))| {
        let path = folder.join(file).canonicalize().ok()?;
        if !path.starts_with(&folder) {
            return None;
        }
        let text = String::from_utf8(files::bytes(&path, SOURCE_BYTES).ok()?).ok()?;
        let first = first.saturating_sub(AROUND).max(1);
        let count = last
            .saturating_add(AROUND)
            .saturating_sub(first)
            .saturating_add(1)
            .min(SOURCE_LINES);
        let lines: Vec<String> = text
            .lines()
            .skip(first as usize - 1)
            .take(count as usize)
            .map(str::to_owned)
            .collect();
        (!lines.is_empty()).then(|| Source {
            file: file.to_owned(),
            first,
            lines,
        })
    };
    ranges.into_iter().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir;

    const KERNEL: &str = "hsir 1
        kernel @copy(%out: ptr.global i32[%n] align 16 unaliased, %n: i64) {
          file #1 \"inside.rs\"
          file #2 \"../outside.rs\"
          %0 = id.local.x #1:7:3
          %1 = address %out + %n * 4 #2:2:1
          store %1, %0 #1:9:3
          return
        }";

    #[test]
    fn only_what_lies_in_the_folder_is_read() {
        let outside = tempfile::tempdir().expect("a folder");
        let folder = outside.path().join("project");
        std::fs::create_dir(&folder).expect("a folder");
        let text: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        for file in [folder.join("inside.rs"), outside.path().join("outside.rs")] {
            std::fs::write(file, &text).expect("written");
        }
        let kernel = Arc::new(ir::parse(KERNEL, "test.hsir").expect("a kernel"));
        let found = sources(&[kernel], &folder);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].file.as_str(), found[0].first), ("inside.rs", 3));
        let expected: Vec<String> = (3..=13).map(|line| format!("line {line}")).collect();
        assert_eq!(found[0].lines, expected);
    }

    #[test]
    fn a_long_listing_is_cut_and_says_by_how_much() {
        let text: String = (0..LINES + 5).map(|line| format!("{line}\n")).collect();
        let cut = listing("IR", text);
        assert_eq!((cut.text.lines().count(), cut.cut), (LINES, 5));
        assert_eq!(listing("IR", "one\n".into()).cut, 0);
    }
}
