//! NVIDIA's assembler, where `scripts/tools` has set it up.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;

use crate::back::ptx::{Ptx, PtxTarget};

/// The assembler.
#[derive(Clone, Debug)]
pub struct Ptxas(PathBuf);

/// What it made of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// Registers of a work-item.
    pub registers: u32,
    /// Bytes that a work-item keeps in memory for want of registers, stored.
    pub spilled_bytes: u32,
    /// Bytes of a work-item's stack frame, which holds spilled values.
    pub frame_bytes: u32,
    /// Static shared memory of a work-group, in bytes.
    pub shared_bytes: u32,
}

impl Ptxas {
    /// Finds the assembler under `target/tools`, or the folder that `HEADSTART_TOOLS` names. Without it,
    /// says on standard error that something is skipped.
    pub fn find() -> Option<Ptxas> {
        super::tools::program("ptxas").map(Ptxas)
    }

    /// Assembles a module for a GPU generation.
    ///
    /// # Errors
    /// The assembler's message, with the lines that it complains about; or a register that is read before it is written, which
    /// the assembler accepts silently.
    pub fn assemble(&self, ptx: &Ptx, target: PtxTarget) -> Result<Assembled, String> {
        if let Some(line) = read_before_written(&ptx.text) {
            return Err(format!("a register is read that nothing wrote: {line}"));
        }
        self.assemble_text(&ptx.text, target.name())
    }

    /// Assembles a module that compilers wrote, for the GPU generation that it names.
    ///
    /// # Errors
    /// The assembler's message, with the lines that it complains about.
    pub fn assemble_module(&self, text: &str) -> Result<Assembled, String> {
        self.assemble_text(text, target_of(text))
    }

    /// The machine code of a module, an ELF file, for the GPU generation that it names.
    ///
    /// # Errors
    /// The assembler's message, with the lines that it complains about.
    pub fn machine_code(&self, text: &str) -> Result<Vec<u8>, String> {
        self.run(text, target_of(text)).map(|(_, code)| code)
    }

    /// The assembler's output for a text, and the machine code.
    fn run(&self, text: &str, arch: &str) -> Result<(String, Vec<u8>), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let source = folder.path().join("kernel.ptx");
        std::fs::write(&source, text).map_err(|error| error.to_string())?;
        let code = folder.path().join("kernel.cubin");
        let output = Command::new(&self.0)
            .args(["-v", &format!("-arch={arch}"), "-o"])
            .arg(&code)
            .arg(&source)
            .output()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            None => return Err("the assembler crashed".to_string()),
            Some(_) => return Err(complaints(&said, text)),
        }
        let code = std::fs::read(code).map_err(|error| error.to_string())?;
        Ok((said.into_owned(), code))
    }

    fn assemble_text(&self, text: &str, arch: &str) -> Result<Assembled, String> {
        let (said, _) = self.run(text, arch)?;
        let before = |word: &str| {
            let words: Vec<&str> = said
                .split([' ', ',', '\n'])
                .filter(|word| !word.is_empty())
                .collect();
            let word: Vec<&str> = word.split(' ').collect();
            let at = words.windows(word.len()).position(|found| found == word)?;
            words[at.checked_sub(1)?].parse().ok()
        };
        Ok(Assembled {
            registers: before("registers").ok_or("ptxas says nothing of registers")?,
            spilled_bytes: before("bytes spill stores").ok_or("ptxas says nothing of spills")?,
            frame_bytes: before("bytes stack frame").ok_or("ptxas says nothing of the stack frame")?,
            shared_bytes: before("bytes smem").unwrap_or(0),
        })
    }
}

/// The GPU generation that a module names.
fn target_of(text: &str) -> &str {
    let target = text.lines().find_map(|line| line.trim().strip_prefix(".target "));
    let target = target.and_then(|target| target.split([',', ' ']).next());
    target.unwrap_or("sm_90")
}

/// The first line that reads a register which no line above writes. Emitted code is structured, so code that runs before a line
/// stands above it; the values that a loop passes to its next iteration are written in front of the loop, too.
fn read_before_written(text: &str) -> Option<&str> {
    let mut written: HashSet<&str> = HashSet::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with(['.', '$', '/', '{', '}', ')']) || line.is_empty() {
            continue;
        }
        let (guard, instruction) = match line.split_once(' ') {
            Some((guard, rest)) if guard.starts_with('@') => (guard, rest),
            _ => ("", line),
        };
        let (name, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let no_result = [
            "st",
            "cp",
            "bra",
            "ret",
            "bar",
            "barrier",
            "red",
            "prefetch",
            "prefetchu",
            "membar",
            "fence",
        ];
        let end = match name.split('.').next() {
            Some(first) if no_result.contains(&first.trim_end_matches(';')) => 0,
            _ if operands.starts_with('{') => operands.find('}').unwrap_or(0),
            _ => operands.find(',').unwrap_or(operands.len()),
        };
        let (results, sources) = operands.split_at(end);
        let mut read = registers(guard).chain(registers(sources));
        if read.any(|register| !written.contains(register)) {
            return Some(line);
        }
        written.extend(registers(results));
    }
    None
}

/// The registers in a piece of text, without those that the hardware writes, such as `%tid.x`.
fn registers(text: &str) -> impl Iterator<Item = &str> {
    let name = |piece: &str| piece.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    text.split('%').skip(1).filter_map(move |piece| {
        let end = name(piece).unwrap_or(piece.len());
        let register = &piece[..end];
        let special = [
            "tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "clock", "clock64",
        ];
        (!special.contains(&register)).then_some(register)
    })
}

/// The assembler's errors, each with the line of PTX that it names.
fn complaints(said: &str, text: &str) -> String {
    let quoted = said
        .lines()
        .filter(|line| line.contains("error"))
        .take(20)
        .map(|error| {
            let number = error
                .split("line ")
                .nth(1)
                .and_then(|rest| rest.split(';').next());
            let line =
                number.and_then(|number| text.lines().nth(number.parse::<usize>().ok()?.checked_sub(1)?));
            format!("{error}: {}", line.unwrap_or("?").trim())
        });
    quoted.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::read_before_written;

    #[test]
    fn a_register_that_nothing_wrote_is_noticed() {
        let good = "\tmov.u32 %r1, %tid.x;\n$loop:\n\tsetp.lt.u32 %p1, %r1, 4;\n\t@%p1 ld.shared.v2.f32 {%f1, %f2}, [%r1+4];\n\
                    \tst.shared.f32 [%r1], %f2;\n\tcp.async.wait_group 0;\n\tret;\n";
        assert_eq!(read_before_written(good), None);
        for bad in [
            "add.s32 %r5, %r5, 0;",
            "st.shared.f32 [%r1], %f2;",
            "@%p1 bra $loop;",
        ] {
            assert_eq!(read_before_written(bad), Some(bad));
        }
    }
}
