//! The kernel that a command is about: from the gallery, or from a file.

use std::path::Path;
use std::sync::Arc;

use headstart::capture::{Captured, MODULE};
use headstart::device::Device;
use headstart::device::sim::Simulator;
use headstart::files::{self, FileError};
use headstart::front::ptx::{self, Original};
use headstart::ir::{Kernel, limits};
use headstart::prefetch::Plan;
use headstart::report::Report;
use headstart::suggest::quoted;
use headstart::tune::perturb::Settings;
use headstart::tune::{self, FileSubject, LaunchFile, Subject};
use headstart::{Error, Fault, Result};
use headstart_gallery::kernels;
use headstart_gallery::spatter::{Access, Entry, Trace};
use similar::{Algorithm, TextDiff};

use crate::arguments::{DataOptions, KernelOptions};
use crate::compiled::{self, is_cuda};
use crate::spirv_module::{SpirvModule, is_spirv};
use headstart_cli::output::{Destination, tell};

/// How a kernel in a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// An operation without a source place gets its line in the file, so that messages can name it.
    Filled,
    /// As they are written, so that the kernel can be printed again.
    Kept,
}

/// Finds the kernel and its data.
pub fn find(options: &KernelOptions, places: Places) -> Result<Box<dyn Subject>> {
    find_with(options, captured(options)?.as_ref(), places)
}

/// As [`find`], where the captured launch was read already, if it is one.
pub fn find_with(
    options: &KernelOptions,
    captured: Option<&Captured>,
    places: Places,
) -> Result<Box<dyn Subject>> {
    let subject = as_written(options, captured, places)?;
    match options.data.accuracy {
        Some(accuracy) => tune::with_accuracy(subject, accuracy.into()),
        None => Ok(subject),
    }
}

/// The subject with the accuracy that its kernel says.
fn as_written(
    options: &KernelOptions,
    captured: Option<&Captured>,
    places: Places,
) -> Result<Box<dyn Subject>> {
    let data = &options.data;
    if let Some(captured) = captured {
        return Ok(Box::new(tune::captured_subject(captured.clone())?));
    }
    if is_file(&options.kernel) {
        if data.trace.is_some() {
            return Err(Error::usage("`--trace` is for gallery kernels")
                .accepted("for a file, `--launch FILE.toml` gives its arguments"));
        }
        if !data.set.is_empty() && data.launch.is_none() {
            return Err(Error::usage(
                "a kernel from a file has a launch file, whose numbers are set or varied",
            )
            .accepted("`--launch FILE.toml`, which `headstart launch-template` writes"));
        }
        let launch = launch_of(data)?;
        if let Some(module) = Module::of(options)? {
            return module.subject();
        }
        let subject = match spirv_module(options)? {
            Some(module) => module.subject()?,
            None => {
                let kernel = from_file(&options.kernel, places, &launch)?;
                FileSubject::new(Arc::new(kernel), launch)
            }
        };
        return Ok(Box::new(match data.launch {
            Some(_) => subject,
            None => made_up(subject)?,
        }));
    }
    if data.launch.is_some() {
        return Err(Error::usage("`--launch` is for kernels from a file")
            .accepted("for a gallery kernel, `--set name=value`"));
    }
    let kernel = kernels::find(&options.kernel)?;
    let access = kernel.takes_trace.unwrap_or(Access::Gather);
    let trace = data.trace.as_deref().map(|name| read_trace(name, access));
    let trace = trace.transpose()?;
    Ok(Box::new(kernel.with(&data.set, trace)?))
}

/// The module of SPIR-V that the options name; nothing if they name another kind of kernel.
///
/// # Errors
/// The file or its launch file cannot be read.
pub fn spirv_module(options: &KernelOptions) -> Result<Option<SpirvModule>> {
    let (file, entry) = file_and_entry(&options.kernel);
    match (is_spirv(file), &options.data.launch) {
        (true, Some(_)) => SpirvModule::read(file, entry, launch_of(&options.data)?).map(Some),
        (true, None) => {
            let read = |launch: &LaunchFile| {
                let module = SpirvModule::read(file, entry, launch.clone())?;
                module.imported()?;
                Ok(module)
            };
            unlaunched(read).map(|(module, _)| Some(module))
        }
        (false, _) => Ok(None),
    }
}

/// The captured launch that the options name; nothing if they name another kind of kernel.
///
/// # Errors
/// It cannot be read, or more is said of it than it says itself.
pub fn captured(options: &KernelOptions) -> Result<Option<Captured>> {
    let folder = Path::new(&options.kernel);
    if !folder.is_dir() {
        return Ok(None);
    }
    if !Captured::is_in(folder) {
        return Err(
            Error::usage(format!("{} has no captured launch", quoted(&options.kernel)))
                .accepted("a folder of one launch, such as `cap/KERNEL`; `tune` takes a whole capture, too"),
        );
    }
    let data = &options.data;
    if !data.set.is_empty() || data.trace.is_some() || data.launch.is_some() {
        return Err(Error::usage("a captured launch has its own arguments")
            .accepted("no `--set`, `--trace` or `--launch`"));
    }
    Captured::read(folder).map(Some)
}

/// Checks that no file that is written is one that the kernel is read from. Each is named by its option.
///
/// # Errors
/// One is: which.
pub fn spare(options: &KernelOptions, written: &[(&str, Option<&Destination>)]) -> Result<()> {
    let file = Path::new(file_and_entry(&options.kernel).0);
    for read in std::iter::once(file).chain(options.data.launch.as_deref()) {
        let overwrites = |(_, destination): &&(&str, Option<&Destination>)| {
            destination.is_some_and(|destination| destination.replaces(read))
        };
        if let Some((option, _)) = written.iter().find(overwrites) {
            let read = quoted(&read.to_string_lossy());
            return Err(
                Error::usage(format!("`{option}` would replace {read}, which is read"))
                    .accepted("another file"),
            );
        }
    }
    Ok(())
}

/// Says on standard error that arguments are made up, where no report does.
pub fn tell_made_up(subject: &dyn Subject) {
    if let Some(sentence) = subject.made_up() {
        tell(&format!("headstart: {sentence}"));
    }
}

/// An error of the kernel's own on a launch of which some is made up says so.
pub fn on_made_up(subject: &dyn Subject, error: Error) -> Error {
    match (error.fault(), subject.made_up()) {
        (Fault::Input, Some(_)) => {
            error.or_accepted("`--launch FILE` with arguments that suit the kernel: some are made up")
        }
        _ => error,
    }
}

/// A kernel without a launch file: its arguments are those of a template.
fn made_up(subject: FileSubject) -> Result<FileSubject> {
    Ok(subject.with_made_up_arguments(Simulator::new("h200")?.description()))
}

fn launch_of(data: &DataOptions) -> Result<LaunchFile> {
    let mut launch = match &data.launch {
        Some(path) => LaunchFile::read(path)?,
        None => LaunchFile::default(),
    };
    for setting in &data.set {
        launch.set(setting)?;
    }
    Ok(launch)
}

/// An entry of a module in PTX, with its launch.
pub struct Module {
    text: Arc<String>,
    file: String,
    entry: Option<String>,
    launch: LaunchFile,
}

impl Module {
    /// The module of a captured launch.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_captured(captured: &Captured) -> Result<Module> {
        Ok(Module {
            text: Arc::new(captured.module.clone().unwrap_or_default()),
            file: captured.folder.join(MODULE).to_string_lossy().into_owned(),
            entry: Some(captured.kernel.clone()),
            launch: tune::captured_subject(captured.clone())?.launch().clone(),
        })
    }

    /// The module that the options name; nothing if they name another kind of kernel.
    ///
    /// # Errors
    /// The file or its launch file cannot be read.
    pub fn of(options: &KernelOptions) -> Result<Option<Module>> {
        if let Some(captured) = captured(options)? {
            return Module::of_captured(&captured).map(Some);
        }
        let (file, entry) = file_and_entry(&options.kernel);
        if !is_file(&options.kernel) || !is_ptx(file) {
            return Ok(None);
        }
        if options.data.launch.is_some() {
            return Module::read(file, entry, launch_of(&options.data)?).map(Some);
        }
        let ((mut module, imported), _) = unlaunched(|launch| {
            let module = Module::read(file, entry, launch.clone())?;
            let imported = module.imported()?;
            Ok((module, imported))
        })?;
        let subject = FileSubject::of_module(imported, module.launch);
        module.launch = made_up(subject)?.launch().clone();
        Ok(Some(module))
    }

    /// The module in a file of PTX, or that a compiler makes of one of CUDA C.
    fn read(file: &str, entry: Option<&str>, launch: LaunchFile) -> Result<Module> {
        let entry = entry.or(launch.kernel()).map(str::to_owned);
        if !is_cuda(file) {
            return Ok(Module {
                text: Arc::new(read_text(Path::new(file))?),
                file: file.to_owned(),
                entry,
                launch,
            });
        }
        let compiled = compiled::compiled(file)?;
        let mut module = Module {
            text: Arc::clone(&compiled.text),
            file: file.to_owned(),
            entry,
            launch,
        };
        if let Some(entry) = module.entry_name()? {
            module.launch = module.launch.naming(compiled.names(&entry), compiled.debug);
        }
        Ok(module)
    }

    /// The entry's own text between its braces; none if the entry is not named and there are several.
    ///
    /// # Errors
    /// The text is no module.
    pub fn entry_text(&self) -> Result<Option<String>> {
        let name = self.entry_name()?;
        let module = ptx::Module::new(&self.text, &self.file).map_err(|error| error.within(&self.file))?;
        Ok(name.and_then(|name| module.body_of(&name)).map(str::to_owned))
    }

    /// The entry's name in the module; none if it is not named and there are several.
    fn entry_name(&self) -> Result<Option<String>> {
        let module = ptx::Module::new(&self.text, &self.file).map_err(|error| error.within(&self.file))?;
        let entries = module.entries();
        let name = match (self.entry.as_deref(), &entries[..]) {
            (Some(name), _) => headstart::names::find(&entries, name)?,
            (None, [only]) => Some(*only),
            (None, _) => None,
        };
        Ok(name.map(str::to_owned))
    }

    fn imported(&self) -> Result<ptx::Imported> {
        let facts = self.launch.facts();
        let module = ptx::Module::shared(&self.text, &self.file);
        let imported = module.and_then(|module| module.import(self.entry.as_deref(), &facts));
        imported.map_err(|error| error.within(&self.file))
    }

    fn subject(self) -> Result<Box<dyn Subject>> {
        Ok(Box::new(FileSubject::of_module(self.imported()?, self.launch)))
    }

    /// The module with a plan carried out that was derived for a device.
    ///
    /// # Errors
    /// The plan is not legal, its kernel cannot stand in the module, or it went wrong on a launch.
    pub fn planned(&self, plan: &Plan, settings: Option<Settings>) -> Result<String> {
        let (text, file, entry) = (&self.text, &self.file, self.entry.as_deref());
        let planned = tune::derived_module(text, file, entry, &self.launch, plan, settings);
        Ok(planned.map_err(|error| error.within(&self.file))?.text)
    }

    /// What an edit made of the module, as a unified diff.
    pub fn diff(&self, edited: &str) -> String {
        // Lines that occur once stay where they are: all of the module's do, but those that are changed.
        let diff = TextDiff::configure()
            .algorithm(Algorithm::Patience)
            .diff_lines(self.text.as_str(), edited);
        let mut unified = diff.unified_diff();
        unified.header(&self.file, "edited").to_string()
    }

    /// The module with the best plan of a report carried out.
    ///
    /// # Errors
    /// As for [`Module::planned`].
    pub fn best(&self, report: &Report) -> Result<String> {
        let entry = self.entry.as_deref();
        tune::best_module(&self.text, &self.file, entry, &self.launch, report)
            .map_err(|error| error.within(&self.file))
    }
}

/// Gallery names have neither dots nor slashes, but for the one of `micro/NAME`.
fn is_file(kernel: &str) -> bool {
    let name = kernel.strip_prefix("micro/").unwrap_or(kernel);
    name.contains(['.', '/', '\\'])
}

/// The kernel in a file, verified.
fn from_file(name: &str, places: Places, launch: &LaunchFile) -> Result<Kernel> {
    let (file, entry) = file_and_entry(name);
    if is_spirv(file) {
        let module = SpirvModule::read(file, entry, launch.clone())?;
        return Ok(module.imported()?.kernel);
    }
    if is_ptx(file) {
        return Ok(Module::read(file, entry, launch.clone())?.imported()?.kernel);
    }
    let text = read_text(Path::new(file))?;
    let kernel = match places {
        _ if launch.is_for_ptx() => Err(Error::usage(
            "`names`, `readonly`, `unaliased`, `no_overflow`, `warp_synchronous`, `races` and `shared_bytes` of a launch file are for kernels in PTX and SPIR-V",
        )
        .accepted("the kernel's own facts, such as `readonly`")),
        Places::Filled => headstart::ir::read(&text, file),
        Places::Kept => headstart::ir::parse(&text, file),
    };
    let in_file = |error: Error| error.within(file);
    let kernel = kernel.map_err(in_file)?;
    headstart::ir::verify(&kernel).map_err(in_file)?;
    Ok(kernel)
}

/// The names of a module's entries.
///
/// # Errors
/// The file is no module, or cannot be read.
pub fn entries(file: &str) -> Result<Vec<String>> {
    if is_spirv(file) {
        let module = SpirvModule::read(file, None, LaunchFile::default())?;
        return Ok(module.entries().into_iter().map(str::to_owned).collect());
    }
    if !is_ptx(file) {
        return Err(Error::usage("this file is not a module")
            .at(quoted(file))
            .accepted("FILE.ptx, FILE.cu or FILE.spv"));
    }
    let module = Module::read(file, None, LaunchFile::default())?;
    ptx::entries(&module.text).map_err(|error| error.within(&module.file))
}

/// A kernel in a file of which nothing is known yet.
pub struct ForTemplate {
    /// The kernel.
    pub kernel: Kernel,
    /// Its module, if that is PTX.
    pub original: Option<Original>,
    /// How much dynamic shared memory it was assumed to get, if it cannot do without.
    pub shared_bytes: Option<u32>,
    /// The file is SPIR-V.
    pub is_spirv: bool,
}

/// The kernel in a file of which nothing is known yet.
///
/// # Errors
/// The file has no such kernel, or one that cannot be read.
pub fn read_for_template(name: &str) -> Result<ForTemplate> {
    if !is_file(name) {
        return Err(Error::usage("gallery kernels need no launch file")
            .accepted("a file FILE.hsir, FILE.ptx[:entry], FILE.cu[:entry] or FILE.spv[:entry]"));
    }
    let (file, entry) = file_and_entry(name);
    let read = |launch: &LaunchFile| {
        let (kernel, original) = match is_ptx(file) {
            true => {
                let imported = Module::read(file, entry, launch.clone())?.imported()?;
                (imported.kernel, Some(imported.original))
            }
            false => (from_file(name, Places::Filled, launch)?, None),
        };
        Ok((kernel, original))
    };
    let ((kernel, original), shared_bytes) = unlaunched(read)?;
    Ok(ForTemplate {
        kernel,
        original,
        shared_bytes,
        is_spirv: is_spirv(file),
    })
}

/// What is read without a launch file. A kernel that cannot do without dynamic shared memory gets what a template gives it,
/// which is returned, too.
fn unlaunched<T>(read: impl Fn(&LaunchFile) -> Result<T>) -> Result<(T, Option<u32>)> {
    let plain = read(&LaunchFile::default());
    if plain.is_err() {
        let assumed = LaunchFile::parse(&format!("shared_bytes = {ASSUMED_SHARED_BYTES}"), "launch file")?;
        if let Ok(read) = read(&assumed) {
            return Ok((read, Some(ASSUMED_SHARED_BYTES)));
        }
    }
    plain.map(|read| (read, None))
}

/// Dynamic shared memory in a launch file to start from.
const ASSUMED_SHARED_BYTES: u32 = 1024;

/// Whether a file is PTX, or becomes PTX.
fn is_ptx(file: &str) -> bool {
    let extension = Path::new(file).extension();
    is_cuda(file) || extension.is_some_and(|extension| extension == "ptx")
}

/// `FILE.ptx:entry`, `FILE.cu:entry` or `FILE.spv:entry` as its two parts; any other name is a file's. An entry's name may have
/// colons: `ns::gather<float>`.
fn file_and_entry(kernel: &str) -> (&str, Option<&str>) {
    let mut parts = kernel.match_indices(':').map(|(colon, _)| kernel.split_at(colon));
    match parts.find(|(file, _)| is_ptx(file) || is_spirv(file)) {
        Some((file, entry)) if !Path::new(kernel).exists() => (file, Some(&entry[1..])),
        _ => (kernel, None),
    }
}

/// The entry of a trace: `FILE`, or `FILE#3` for another than the first with this access.
fn read_trace(name: &str, access: Access) -> Result<Entry> {
    let (file, position) = match name.rsplit_once('#') {
        Some((file, position)) if !Path::new(name).exists() => match position.parse() {
            Ok(position) => (file, Some(position)),
            Err(_) => {
                return Err(
                    Error::usage(format!("{} is not an entry of a trace", quoted(position)))
                        .accepted("`--trace FILE#N` with N from 0"),
                );
            }
        },
        _ => (name, None),
    };
    Trace::open(file)?.entry(access, position).cloned()
}

/// Reads a kernel's text, as far as kernels may be long.
fn read_text(path: &Path) -> Result<String> {
    let place = quoted(&path.to_string_lossy());
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| extension != "hsir" && extension != "ptx") {
        // What people bring instead of the text of its kernels.
        let way = match extension {
            Some("cuh") => "; a FILE.cu that includes it",
            Some("cubin" | "fatbin" | "o" | "so" | "a") => {
                "; `cuobjdump -ptx FILE` lists its PTX, if it has any"
            }
            Some("cl") => "; clang and Intel's compiler make SPIR-V of OpenCL C",
            Some("py") => {
                "; `headstart capture -o DIR -- python FILE.py` takes the kernels that a program launches"
            }
            _ => "",
        };
        return Err(Error::usage("unknown kind of file").at(&place).accepted(format!(
            "a file FILE.hsir, FILE.ptx[:entry], FILE.cu[:entry] or FILE.spv[:entry]{way}"
        )));
    }
    let most = match path.extension().is_some_and(|extension| extension == "ptx") {
        true => limits::MODULE_BYTES,
        false => limits::TEXT_BYTES as u64,
    };
    files::text(path, most).map_err(|error| match error {
        FileError::TooLong { .. } => Error::input("the kernel's text is too long")
            .at(&place)
            .accepted(format!("at most {} MiB", most >> 20)),
        FileError::NotUtf8 { .. } => Error::input(error.to_string()).at(&place),
        FileError::Folder | FileError::NotRegular | FileError::Io(_) => Error::usage(format!(
            "the kernel cannot be read: {error}"
        ))
        .at(&place)
        .accepted(
            "a gallery kernel (`headstart kernels`), or a file FILE.hsir, FILE.ptx[:entry], FILE.cu[:entry] or FILE.spv[:entry]",
        ),
    })
}
