//! Libraries: several kernels in one program, written to a file and loaded again.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, Library, TypedBuffer};
//! use headstart::runtime::launch::Compiled;
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn double(values: &mut [f32]) {
//!     values[global_id()] *= 2.0;
//! }
//!
//! #[kernel]
//! fn negate(values: &mut [f32]) {
//!     values[global_id()] = -values[global_id()];
//! }
//!
//! let library = Library::new([double::kernel()?, negate::kernel()?])?;
//! let loaded = Library::parse(&library.to_text())?; // or `write` and `read`, with a file
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let programs = loaded.compile(&device)?;
//! let mut values = TypedBuffer::from_slice(&device, &[1.0f32, -3.0])?;
//! for name in ["double", "negate"] {
//!     let program = Compiled::of(programs.get(name)?.clone());
//!     program.launch(&*queue, Geometry::new(1, 2), double::arguments(&mut values)).wait()?;
//! }
//! assert_eq!(values.read(&*queue)?, [-2.0, 6.0]);
//! # Ok::<(), headstart::Error>(())
//! ```
//! A library holds kernels as IR, which every device accepts; building them from Rust, or from PTX, and applying plans is done
//! once, before. A [`Cache`] keeps devices' compiled kernels, so that each is compiled once; a [`Bundle`](super::Bundle) keeps
//! their machine code in a file.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Device, Images, Program};
use crate::files;
use crate::ir::{self, Kernel};
use crate::suggest::accepted;
use crate::{Error, Result};

/// The first line of a library's text.
const HEAD: &str = "headstart library 1";

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Most kernels in a library.
const MOST_KERNELS: usize = 4096;

/// Several kernels, each with a name of its own.
#[derive(Clone, Debug)]
pub struct Library(Vec<Arc<Kernel>>);

/// A library that a device has compiled.
#[derive(Clone, Debug)]
pub struct Programs(Vec<Program>);

impl Library {
    /// A library of these kernels.
    ///
    /// # Errors
    /// A kernel is not right, or two have the same name.
    pub fn new(kernels: impl IntoIterator<Item = Kernel>) -> Result<Library> {
        let kernels: Vec<Arc<Kernel>> = kernels.into_iter().map(Arc::new).collect();
        if kernels.len() > MOST_KERNELS {
            return Err(Error::input(format!("a library of {} kernels", kernels.len()))
                .accepted(format!("at most {MOST_KERNELS}")));
        }
        for (index, kernel) in kernels.iter().enumerate() {
            ir::verify(kernel)?;
            if kernels[..index].iter().any(|other| other.name == kernel.name) {
                return Err(
                    Error::input(format!("two kernels of a library are called `{}`", kernel.name))
                        .accepted("each has a name of its own"),
                );
            }
        }
        Ok(Library(kernels))
    }

    /// Its kernels.
    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.0
    }

    /// As text: a line with its version, then each kernel behind a line with its size in bytes.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for kernel in &self.0 {
            let printed = ir::print(kernel);
            let _ = writeln!(text, "{}", printed.len());
            text.push_str(&printed);
        }
        text
    }

    /// Reads the output of [`Library::to_text`].
    ///
    /// # Errors
    /// The text is none that it wrote.
    pub fn parse(text: &str) -> Result<Library> {
        let wrong = |what: &str| Error::input(format!("not a library: {what}")).accepted(format!("`{HEAD}`"));
        let rest = text.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix('\n'));
        let mut rest = rest.ok_or_else(|| wrong("the first line is another"))?;
        let mut kernels = Vec::new();
        while !rest.is_empty() {
            let (size, behind) = rest
                .split_once('\n')
                .ok_or_else(|| wrong("a kernel's size is missing"))?;
            let size: usize = size
                .parse()
                .map_err(|_| wrong("a kernel's size is not a number"))?;
            let kernel = behind
                .get(..size)
                .ok_or_else(|| wrong("a kernel is shorter than its size"))?;
            if kernels.len() == MOST_KERNELS {
                return Err(wrong("it has too many kernels"));
            }
            kernels.push(ir::parse(kernel, "library")?);
            rest = &behind[size..];
        }
        Library::new(kernels)
    }

    /// Writes the library to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.to_text())
            .map_err(|error| Error::usage(format!("{} cannot be written: {error}", path.display())))
    }

    /// Reads a library from a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Library> {
        let text = files::text(path, MAX_BYTES)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", path.display())))?;
        Library::parse(&text).map_err(|error| error.at(path.display().to_string()))
    }

    /// Makes every kernel ready to launch on a device.
    ///
    /// # Errors
    /// The device cannot run one of them.
    pub fn compile(&self, device: &dyn Device) -> Result<Programs> {
        self.load(device, &Images::new())
    }

    /// As [`Library::compile`], with machine code where there is some that fits.
    ///
    /// # Errors
    /// The device cannot run one of them.
    pub fn load(&self, device: &dyn Device, images: &Images) -> Result<Programs> {
        let programs = self.0.iter().map(|kernel| device.load(kernel, images));
        Ok(Programs(programs.collect::<Result<Vec<_>>>()?))
    }
}

impl Programs {
    /// The program of this name.
    ///
    /// # Errors
    /// There is none; which there are.
    pub fn get(&self, name: &str) -> Result<&Program> {
        let found = self.0.iter().find(|program| program.kernel().name == name);
        found.ok_or_else(|| {
            let names = self.0.iter().map(|program| program.kernel().name.as_str());
            Error::usage(format!("the library has no kernel `{name}`"))
                .accepted(accepted(name, "kernels", names))
        })
    }
}

/// Kernels as compiled for devices: each is compiled once per device, however often it is requested.
#[derive(Debug, Default)]
pub struct Cache(Mutex<HashMap<(String, String), Arc<Entry>>>);

/// A kernel as compiled for a device, behind a lock of its own: requests for other kernels do not wait.
type Entry = Mutex<Option<Program>>;

impl Cache {
    /// An empty one.
    pub fn new() -> Cache {
        Cache::default()
    }

    /// The kernel, ready to launch on the device of this name: that of [`Description`](super::Description), which must
    /// be the same device every time.
    ///
    /// # Errors
    /// The device cannot run it.
    pub fn compile(&self, device: &dyn Device, kernel: &Arc<Kernel>) -> Result<Program> {
        let key = (device.description().name.clone(), ir::print(kernel));
        let entry = Arc::clone(locked(&self.0).entry(key).or_default());
        let mut program = locked(&entry);
        match &*program {
            Some(program) => Ok(program.clone()),
            None => Ok(program.insert(device.compile(kernel)?).clone()),
        }
    }

    /// How many programs it holds.
    pub fn len(&self) -> usize {
        let entries: Vec<_> = locked(&self.0).values().cloned().collect();
        entries.iter().filter(|entry| locked(entry).is_some()).count()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A panic while the lock was held left nothing half-made behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Idle;

    fn named(name: &str) -> Kernel {
        let text = format!("hsir 1\nkernel @{name}(%n: i32) {{\n  return\n}}\n");
        ir::parse(&text, "test").expect("the kernel is right")
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let library = Library::new([named("one"), named("two")]).expect("right");
        let text = library.to_text();
        assert_eq!(Library::parse(&text).expect("the same").to_text(), text);
        let said = |text: &str| Library::parse(text).expect_err("wrong").to_string();
        assert!(said("").contains("the first line"), "{}", said(""));
        assert!(said(&text[..text.len() - 1]).contains("shorter"));
        assert!(said(&text.replacen("one", "two", 1)).contains("are called `two`"));
        assert!(said(&format!("{HEAD}\nmany\n")).contains("not a number"));
        assert!(said(&format!("{HEAD}\n5\nabcde")).contains("hsir"));
        let programs = library.compile(&Idle::new()).expect("runs there");
        let error = programs.get("three").expect_err("there are two").to_string();
        assert!(error.contains("no kernel `three`"), "{error}");
    }

    #[test]
    fn a_kernel_is_compiled_once() {
        let (device, cache) = (Idle::new(), Cache::new());
        for _ in 0..3 {
            for name in ["one", "two"] {
                let program = cache
                    .compile(&device, &Arc::new(named(name)))
                    .expect("runs there");
                assert_eq!(program.kernel().name, name);
            }
        }
        assert_eq!(cache.len(), 2);
    }
}
