//! CUDA C as a kernel: nvcc, or clang, makes PTX of it, and says what the source calls the parameters.
//!
//! The file is compiled twice at once: as it would be built, with the lines of the source, and with debug information, which alone
//! has names. What belongs to the build (`-I`, `-D`, `-std`, another `-arch`) stands in nvcc's own `NVCC_APPEND_FLAGS`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use headstart::suggest::quoted;
use headstart::{Error, Result};

use headstart_cli::output::{explain_command, tell_lines};
use headstart_cli::toolkit;

/// The GPU that is compiled for: the oldest with asynchronous copies. PTX for it runs on all later ones.
const ARCHITECTURE: &str = "sm_80";

/// A file of CUDA C as PTX.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The module.
    pub text: Arc<String>,
    /// The same with debug information; empty where that could not be made.
    pub debug: Arc<String>,
}

impl Compiled {
    /// What the source calls an entry's parameters, in their order.
    pub fn names(&self, entry: &str) -> Vec<String> {
        headstart::front::ptx::parameter_names(&self.debug, entry)
    }
}

/// Whether a file's name says that it is CUDA C.
pub fn is_cuda(file: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|extension| extension == "cu")
}

/// What was compiled already: a command asks more than once.
static COMPILED: Mutex<Option<HashMap<String, Compiled>>> = Mutex::new(None);

/// Compiles a file.
///
/// # Errors
/// There is no compiler, or it refuses the file.
pub fn compiled(file: &str) -> Result<Compiled> {
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(compiled) = known.get(file) {
        return Ok(compiled.clone());
    }
    if let Err(error) = std::fs::metadata(file) {
        return Err(Error::usage(format!("the kernel cannot be read: {error}")).at(quoted(file)));
    }
    let compiled = Compiler::found()?.compiled(file)?;
    known.insert(file.to_owned(), compiled.clone());
    Ok(compiled)
}

/// A compiler of CUDA C.
struct Compiler {
    program: PathBuf,
    is_clang: bool,
}

impl Compiler {
    /// nvcc of `CUDA_HOME` or `CUDA_PATH`, or else on `PATH`, or else clang.
    fn found() -> Result<Compiler> {
        let nvcc = toolkit::program("nvcc").map(|program| (program, false));
        let found = nvcc.or_else(|| Some((toolkit::program("clang++")?, true)));
        let (program, is_clang) = found.ok_or_else(|| {
            Error::device("CUDA C needs a compiler, and neither nvcc nor clang++ is in CUDA_HOME or CUDA_PATH, or on PATH")
                .accepted("its PTX: `nvcc -ptx -lineinfo FILE.cu` writes FILE.ptx")
        })?;
        Ok(Compiler { program, is_clang })
    }

    /// Starts it; its PTX goes into a file of this name.
    fn started(&self, file: &str, to: &Path, debug: bool) -> Result<Child> {
        let mut command = Command::new(&self.program);
        match self.is_clang {
            true => {
                command.args(["-x", "cuda", "--cuda-device-only", "-O3", "-S"]);
                command.arg(format!("--cuda-gpu-arch={ARCHITECTURE}"));
                command.arg(if debug { "-g" } else { "-gline-tables-only" });
            }
            false => {
                command.arg("-ptx").arg(if debug { "-G" } else { "-lineinfo" });
                let given = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"].map(std::env::var_os);
                let names_one = |flags: &OsString| flags.to_string_lossy().contains("arch");
                if !given.iter().flatten().any(names_one) {
                    command.arg(format!("-arch={ARCHITECTURE}"));
                }
            }
        }
        command.arg(file).arg("-o").arg(to);
        explain_command(&command);
        let piped = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        piped
            .spawn()
            .map_err(|error| self.failed(file, &error.to_string()))
    }

    fn compiled(&self, file: &str) -> Result<Compiled> {
        let folder = tempfile::tempdir().map_err(|error| self.failed(file, &error.to_string()))?;
        let paths = [folder.path().join("module.ptx"), folder.path().join("debug.ptx")];
        let children = [
            self.started(file, &paths[0], false)?,
            self.started(file, &paths[1], true)?,
        ];
        let [plain, debug] = children.map(Child::wait_with_output);
        let plain = plain.map_err(|error| self.failed(file, &error.to_string()))?;
        if !plain.status.success() {
            // A compiler's messages have places and carets of their own.
            tell_lines(&String::from_utf8_lossy(&plain.stderr));
            return Err(self.failed(file, "what it says stands above"));
        }
        let text = std::fs::read_to_string(&paths[0]);
        let text = text.map_err(|error| self.failed(file, &error.to_string()))?;
        // Without names the parameters have numbers.
        let debug = match debug {
            Ok(_) => std::fs::read_to_string(&paths[1]).unwrap_or_default(),
            Err(_) => String::new(),
        };
        Ok(Compiled {
            text: Arc::new(text),
            debug: Arc::new(debug),
        })
    }

    fn failed(&self, file: &str, why: &str) -> Error {
        let program = quoted(&self.program.to_string_lossy());
        Error::input(format!("{program} does not compile it: {why}"))
            .at(quoted(file))
            .accepted("CUDA C that it compiles; for nvcc, flags of the build (`-I…`, `-D…`, `-arch=…`) can stand in NVCC_APPEND_FLAGS")
    }
}
