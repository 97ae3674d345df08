//! How many instructions the mathematical functions take on an H200, beside CUDA's own: the sm_90 instructions that a kernel
//! with the function has more than one without, in total and on the common path alone.
//!
//! `HEADSTART_BLESS=1` writes `results/math-instructions.json`; without, nothing may take more than it says there.
//! It takes `ptxas`, `nvdisasm` and `nvcc` of `scripts/tools ptxas nvcc`, and is skipped where they are not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use headstart::back::ptx;
use headstart::ir::{Builder, Id, Kernel, LoadData, Param, Space, Type, Value};
use headstart::math::Function;
use serde_json::{Value as Json, json};

/// The functions that are counted: those that come in one piece of their own, here and in CUDA.
fn functions() -> impl Iterator<Item = Function> {
    let all = Function::ALL.iter().copied();
    all.filter(|function| !matches!(function, Function::Round | Function::Rem))
}

/// A kernel that stores the function of what it loads, or the first of that where there is none.
fn ours(function: Option<Function>) -> Kernel {
    let mut kernel = Kernel::new("counted");
    let [x, y, result] = ["x", "y", "result"].map(|name| {
        let value = kernel.value(Type::Ptr(Space::Global));
        kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts: None,
        });
        value
    });
    let ids = ["x", "y"].map(|name| kernel.loads.push(LoadData::new(name, Kernel::NOWHERE)));
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let local = b.id(Id::Local(0));
    let index = b.convert(headstart::ir::ConvertOp::ExtendU, Type::I64, local);
    let mut load = |from: Value, id| {
        let ptr = b.element(from, Type::F32, index);
        b.load(Type::F32, ptr, id)
    };
    let arguments = [load(x, ids[0]), load(y, ids[1])];
    let value = match function {
        Some(function) => function.emit(&mut b, &arguments[..function.arguments()]),
        None => arguments[0],
    };
    // The second is loaded everywhere, so that functions of one and of two argument compare alike.
    let sum = b.element(result, Type::F32, index);
    b.store(sum, value);
    let behind = b.address(result, index, 4, 4096);
    b.store(behind, arguments[1]);
    b.return_();
    kernel.body = b.finish();
    kernel
}

fn cuda(expression: &str) -> String {
    format!(
        "extern \"C\" __global__ void counted(const float *x, const float *y, float *result) {{\n\
         unsigned i = threadIdx.x; float a = x[i], b = y[i];\n\
         result[i] = {expression}; result[i + 1024] = b;\n}}\n"
    )
}

struct Tools(PathBuf);

/// Instructions.
#[derive(Clone, Copy)]
struct Count {
    all: usize,
    usual: usize,
}

impl Count {
    /// How many more there are than without.
    fn beyond(self, without: Count) -> Count {
        Count {
            all: self.all.saturating_sub(without.all),
            usual: self.usual.saturating_sub(without.usual),
        }
    }
}

impl Tools {
    fn find() -> Option<Tools> {
        let tools = std::env::var_os("HEADSTART_TOOLS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools"),
            PathBuf::from,
        );
        let all = ["ptxas", "nvdisasm", "nvcc"]
            .iter()
            .all(|name| tools.join("bin").join(name).exists());
        if !all {
            eprintln!("skipped: no ptxas, nvdisasm and nvcc; scripts/tools ptxas nvcc sets them up");
        }
        all.then_some(Tools(tools))
    }

    fn run(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(self.0.join("bin").join(name))
            .args(arguments)
            .output();
        let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Instructions of the only kernel in a file of machine code; the padding at its end does not count.
    fn count(&self, cubin: &Path) -> Count {
        let text = self.run("nvdisasm", &["-c", &cubin.display().to_string()]);
        let mut labels: HashMap<&str, usize> = HashMap::new();
        let mut code = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label, code.len());
            } else if line.starts_with("/*") && line.contains(';') && !line.contains("NOP") {
                let (_, instruction) = line.split_once("*/").expect("an address comes first");
                code.push(instruction.trim());
            }
        }
        let target = |instruction: &str| {
            let (_, label) = instruction.split_once("BRA `(")?;
            labels.get(label.split(')').next()?).copied()
        };
        // Behind the last way out comes a jump to itself.
        let is_end = |at: usize| target(code[at]) == Some(at);
        let all = (0..code.len()).filter(|&at| !is_end(at)).count();
        let (mut at, mut usual) = (0, 0);
        while at < code.len() && !is_end(at) {
            usual += 1;
            let conditional = code[at].starts_with('@');
            if code[at].contains("EXIT") && !conditional {
                break;
            }
            // What a branch jumps over is rarely run, unless it ends with a jump over the rare other side.
            let jump = target(code[at]).filter(|&to| to > at);
            let two_sides = |to: usize| {
                target(code[to - 1]).is_some_and(|end| end > to) && !code[to - 1].starts_with('@')
            };
            at = match jump {
                Some(to) if !conditional || !two_sides(to) => to,
                _ => at + 1,
            };
        }
        Count { all, usual }
    }

    fn count_ours(&self, folder: &Path, function: Option<Function>) -> Count {
        let emitted =
            ptx::emit(&ours(function), &ptx::Options::new(ptx::PtxTarget::Sm90)).expect("PTX can say it");
        let (source, cubin) = (folder.join("ours.ptx"), folder.join("ours.cubin"));
        std::fs::write(&source, emitted.text).expect("written");
        let paths = [source.display().to_string(), cubin.display().to_string()];
        self.run("ptxas", &["-arch=sm_90", &paths[0], "-o", &paths[1]]);
        self.count(&cubin)
    }

    fn count_cuda(&self, folder: &Path, expression: &str) -> Count {
        let (source, cubin) = (folder.join("cuda.cu"), folder.join("cuda.cubin"));
        std::fs::write(&source, cuda(expression)).expect("written");
        let paths = [source.display().to_string(), cubin.display().to_string()];
        self.run("nvcc", &["-arch=sm_90", "-cubin", &paths[0], "-o", &paths[1]]);
        self.count(&cubin)
    }
}

#[test]
fn functions_take_no_more_instructions_than_recorded() {
    let Some(tools) = Tools::find() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/math-instructions.json");
    let folder = tempfile::tempdir().expect("a place");
    let without = tools.count_ours(folder.path(), None);
    let count = |function| tools.count_ours(folder.path(), Some(function)).beyond(without);
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        let without_cuda = tools.count_cuda(folder.path(), "a");
        let rows: Vec<Json> = functions()
            .map(|function| {
                let arguments = if function.arguments() == 1 { "a" } else { "a, b" };
                // In single precision CUDA's names end in f.
                let theirs = tools.count_cuda(folder.path(), &format!("{}f({arguments})", function.name()));
                let (ours, theirs) = (count(function), theirs.beyond(without_cuda));
                json!({
                    "function": function.name(),
                    "ours": ours.usual,
                    "cuda": theirs.usual,
                    "ours_all": ours.all,
                    "cuda_all": theirs.all,
                })
            })
            .collect();
        let date = Command::new("date")
            .args(["-u", "+%Y-%m-%d"])
            .output()
            .expect("a date");
        let results = json!({
            "what": "instructions of single-precision functions in machine code for sm_90, ours and CUDA 13.0's, on the usual way, and all",
            "command": "HEADSTART_BLESS=1 cargo test -p headstart --test math_counts",
            "date": String::from_utf8_lossy(&date.stdout).trim(),
            "functions": rows,
        });
        let text = serde_json::to_string_pretty(&results).expect("JSON");
        std::fs::write(&path, text + "\n").expect("results can be written");
        return;
    }
    let recorded = std::fs::read_to_string(&path).expect("results/math-instructions.json is there");
    let recorded: Json = serde_json::from_str(&recorded).expect("JSON");
    for function in functions() {
        let mut rows = recorded["functions"].as_array().expect("a list").iter();
        let row = rows
            .find(|row| row["function"] == function.name())
            .expect("every function");
        let found = count(function);
        for (key, found) in [("ours", found.usual), ("ours_all", found.all)] {
            let most = row[key].as_u64().expect("a count") as usize;
            assert!(
                found <= most,
                "{} takes {found} instructions, recorded as {key} are {most}",
                function.name()
            );
        }
    }
}
