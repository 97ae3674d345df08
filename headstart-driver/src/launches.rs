//! Launches of every kind, and their treatment in each mode of the library.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::{
    self, ATTRIBUTE_COOPERATIVE, CUresult, Handle, KernelNode, LaunchAttribute, LaunchConfig, SUCCESS,
};
use crate::functions::{self, Function};
use crate::record::Counts;
use crate::settings::{self, Mode};
use crate::{events, record, replace, snapshot};

/// A launch that the program makes.
pub struct Launch {
    /// The function or kernel.
    pub handle: Handle,
    /// Work-groups.
    pub grid: [c_uint; 3],
    /// Work-items of a work-group.
    pub block: [c_uint; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: c_uint,
    /// Where it is queued.
    pub stream: Handle,
    /// Whether the null stream is this thread's own.
    pub per_thread: bool,
    /// Whether all work-groups are resident at once.
    pub is_cooperative: bool,
    /// Whether it is a node of a graph, whose attributes are not here.
    pub is_node: bool,
    /// Pointers to the parameters; null if `extra` has them.
    pub parameters: *mut *mut c_void,
    /// The other form of parameters.
    pub extra: *mut *mut c_void,
    /// Attributes of `cuLaunchKernelEx`.
    pub attributes: *const LaunchAttribute,
    /// How many.
    pub attribute_count: c_uint,
}

impl Launch {
    /// The fields of a configuration.
    ///
    /// # Safety
    /// It is one that the driver takes.
    pub unsafe fn of(
        config: &LaunchConfig,
        handle: Handle,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Launch {
        let mut launch = Launch {
            handle,
            grid: config.grid,
            block: config.block,
            shared_bytes: config.shared_bytes,
            stream: config.stream,
            per_thread: false,
            is_cooperative: false,
            is_node: false,
            parameters,
            extra,
            attributes: config.attributes,
            attribute_count: config.attribute_count,
        };
        // SAFETY: see above.
        launch.is_cooperative = unsafe {
            launch
                .attributes()
                .iter()
                .any(|own| own.id == ATTRIBUTE_COOPERATIVE && own.value[0] as u32 != 0)
        };
        launch
    }

    /// The attributes.
    ///
    /// # Safety
    /// The launch is one that the driver takes.
    pub unsafe fn attributes(&self) -> &[LaunchAttribute] {
        match self.attributes.is_null() {
            true => &[],
            // SAFETY: there are this many.
            false => unsafe { std::slice::from_raw_parts(self.attributes, self.attribute_count as usize) },
        }
    }

    /// The parameters as one piece, if they are passed so.
    ///
    /// # Safety
    /// The launch is one that the driver takes.
    pub unsafe fn packed(&self) -> Option<&[u8]> {
        // SAFETY: the caller's.
        unsafe { abi::packed(self.parameters, self.extra) }
    }
}

/// Makes a launch; `run` hands it to the driver, with this kernel.
///
/// # Safety
/// It is one that the driver takes.
#[inline]
pub unsafe fn launch(launch: &Launch, run: impl Fn(Handle) -> CUresult) -> CUresult {
    let mode = settings::mode();
    if mode == Mode::Off {
        return run(launch.handle);
    }
    let Some(known) = functions::of(launch.handle) else {
        return run(launch.handle);
    };
    let function = known.function;
    let number = function.launches.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's.
    unsafe {
        match mode {
            Mode::List => listed(launch, function, run),
            Mode::Capture => match snapshot::chosen(function, number, launch) {
                Some(chosen) => snapshot::take(chosen, (function, number), launch, run),
                None => run(launch.handle),
            },
            Mode::Exec => replace::launched(launch, known, run),
            Mode::Off => run(launch.handle),
        }
    }
}

unsafe fn listed(
    launch: &Launch,
    function: &'static Function,
    run: impl FnOnce(Handle) -> CUresult,
) -> CUresult {
    if events::is_captured(launch.stream, launch.per_thread) {
        function.counts.in_graphs.fetch_add(1, Ordering::Relaxed);
        return run(launch.handle);
    }
    // SAFETY: the caller's.
    let (_, counts) = unsafe { function.kinds.of(function, launch) };
    let number = counts.launches.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the program's stream, which is not captured.
    let running = unsafe { events::begin(launch.stream, launch.per_thread) };
    let result = run(launch.handle);
    if number == 0 {
        set_geometry(counts, launch.grid, launch.block, launch.shared_bytes);
    }
    let Some(running) = running.filter(|_| result == SUCCESS) else {
        return result;
    };
    let (grid, block, shared_bytes) = (launch.grid, launch.block, launch.shared_bytes);
    let told = move |ns: u64| {
        counts.timed.fetch_add(1, Ordering::Relaxed);
        counts.total_ns.fetch_add(ns, Ordering::Relaxed);
        let class = &counts.classes[record::class_of(ns)];
        if class.total_ns.fetch_add(ns.max(1), Ordering::Relaxed) == 0 {
            class.launch.store(number, Ordering::Relaxed);
        }
        if counts.longest_ns.fetch_max(ns, Ordering::Relaxed) < ns {
            counts.longest.store(number, Ordering::Relaxed);
            set_geometry(counts, grid, block, shared_bytes);
        }
    };
    // SAFETY: as above.
    unsafe { events::end(running, launch.stream, launch.per_thread, Box::new(told)) };
    result
}

fn set_geometry(counts: &Counts, grid: [u32; 3], block: [u32; 3], shared_bytes: u32) {
    let set = |to: &[AtomicU32; 3], from: [u32; 3]| {
        for (to, from) in to.iter().zip(from) {
            to.store(from, Ordering::Relaxed);
        }
    };
    set(&counts.grid, grid);
    set(&counts.block, block);
    counts.shared_bytes.store(shared_bytes, Ordering::Relaxed);
}

/// A node of a graph was made or changed: counted, since how often it will run is not known.
///
/// # Safety
/// It is one that the driver takes.
pub unsafe fn node(parameters: *const KernelNode) {
    // With better kernels launches of graphs are counted, not their nodes.
    if matches!(settings::mode(), Mode::Off | Mode::Exec) || parameters.is_null() {
        return;
    }
    // SAFETY: all versions begin alike.
    let node = unsafe { parameters.read_unaligned() };
    if let Some(known) = functions::of(node.function) {
        let function = known.function;
        function.counts.in_graphs.fetch_add(1, Ordering::Relaxed);
        if function.counts.block[0].load(Ordering::Relaxed) == 0 {
            set_geometry(function.counts, node.grid, node.block, node.shared_bytes);
        }
    }
}
