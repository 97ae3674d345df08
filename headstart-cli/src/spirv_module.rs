//! A kernel in a file of SPIR-V: its subject, and the module with it exchanged.

use std::path::Path;

use headstart::back::spirv::SpirvTarget;
use headstart::files::{self, FileError};
use headstart::front::spirv;
use headstart::prefetch::Plan;
use headstart::report::Report;
use headstart::suggest::quoted;
use headstart::tune::perturb::Settings;
use headstart::tune::{self, FileSubject, LaunchFile, PlannedSpirv};
use headstart::{Error, Result};

/// Whether a file's name says that it is a module of SPIR-V.
pub fn is_spirv(file: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|extension| extension == "spv")
}

/// A module that was read.
pub struct SpirvModule {
    module: spirv::Module,
    file: String,
    entry: Option<String>,
    launch: LaunchFile,
}

impl SpirvModule {
    /// Reads the module in a file, for an entry of it and its launch.
    ///
    /// # Errors
    /// It cannot be read, or is no module of SPIR-V.
    pub fn read(file: &str, entry: Option<&str>, launch: LaunchFile) -> Result<SpirvModule> {
        let bytes = files::bytes(Path::new(file), spirv::MODULE_BYTES).map_err(|error| match error {
            FileError::TooLong { .. } => Error::input("the module is too long")
                .at(quoted(file))
                .accepted(format!("at most {} MiB", spirv::MODULE_BYTES >> 20)),
            error => Error::usage(format!("the module cannot be read: {error}"))
                .at(quoted(file))
                .accepted("a file FILE.spv[:entry]"),
        })?;
        let module = spirv::Module::new(&bytes, file).map_err(|error| error.within(file))?;
        Ok(SpirvModule {
            module,
            file: file.to_owned(),
            entry: entry.or(launch.kernel()).map(str::to_owned),
            launch,
        })
    }

    /// The names of its entries.
    pub fn entries(&self) -> Vec<&str> {
        self.module.entries()
    }

    /// The entry as a kernel.
    ///
    /// # Errors
    /// There is no such entry, or it cannot be read.
    pub fn imported(&self) -> Result<spirv::Imported> {
        let imported = self.module.import(self.entry.as_deref(), &self.launch.facts());
        imported.map_err(|error| error.within(&self.file))
    }

    /// The entry with its launch.
    ///
    /// # Errors
    /// As for [`SpirvModule::imported`].
    pub fn subject(&self) -> Result<FileSubject> {
        Ok(FileSubject::of_spirv(self.imported()?, self.launch.clone()))
    }

    /// The module with a plan carried out.
    ///
    /// # Errors
    /// The plan is not legal, its kernel cannot stand in the module, or it went wrong on a launch.
    pub fn planned(&self, plan: &Plan, target: SpirvTarget, settings: Settings) -> Result<PlannedSpirv> {
        let planned = tune::planned_spirv(&self.subject()?, plan, target, settings);
        planned.map_err(|error| error.within(&self.file))
    }

    /// The module with the best plan of a report carried out.
    ///
    /// # Errors
    /// As for [`SpirvModule::planned`].
    pub fn best(&self, report: &Report, target: SpirvTarget) -> Result<PlannedSpirv> {
        let best = tune::best_spirv(&self.subject()?, report, target);
        best.map_err(|error| error.within(&self.file))
    }
}
