//! Images that a program loads, their entries and variables.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headstart::back::machine::{Target, lower_for_any_launch};
use headstart::capture::texts;
use headstart::device::{Device, Fill, Program};
use headstart::front::ptx::{Facts, Imported, Origin, entries, import};

use crate::abi::{
    CUresult, Handle, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE, NO_BINARY_FOR_GPU, NOT_FOUND,
};
use crate::memory::zeros;
use crate::state::{State, say, state};

/// Work-items of a sub-group.
const SUB_GROUP: u32 = 32;

/// A module or library.
pub struct Module {
    texts: Vec<String>,
    /// Entries that were asked for, by name.
    functions: Mutex<HashMap<String, &'static Function>>,
    /// Address and size of each variable that was asked for or is used.
    variables: Mutex<HashMap<String, (u64, u64)>>,
}

/// An entry of a module. A function and a kernel are the same here.
pub struct Function {
    /// Its name.
    pub name: std::ffi::CString,
    /// Its module.
    pub module: &'static Module,
    /// Offset and size of each parameter.
    pub layout: Vec<(u64, u64)>,
    /// Static shared memory, in bytes.
    pub shared_bytes: u64,
    text: usize,
    /// What was made of it, by bytes of dynamic shared memory.
    programs: Mutex<HashMap<u32, Arc<Loaded>>>,
    /// Attributes that were set.
    pub attributes: Mutex<HashMap<i32, i32>>,
}

/// An entry, ready to run.
pub struct Loaded {
    /// The entry as a kernel.
    pub imported: Imported,
    /// The program.
    pub program: Program,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All modules and functions that exist, to tell handles from other pointers.
static MODULES: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static FUNCTIONS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The module of a handle.
pub fn module(handle: Handle) -> Result<&'static Module, CUresult> {
    match locked(&MODULES).contains(&(handle as usize)) {
        // SAFETY: modules are never freed.
        true => Ok(unsafe { &*handle.cast::<Module>() }),
        false => Err(INVALID_HANDLE),
    }
}

/// The function of a handle.
pub fn function(handle: Handle) -> Result<&'static Function, CUresult> {
    match locked(&FUNCTIONS).contains(&(handle as usize)) {
        // SAFETY: functions are never freed.
        true => Ok(unsafe { &*handle.cast::<Function>() }),
        false => Err(INVALID_HANDLE),
    }
}

/// A module's handle.
pub fn handle_of(module: &'static Module) -> Handle {
    std::ptr::from_ref(module).cast::<c_void>().cast_mut()
}

/// Forgets a module.
pub fn unload(handle: Handle) -> Result<(), CUresult> {
    module(handle)?;
    locked(&MODULES).retain(|own| *own != handle as usize);
    Ok(())
}

/// Loads an image from memory.
///
/// # Safety
/// It is an image: text, a fat binary or its wrapper, or machine code.
pub unsafe fn load(image: *const c_void) -> Result<Handle, CUresult> {
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: an image has at least four bytes, and as many as its headers say.
    let bytes = unsafe {
        let start = image.cast::<u8>();
        match image.cast::<u32>().read_unaligned() {
            0x4662_43b1 => fat(start.add(8).cast::<*const u8>().read_unaligned()),
            0xba55_ed50 => fat(start),
            0x464c_457f => {
                say("the image is machine code alone; what is run here is PTX");
                return Err(NO_BINARY_FOR_GPU);
            }
            _ => CStr::from_ptr(image.cast::<c_char>()).to_bytes(),
        }
    };
    load_bytes(bytes)
}

unsafe fn fat<'i>(body: *const u8) -> &'i [u8] {
    // SAFETY: the header states its own size and that of the rest.
    unsafe {
        let header = body.add(6).cast::<u16>().read_unaligned();
        let size = body.add(8).cast::<u64>().read_unaligned();
        std::slice::from_raw_parts(body, usize::from(header) + size as usize)
    }
}

/// Loads an image.
pub fn load_bytes(bytes: &[u8]) -> Result<Handle, CUresult> {
    let texts = texts(bytes).map_err(|error| {
        say(error);
        INVALID_IMAGE
    })?;
    if texts.is_empty() {
        say("the image has no PTX");
        return Err(NO_BINARY_FOR_GPU);
    }
    let texts: Vec<String> = texts.into_iter().map(|text| text.text).collect();
    for text in &texts {
        if let Err(error) = entries(text) {
            say(error);
            return Err(INVALID_IMAGE);
        }
    }
    let module: &'static Module = Box::leak(Box::new(Module {
        texts,
        functions: Mutex::default(),
        variables: Mutex::default(),
    }));
    let handle = handle_of(module);
    locked(&MODULES).push(handle as usize);
    Ok(handle)
}

impl Module {
    /// The names of all entries.
    pub fn entries(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .texts
            .iter()
            .flat_map(|text| entries(text).unwrap_or_default())
            .collect();
        all.dedup();
        all
    }

    /// An entry's handle.
    pub fn function(&'static self, name: &str) -> Result<Handle, CUresult> {
        if let Some(known) = locked(&self.functions).get(name) {
            return Ok(std::ptr::from_ref(*known).cast::<c_void>().cast_mut());
        }
        let has = |text: &String| entries(text).is_ok_and(|names| names.iter().any(|own| own == name));
        let text = self.texts.iter().position(has).ok_or(NOT_FOUND)?;
        let imported = read(&self.texts[text], name, 0)?;
        let function: &'static Function = Box::leak(Box::new(Function {
            name: std::ffi::CString::new(name).map_err(|_| NOT_FOUND)?,
            module: self,
            layout: imported.original.layout.clone(),
            shared_bytes: imported.kernel.shared_bytes(),
            text,
            programs: Mutex::default(),
            attributes: Mutex::default(),
        }));
        locked(&self.functions).insert(name.to_owned(), function);
        let handle = std::ptr::from_ref(function).cast::<c_void>().cast_mut();
        locked(&FUNCTIONS).push(handle as usize);
        Ok(handle)
    }

    /// Address and size of a variable, which is there from now on.
    pub fn variable(&self, state: &mut State, name: &str) -> Result<(u64, u64), CUresult> {
        if let Some(&known) = locked(&self.variables).get(name) {
            return Ok(known);
        }
        for text in &self.texts {
            for entry in entries(text).unwrap_or_default() {
                let Ok(imported) = read(text, &entry, 0) else {
                    continue;
                };
                for origin in &imported.original.parameters {
                    if let Origin::Variable {
                        name: own,
                        bytes,
                        declared,
                        ..
                    } = origin
                        && own == name
                    {
                        return self.declare(state, name, bytes.as_ref(), *declared);
                    }
                }
            }
        }
        Err(NOT_FOUND)
    }

    /// Makes a variable, unless it is there.
    pub fn declare(
        &self,
        state: &mut State,
        name: &str,
        bytes: Option<&Arc<[u8]>>,
        declared: Option<u64>,
    ) -> Result<(u64, u64), CUresult> {
        if let Some(&known) = locked(&self.variables).get(name) {
            return Ok(known);
        }
        let size = declared
            .or(bytes.map(|bytes| bytes.len() as u64))
            .ok_or(NOT_FOUND)?;
        let fill = match bytes {
            Some(bytes) if bytes.len() as u64 == size => Fill::Bytes(Arc::clone(bytes)),
            _ => zeros(),
        };
        let place = (state.allocate_filled(size, fill)?, size);
        locked(&self.variables).insert(name.to_owned(), place);
        Ok(place)
    }
}

impl Function {
    /// How many work-groups of this many work-items a core holds at once, by the device's model and the registers that the simulator
    /// counts.
    pub fn resident_groups(&self, items: u32, shared_bytes: u32) -> Result<u32, CUresult> {
        let kernel = &self.loaded(shared_bytes)?.imported.kernel;
        let model = Arc::clone(&state().model);
        let target = Target::of(&model, SUB_GROUP);
        let registers = lower_for_any_launch(kernel, &target, &model, items)
            .register_estimate
            .registers;
        let mut has_barrier = false;
        kernel
            .body
            .walk(&mut |op| has_barrier |= op.kind.effects().meets_work_group());
        // The kernel was read with its dynamic shared memory.
        let footprint = target.footprint(items, registers, kernel.shared_bytes() as u32, has_barrier);
        Ok(model.occupancy(&footprint).groups_per_core)
    }

    /// The entry for launches with so much dynamic shared memory.
    pub fn loaded(&self, shared_bytes: u32) -> Result<Arc<Loaded>, CUresult> {
        if let Some(known) = locked(&self.programs).get(&shared_bytes) {
            return Ok(Arc::clone(known));
        }
        let imported = read(
            &self.module.texts[self.text],
            &self.name.to_string_lossy(),
            shared_bytes,
        )?;
        let program = state()
            .device
            .compile(&Arc::new(imported.kernel.clone()))
            .map_err(|error| {
                say(error);
                INVALID_IMAGE
            })?;
        let loaded = Arc::new(Loaded { imported, program });
        locked(&self.programs).insert(shared_bytes, Arc::clone(&loaded));
        Ok(loaded)
    }
}

fn read(text: &str, name: &str, shared_bytes: u32) -> Result<Imported, CUresult> {
    let facts = Facts {
        dynamic_shared_bytes: Some(shared_bytes),
        ..Facts::default()
    };
    import(text, "module", Some(name), &facts).map_err(|error| {
        say(error);
        INVALID_IMAGE
    })
}
