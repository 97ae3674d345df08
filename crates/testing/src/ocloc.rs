//! Intel's offline compiler for its GPUs, if `scripts/tools` has set it up: the machine code of a module, and the number of
//! prefetches in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::tools;
use crate::back::spirv::Spirv;

/// The compiler.
#[derive(Clone, Debug)]
pub struct Ocloc(PathBuf);

/// A kernel in a GPU's machine code.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The instructions, one a line.
    pub text: String,
    /// How many spills the compiler says there are about.
    pub spills: u32,
}

impl Ocloc {
    /// Finds the compiler of Debian 12. Without it, says on standard error that something is skipped.
    pub fn find() -> Option<Ocloc> {
        tools::program("ocloc").map(Ocloc)
    }

    /// Finds the compiler of Debian's testing release, which knows newer GPUs.
    pub fn newest() -> Option<Ocloc> {
        tools::program("ocloc-testing").map(Ocloc)
    }

    /// Compiles a module for a GPU (`pvc`, `bmg`, …), and reads what came out.
    ///
    /// # Errors
    /// The compiler's output.
    pub fn compile(&self, spirv: &Spirv, device: &str) -> Result<Assembly, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path();
        std::fs::write(path.join("kernel.spv"), spirv.bytes()).map_err(|error| error.to_string())?;
        let mut compile = vec![
            "compile",
            "-spirv_input",
            "-file",
            "kernel.spv",
            "-device",
            device,
            "-output_no_suffix",
            "-output",
            "kernel",
        ];
        if !spirv.build_options.is_empty() {
            compile.extend(["-options", spirv.build_options]);
        }
        let said = self.run(path, &compile)?;
        let binary = ["kernel.bin", "kernel"]
            .into_iter()
            .find(|name| path.join(name).exists());
        let binary = binary.ok_or("ocloc left no binary")?;
        self.run(
            path,
            &["disasm", "-file", binary, "-dump", "dump", "-device", device],
        )?;
        // The names of both kinds of binaries that compilers of different age make.
        let names = [
            format!(".text.{}.asm", spirv.entry),
            format!("{}_KernelHeap.asm", spirv.entry),
        ];
        let listing = names
            .iter()
            .map(|name| path.join("dump").join(name))
            .find(|path| path.exists());
        let listing = listing.ok_or("ocloc left no listing of the kernel")?;
        let text = std::fs::read_to_string(listing).map_err(|error| error.to_string())?;
        // `warning: kernel k compiled SIMD32 allocated 128 regs and spilled around 22`
        let spills = said.split_once("spilled around ").map_or("", |(_, rest)| rest);
        let digits = spills.split(|c: char| !c.is_ascii_digit()).next();
        let spills = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        Ok(Assembly { text, spills })
    }

    /// Runs it and gives its output.
    fn run(&self, folder: &Path, arguments: &[&str]) -> Result<String, String> {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(&self.0)
            .current_dir(folder)
            .args(arguments)
            .output()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let said = String::from_utf8_lossy(&[stdout, stderr].concat())
            .trim()
            .to_owned();
        match status.success() {
            true => Ok(said),
            false => Err(format!("ocloc {}: {said}", arguments.join(" "))),
        }
    }
}

impl Assembly {
    /// The prefetches: messages that load from global memory into the null register, counted by data type, address type and
    /// cache control, such as `d32x4.a64.ca.ca`. A store has no destination either, so both are checked.
    pub fn prefetches(&self) -> BTreeMap<String, u32> {
        self.messages(true)
    }

    /// The loads from global memory into registers, counted in the same way.
    pub fn loads(&self) -> BTreeMap<String, u32> {
        self.messages(false)
    }

    fn messages(&self, to_nowhere: bool) -> BTreeMap<String, u32> {
        let mut found = BTreeMap::new();
        for line in self.text.lines() {
            // `load.ugm.d32x4.a64.ca.ca (16|M0) null:0 …`, or in words of the hardware
            // `send.ugm (16|M0) null … // … load.ugm.d32x4.a64.ca.ca`.
            let (code, comment) = line.split_once("//").unwrap_or((line, ""));
            let Some((_, message)) = code.split_once("load.ugm.").or(comment.split_once("load.ugm.")) else {
                continue;
            };
            let kind = message.split_whitespace().next().unwrap_or_default();
            // The destination follows the execution size.
            let destination = code
                .split_once('|')
                .and_then(|(_, rest)| rest.split_once(')'))
                .and_then(|(_, rest)| rest.split_whitespace().next());
            if destination.is_some_and(|word| word.starts_with("null")) == to_nowhere {
                *found.entry(kind.to_owned()).or_default() += 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loads_to_nowhere_are_prefetches() {
        let text = "\
(W)     load.ugm.d32x16t.a32.ca.ca (1|M0)  r3:1  bti[255][r2:1]  {$1}
        load.ugm.d32x4.a64.ca.ca (16|M0)  null:0   [r10:2]  {$2}
(f0.0)  load.ugm.d32x4.a64.ca.ca (16|M16) null:0   [r12:2]  {$3}
        store.ugm.d32.a64 (16|M0)  null:0  [r10:2]  r5:1  {$4}
        load.ugm.d32.a64.uc.ca (16|M0)  null     flat[r10:2]  {$5}
        load.slm.d32.a32 (16|M0)  null     [r10:2]  {$5}
        send.ugm (16|M0)  null     r5      null:0  0x0  0x04083580  {$3} // wr:2+0, rd:0; load.ugm.d32x4.a64.ca.ca
        send.ugm (16|M0)  null     r11     r2:1    0x0  0x04000584  {$4} // wr:2+1, rd:0; store.ugm.d32.a64
(W)     send.ugm (1|M0)   r4       r127    null:0  0xFF 0x6218C500  {$2} // wr:1+0, rd:1; load.ugm.d32x8t.a32.ca.ca.bti[255]
";
        let assembly = Assembly {
            text: text.to_owned(),
            spills: 0,
        };
        let found = assembly.prefetches();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("d32.a64.uc.ca".to_owned(), 1), ("d32x4.a64.ca.ca".to_owned(), 3)]
        );
        let loads: u32 = assembly.loads().values().sum();
        assert_eq!(loads, 2);
    }
}
