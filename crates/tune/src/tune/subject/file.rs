//! A kernel from a file as the tuner's subject.

use std::sync::Arc;

use super::workload::Workload;
use crate::device::Description;
use crate::error::{Error, Result};
use crate::front::ptx::{self, Facts, Imported, Origin, Original};
use crate::front::spirv;
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::tune::launch::file::LaunchFile;
use crate::tune::launch::fitted_template::fitted_launch_template;
use crate::tune::launch::template::launch_template;
use crate::tune::modules::granted_for;
use crate::tune::subject::{Reshaped, Subject, divided_otherwise};

/// A kernel from a file, with its launch.
#[derive(Clone, Debug)]
pub struct FileSubject {
    kernel: Arc<Kernel>,
    launch: LaunchFile,
    original: Option<Arc<Original>>,
    spirv: Option<Arc<spirv::Original>>,
}

impl FileSubject {
    /// A kernel and how it is launched.
    pub fn new(kernel: Arc<Kernel>, launch: LaunchFile) -> FileSubject {
        FileSubject {
            kernel,
            launch,
            original: None,
            spirv: None,
        }
    }

    /// An entry of a module, and how it is launched.
    pub fn of_module(imported: Imported, launch: LaunchFile) -> FileSubject {
        FileSubject {
            kernel: Arc::new(imported.kernel),
            launch,
            original: Some(Arc::new(imported.original)),
            spirv: None,
        }
    }

    /// An entry of a module of SPIR-V, and how it is launched.
    pub fn of_spirv(imported: spirv::Imported, launch: LaunchFile) -> FileSubject {
        FileSubject {
            kernel: Arc::new(imported.kernel),
            launch,
            original: None,
            spirv: Some(Arc::new(imported.original)),
        }
    }

    /// The same with the arguments that a template for the kernel has, where the user gave none.
    #[doc(hidden)]
    #[must_use]
    pub fn with_made_up_arguments(self, device: &Description) -> FileSubject {
        let text = match self.spirv {
            Some(_) => launch_template(&self.kernel, None),
            None => fitted_launch_template(&self.kernel, self.original.as_ref(), None, device),
        };
        match self.launch.with_arguments_of(&text) {
            Ok(launch) => FileSubject { launch, ..self },
            Err(_) => self,
        }
    }

    /// The module that the kernel was read from, if it came in SPIR-V.
    #[doc(hidden)]
    pub fn spirv(&self) -> Option<&Arc<spirv::Original>> {
        self.spirv.as_ref()
    }

    /// The module that the kernel was read from, if it came in PTX.
    pub(crate) fn original(&self) -> Option<&Arc<Original>> {
        self.original.as_ref()
    }

    /// How it is launched.
    pub fn launch(&self) -> &LaunchFile {
        &self.launch
    }

    /// The same in each of the other geometries that the launch file names.
    ///
    /// # Errors
    /// The module cannot be read with the launch file's settings for a geometry.
    #[doc(hidden)]
    pub fn elsewhere(&self) -> Result<Vec<FileSubject>> {
        let launches = self.launch.elsewhere().into_iter();
        launches.map(|launch| self.launched(launch)).collect()
    }

    fn launched(&self, launch: LaunchFile) -> Result<FileSubject> {
        match &self.original {
            // Stated lengths are built into the kernel.
            Some(original) if launch.facts() != self.launch.facts() => {
                let imported = original.again(&launch.facts())?;
                Ok(FileSubject::of_module(imported, launch))
            }
            _ if self.spirv.is_some() && launch.facts() != self.launch.facts() => {
                let original = self
                    .spirv
                    .as_ref()
                    .ok_or_else(|| Error::bug("a module is lost"))?;
                let imported = original.again(&launch.facts())?;
                Ok(FileSubject::of_spirv(imported, launch))
            }
            _ => Ok(FileSubject {
                launch,
                ..self.clone()
            }),
        }
    }
}

impl Subject for FileSubject {
    fn made_up(&self) -> Option<String> {
        let said = self.launch.made_up().map(str::to_owned);
        let of_ptx = |number: usize| {
            let origin = self.original.as_ref().and_then(|own| own.parameters.get(number));
            origin.is_some_and(|origin| !matches!(origin, Origin::Parameter { .. }))
        };
        let of_spirv = |number: usize| {
            let origin = self.spirv.as_ref().and_then(|own| own.parameters.get(number));
            matches!(origin, Some(spirv::Origin::Variable { .. }))
        };
        said.or_else(|| {
            self.launch
                .left_open(&self.kernel, |number| of_ptx(number) || of_spirv(number))
        })
    }

    fn is_in_module(&self) -> bool {
        self.original.is_some() || self.spirv.is_some()
    }

    fn name(&self) -> &str {
        &self.kernel.name
    }

    fn workload(&self) -> Result<Workload> {
        match &self.spirv {
            Some(original) => self.launch.workload_of(&self.kernel, original),
            None => self.launch.workload_in(&self.kernel, self.original.as_ref()),
        }
    }

    fn small(&self, _iterations: u64) -> Result<Option<Workload>> {
        // The launch file does not say which parameter the number of iterations follows from.
        Ok(None)
    }

    fn same_work(&self) -> Result<Vec<Reshaped>> {
        let subjects = self.elsewhere()?.into_iter();
        let reshaped = subjects.map(|subject| {
            let workload = subject.workload()?;
            Ok(Reshaped {
                geometry: workload.geometry(),
                parameters: subject.launch.scalars_unlike(&self.launch),
                workload,
            })
        });
        reshaped.collect()
    }

    /// The launch file says that other geometries do the same work.
    fn may_be_split(&self) -> bool {
        self.launch.has_geometries()
    }

    fn regrouped(&self) -> Result<Vec<Reshaped>> {
        Ok(divided_otherwise(&self.workload()?))
    }

    fn granted(&self, plan: &Plan) -> Result<Vec<String>> {
        match &self.original {
            Some(_) if !plan.is_none() => {
                let granted = granted_for(self, plan)?;
                Ok(granted.iter().map(ToString::to_string).collect())
            }
            // A kernel that cannot be written back has no assumptions.
            None if self.spirv.is_some() && !plan.is_none() => {
                Ok(crate::tune::modules::spirv::granted_for(self, plan).unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn with_shared_bytes(&self, bytes: u32) -> Result<Option<Arc<Kernel>>> {
        let Some(original) = &self.original else {
            return Ok(None);
        };
        let facts = Facts {
            dynamic_shared_bytes: Some(bytes),
            ..self.launch.facts()
        };
        let imported = original.again(&facts)?;
        Ok(Some(Arc::new(imported.kernel)))
    }

    fn read_again(&self, text: &str, bytes: Option<u32>) -> Result<Option<Arc<Kernel>>> {
        let Some(original) = &self.original else {
            return Ok(None);
        };
        let mut facts = self.launch.facts();
        facts.dynamic_shared_bytes = bytes.or(facts.dynamic_shared_bytes);
        // What is known of the module's own counters is not known of those in a plan's copies.
        facts.no_overflow = false;
        // A ring's slots may hold elements of several parameters: the copies into them do not tell whose are of which type.
        let facts = facts.with_elements_of(&self.kernel);
        let module = ptx::Module::new(text, &original.file)?;
        let imported = module.import_alone(&original.entry, &facts)?;
        Ok(Some(Arc::new(imported.kernel)))
    }

    fn unlocking(&self, is_over: &dyn Fn() -> bool) -> Vec<String> {
        let facts = self.launch.facts();
        match (&self.original, &self.spirv) {
            (Some(original), _) => super::statements::unlocking(
                &|facts| original.again(facts).map(|imported| imported.kernel),
                &|number| matches!(original.parameters.get(number), Some(Origin::Parameter { .. })),
                &self.kernel,
                &facts,
                true,
                is_over,
            ),
            (None, Some(original)) => super::statements::unlocking(
                &|facts| original.again(facts).map(|imported| imported.kernel),
                &|number| matches!(original.parameters.get(number), Some(spirv::Origin::Parameter(_))),
                &self.kernel,
                &facts,
                false,
                is_over,
            ),
            (None, None) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "hsir 1\nkernel @scale(\n  %to: ptr.global f32[%to_len] align 4 unaliased,\n  \
                          %to_len: i64,\n  %count: i32,\n) {\n  return\n}\n";

    #[test]
    fn other_geometries_are_the_same_work() {
        let text = "groups = 4\ngroup = 32\n[parameters.to]\nlength = 128\noutput = \"bits\"\n[parameters.count]\nvalue = 8\n\
                    [[geometries]]\ngroups = [2, 1, 1]\ngroup = 64\n[[geometries]]\ngroups = 8\n\
                    parameters.count = { value = 4 }\nparameters.to = { length = 256 }\n";
        let kernel = Arc::new(crate::ir::parse(KERNEL, "scale.hsir").expect("a kernel"));
        let launch = LaunchFile::parse(text, "launch.toml").expect("a launch file");
        let shapes = FileSubject::new(kernel, launch).same_work().expect("two more");
        let [wider, more] = &shapes[..] else {
            panic!("{} geometries", shapes.len());
        };
        assert_eq!((wider.geometry.groups, wider.geometry.group), (2, 64));
        assert!(wider.parameters.is_empty());
        assert_eq!((more.geometry.groups, more.geometry.group), (8, 32));
        assert_eq!(more.parameters, [("count".to_owned(), "4".to_owned())]);
        assert_eq!(more.workload.bytes(), 1024);
    }

    #[test]
    fn a_module_is_read_again_where_lengths_differ() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry one(.param .u64 out)\n{\n.reg .b64 %rd<3>;\n\
                    .reg .b32 %r<2>;\nld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, 1;\n\
                    st.global.u32 [%rd2], %r1;\nret;\n}\n";
        let launch =
            "[parameters.out]\nlength = 4\n[[geometries]]\ngroups = 2\nparameters.out = { length = 8 }\n";
        let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
        let imported = crate::front::ptx::import(text, "one.ptx", None, &launch.facts()).expect("a module");
        let shapes = FileSubject::of_module(imported, launch)
            .same_work()
            .expect("one more");
        assert_eq!(shapes[0].workload.bytes(), 32);
        let said = shapes[0].workload.kernel.params[0]
            .facts
            .expect("a buffer")
            .length;
        let said = said.and_then(|length| shapes[0].workload.kernel.as_constant(length));
        assert_eq!(said, Some(8));
    }
}
