//! Passing PTX to the driver's compiler, and reading the result's properties.

use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};
use sys::CUfunction_attribute_enum as Attribute;

use super::elf;
use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::memory::Buffer;
use super::ptxas;

/// Room for each of the compiler's two logs, in bytes. Longer logs are cut by the driver.
const LOG_BYTES: usize = 16 << 10;

/// The driver's compiler's output for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// Registers of one work-item.
    pub registers: u32,
    /// Private memory of one work-item that did not fit into registers, in bytes.
    pub local_bytes: u32,
    /// Shared memory of a work-group that the kernel declares, in bytes.
    pub static_shared_bytes: u32,
    /// Most work-items of a work-group.
    pub max_group: u32,
    /// From PTX text to a loaded module.
    pub load_time: Duration,
    /// The compiler's output.
    pub log: String,
}

/// A kernel in the GPU, ready to be launched. Unloaded when its last user is gone.
#[derive(Clone)]
pub struct Function(Arc<Loaded>);

struct Loaded {
    module: Arc<Image>,
    function: sys::CUfunction,
    name: String,
    compiled: Compiled,
}

/// A module in the GPU.
struct Image {
    gpu: Gpu,
    module: sys::CUmodule,
}

// SAFETY: handles of the driver, used only with the context current; see `gpu::Context`.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}
// SAFETY: as above.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Gpu {
    /// Compiles `ptx` and loads its entry `name`.
    ///
    /// May be called from several threads at once: the driver compiles in parallel. A refusal is a
    /// [`FailureKind::Compilation`] with the compiler's log.
    pub fn load(&self, ptx: &str, name: &str) -> Result<Function, Failure> {
        self.enter()?;
        let bad_text = |_| Failure::new(FailureKind::Request, "PTX holds a zero byte");
        let text = CString::new(ptx).map_err(bad_text)?;
        let entry = CString::new(name).map_err(bad_text)?;

        if let Some(code) = ptxas::assembled(self, ptx)? {
            return self.load_image(&code, name);
        }
        let start = Instant::now();
        let (module, log) = compile(&text)?;
        self.take(module, log, entry, start)
    }

    /// Loads machine code that [`Gpu::assemble`] made on a GPU of the same architecture.
    pub fn load_image(&self, code: &[u8], name: &str) -> Result<Function, Failure> {
        self.enter()?;
        let entry = CString::new(name)
            .map_err(|_| Failure::new(FailureKind::Request, "an entry's name holds a zero byte"))?;
        // The driver gets no size: it follows the file's tables, so all that they describe must lie inside.
        elf::check(code)
            .map_err(|why| Failure::new(FailureKind::Request, format!("no machine code: {why}")))?;
        let start = Instant::now();
        let mut module = std::ptr::null_mut();
        // SAFETY: the image is a whole ELF file, all of whose parts lie inside, and it lives until the call returns.
        unsafe { sys::cuModuleLoadData(&mut module, code.as_ptr().cast()) }
            .result()
            .map_err(|error| Failure::of(error, "loading machine code"))?;
        self.take(module, String::new(), entry, start)
    }

    /// Compiles PTX to machine code for this GPU's architecture, and does not load it.
    pub fn assemble(&self, ptx: &str) -> Result<Vec<u8>, Failure> {
        self.enter()?;
        if let Some(code) = ptxas::assembled(self, ptx)? {
            return Ok(code);
        }
        let text =
            CString::new(ptx).map_err(|_| Failure::new(FailureKind::Request, "PTX holds a zero byte"))?;
        assemble(&text)
    }

    /// Takes the entry of a module that was loaded.
    fn take(
        &self,
        module: sys::CUmodule,
        log: String,
        entry: CString,
        start: Instant,
    ) -> Result<Function, Failure> {
        let gpu = self.clone();
        let module = Arc::new(Image { gpu, module });
        let mut loaded = Loaded::new(module, entry)?;
        loaded.compiled.load_time = start.elapsed();
        loaded.compiled.log = log;
        Ok(Function(Arc::new(loaded)))
    }
}

impl Loaded {
    /// Takes an entry of a module. The context is current.
    fn new(module: Arc<Image>, entry: CString) -> Result<Loaded, Failure> {
        let name = entry.to_string_lossy().into_owned();
        // SAFETY: the module is loaded as long as `module` lives.
        let function = unsafe { result::module::get_function(module.module, entry) }
            .map_err(|error| Failure::of(error, &format!("looking for the entry `{name}`")))?;
        let attribute = |which| {
            // SAFETY: the function belongs to the module, which is still loaded.
            let value = unsafe { result::function::get_function_attribute(function, which) };
            let value = value.map_err(|error| Failure::of(error, "asking for a kernel's attributes"))?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let compiled = Compiled {
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_group: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            load_time: Duration::ZERO,
            log: String::new(),
        };
        Ok(Loaded {
            module,
            function,
            name,
            compiled,
        })
    }
}

/// Passes the text to the driver's compiler; gives the module and the compiler's output.
fn compile(text: &CString) -> Result<(sys::CUmodule, String), Failure> {
    use sys::CUjit_option as Jit;
    let mut info = vec![0_u8; LOG_BYTES];
    let mut errors = vec![0_u8; LOG_BYTES];
    // An option's value is a pointer, or a number in a pointer's clothes.
    let number = |value: usize| value as *mut c_void;
    let mut options = [
        Jit::CU_JIT_INFO_LOG_BUFFER,
        Jit::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        Jit::CU_JIT_ERROR_LOG_BUFFER,
        Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        Jit::CU_JIT_LOG_VERBOSE,
        Jit::CU_JIT_GENERATE_LINE_INFO,
    ];
    let mut values = [
        info.as_mut_ptr().cast(),
        number(LOG_BYTES),
        errors.as_mut_ptr().cast(),
        number(LOG_BYTES),
        number(1),
        number(1),
    ];
    let mut module = std::ptr::null_mut();
    // SAFETY: `text` ends in a zero byte; options and values correspond one to one; both logs live
    // until the call returns and have the length that is passed.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    let log = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_string()
    };
    match code.result() {
        Ok(()) => Ok((module, log(&info))),
        Err(error) => {
            Err(Failure::of(error, "compiling PTX").with_log([log(&errors), log(&info)].join("\n")))
        }
    }
}

/// Hands the text to the driver's linker, for machine code.
fn assemble(text: &CString) -> Result<Vec<u8>, Failure> {
    use sys::CUjit_option as Jit;
    let failed = |error| Failure::of(error, "compiling PTX to machine code");
    // As when a module is loaded, so that the code is the same.
    let mut options = [Jit::CU_JIT_GENERATE_LINE_INFO];
    // An option's value is a number in a pointer's clothes.
    let number = |value: usize| value as *mut c_void;
    let mut values = [number(1)];
    let mut state = std::ptr::null_mut();
    // SAFETY: one option, one value; both live until the linker is destroyed.
    unsafe { sys::cuLinkCreate_v2(1, options.as_mut_ptr(), values.as_mut_ptr(), &mut state) }
        .result()
        .map_err(failed)?;
    let bytes = text.as_bytes_with_nul();
    let (mut code, mut size) = (std::ptr::null_mut(), 0usize);
    // SAFETY: the linker was created just now; the text ends in a zero byte, which counts, and is only read.
    let linked = unsafe {
        sys::cuLinkAddData_v2(
            state,
            sys::CUjitInputType::CU_JIT_INPUT_PTX,
            bytes.as_ptr().cast_mut().cast(),
            bytes.len(),
            c"kernel".as_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
        .result()
        .and_then(|()| sys::cuLinkComplete(state, &mut code, &mut size).result())
    };
    let code = linked.map_err(failed).map(|()| {
        // SAFETY: the linker owns `size` bytes there until it is destroyed, below.
        unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec()
    });
    // SAFETY: created above, destroyed once.
    let _ = unsafe { sys::cuLinkDestroy(state) };
    code
}

impl Function {
    /// The entry's name.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// The driver's compiler's output for it.
    pub(crate) fn compiled(&self) -> &Compiled {
        &self.0.compiled
    }

    /// The GPU that it was loaded into.
    pub(crate) fn gpu(&self) -> &Gpu {
        &self.0.module.gpu
    }

    /// Copies bytes of a buffer to a variable of the module, at most the variable's size. The copy is queued, not awaited.
    pub(crate) fn fill_variable(
        &self,
        name: &str,
        from: &Buffer,
        range: (usize, usize),
    ) -> Result<(), Failure> {
        let (variable, bytes) = self.variable(name, range.1)?;
        from.copy_out(range.0, variable, bytes)
    }

    /// Copies a variable of the module to bytes of a buffer, in the same way.
    pub(crate) fn fetch_variable(
        &self,
        name: &str,
        to: &Buffer,
        range: (usize, usize),
    ) -> Result<(), Failure> {
        let (variable, bytes) = self.variable(name, range.1)?;
        to.copy_in(range.0, variable, bytes)
    }

    /// Where a variable of the module lies, and its size, or this many bytes if it has more.
    fn variable(&self, name: &str, most: usize) -> Result<(sys::CUdeviceptr, usize), Failure> {
        self.gpu().enter()?;
        let text = CString::new(name)
            .map_err(|_| Failure::new(FailureKind::Request, "a variable's name holds a zero byte"))?;
        // SAFETY: the module is loaded as long as `self` lives.
        let found = unsafe { result::module::get_global(self.0.module.module, text) };
        let (address, bytes) =
            found.map_err(|error| Failure::of(error, &format!("looking for the variable `{name}`")))?;
        Ok((address, bytes.min(most)))
    }

    pub(super) fn handle(&self) -> sys::CUfunction {
        self.0.function
    }

    /// Allows launches with this much dynamic shared memory. Needed above 48 KiB.
    pub(crate) fn allow_shared_bytes(&self, bytes: u32) -> Result<(), Failure> {
        self.gpu().enter()?;
        let most = self
            .gpu()
            .facts()
            .shared_bytes_per_group
            .saturating_sub(self.compiled().static_shared_bytes);
        if bytes > most {
            return Err(Failure::new(
                FailureKind::Resources,
                format!("`{}` needs {bytes} bytes of dynamic shared memory", self.name()),
            )
            .accepted(format!("at most {most} bytes on {}", self.gpu().facts().name)));
        }
        // SAFETY: the function is loaded; the value was checked against the device's limit.
        unsafe {
            result::function::set_function_attribute(
                self.0.function,
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                bytes as i32,
            )
        }
        .map_err(|error| Failure::of(error, "raising the limit of shared memory"))
    }

    /// How many work-groups of `group` work-items one core holds at a time, as the driver computes it.
    pub(crate) fn groups_per_core(&self, group: u32, dynamic_shared_bytes: u32) -> Result<u32, Failure> {
        self.gpu().enter()?;
        // SAFETY: the function is loaded.
        let groups = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                self.0.function,
                group as i32,
                dynamic_shared_bytes as usize,
            )
        }
        .map_err(|error| Failure::of(error, "asking for the occupancy"))?;
        Ok(u32::try_from(groups).unwrap_or(0))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: loaded once, unloaded once; functions hold the module, and launches hold the function until they are done.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
