//! The comparison of a kernel on every device there is, the simulator first and under every check, with its ordinary
//! function; and which devices there are.

use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;

use headstart::device::Device;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::sim::Simulator;

/// Runs `kernel(&input, &mut output, scalars…)` on every device and as an ordinary function, and compares the
/// outputs' bits. Gives the output.
macro_rules! agree {
    ($kernel:ident $(::<$($generic:tt),+>)?, $geometry:expr, $input:expr, $output:expr $(, $scalar:expr)*) => {{
        use headstart::device::{Element, TypedBuffer};
        let (geometry, input, output) = ($geometry, $input, $output);
        let mut expected = output.clone();
        $kernel::reference $(::<$($generic),+>)? (geometry, &input, &mut expected $(, $scalar)*)
            .expect("the ordinary function runs");
        for device in $crate::agree::devices() {
            let name = device.description().name.clone();
            let queue = device.queue().expect("a queue");
            let compiled = $kernel::compile $(::<$($generic),+>)? (&*device);
            let Some(compiled) = $crate::agree::taken(&*device, compiled) else {
                continue;
            };
            let source = TypedBuffer::from_slice(&*device, &input).expect("a buffer");
            let mut target = TypedBuffer::from_slice(&*device, &output).expect("a buffer");
            let arguments = $kernel::arguments(&source, &mut target $(, $scalar)*);
            let text = headstart::ir::print(compiled.program().kernel());
            let ran = compiled.launch(&*queue, geometry, arguments).wait();
            let ran = ran.inspect_err(|_| eprintln!("{geometry:?}\n{text}"));
            if $crate::agree::taken(&*device, ran).is_none() {
                continue;
            }
            let found = target.read(&*queue).expect("the output is read");
            for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let (found_bits, expected_bits) = (Element::to_bits(*found), Element::to_bits(*expected));
                assert_eq!(
                    found_bits, expected_bits,
                    "element {index}: {name} has {found:?}, Rust has {expected:?}\n{text}"
                );
            }
        }
        expected
    }};
}
pub(crate) use agree;

/// Numbers that look random: the same in every run.
pub fn noise(count: usize) -> Vec<u32> {
    let bits = |index| headstart::device::Pattern::Bits { seed: 0 }.bits(headstart::ir::Type::I64, index);
    (0..count as u64)
        .map(|index| (bits(index) >> 32) as u32)
        .collect()
}

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The simulator under every check.
    Simulator,
    /// The first NVIDIA GPU.
    Cuda,
    /// The first OpenCL device.
    OpenCl,
}

thread_local! {
    /// The only family that tests run on, on this thread; all of them if there is none.
    static ONLY: Cell<Option<Family>> = const { Cell::new(None) };
    /// How often that family was used, and what it refused.
    static USED: Cell<usize> = const { Cell::new(0) };
    static REFUSED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What came of a test on one family of devices.
pub struct Ran {
    /// Whether it passed.
    pub passed: bool,
    /// Whether it used the family at all.
    pub used: bool,
    /// Why kernels were refused.
    pub refused: Vec<String>,
}

/// Runs a test on one family of devices alone.
pub fn only(family: Family, test: fn()) -> Ran {
    ONLY.set(Some(family));
    USED.set(0);
    REFUSED.take();
    let passed = catch_unwind(test).is_ok();
    ONLY.set(None);
    Ran {
        passed,
        used: USED.get() > 0,
        refused: REFUSED.take(),
    }
}

/// The devices that tests run on: the simulator under every check, the first GPU if there is one, and the first OpenCL
/// device if there is one.
pub fn devices() -> Vec<Box<dyn Device>> {
    devices_but(None)
}

/// The same without those of a family.
pub fn devices_but(excluded: Option<Family>) -> Vec<Box<dyn Device>> {
    let wanted = |family| ONLY.get().is_none_or(|only| only == family) && excluded != Some(family);
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    if wanted(Family::Simulator) {
        devices.push(Box::new(Simulator::untimed()));
    }
    if wanted(Family::Cuda) {
        match CudaDevice::open(0) {
            Ok(gpu) => devices.push(Box::new(gpu)),
            Err(error) => eprintln!("no GPU: {error}"),
        }
    }
    if wanted(Family::OpenCl) {
        match crate::kept::opencl() {
            Ok(device) => devices.push(device),
            Err(error) => headstart_testing::tools::skip("opencl", &error.to_string()),
        }
    }
    USED.set(USED.get() + devices.len());
    devices
}

/// What was compiled or run, unless it is one of the kernels that OpenCL devices are known to refuse, or a sub-group size
/// that the device has not.
pub fn taken<T>(device: &dyn Device, compiled: headstart::Result<T>) -> Option<T> {
    let name = &device.description().name;
    match compiled {
        Ok(compiled) => Some(compiled),
        Err(error)
            if error.exit_status() == 3
                && (name.starts_with("opencl") || error.what().contains(" sub-groups of ")) =>
        {
            eprintln!("{name} refuses: {error}");
            REFUSED.with_borrow_mut(|refused| refused.push(error.what().to_owned()));
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// The kernel becomes PTX, which NVIDIA's assembler takes if it is there; its text form gives the same kernel;
/// and it is lowered for both families of devices.
pub fn lowers(kernel: headstart::Result<headstart::ir::Kernel>) -> String {
    use headstart::back::{machine, ptx};
    let kernel = kernel.expect("the kernel is right");
    let printed = headstart::ir::print(&kernel);
    let again =
        headstart::ir::parse(&printed, "printed").unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(
        headstart::ir::first_difference(&kernel, &again),
        None,
        "{printed}"
    );
    for model in ["h200", "pvc-1550"] {
        let model = headstart::device::model::built_in(model, &[]).expect("the model is there");
        let target = machine::Target::of(&model, 32);
        assert!(machine::lower(&kernel, &target).instruction_count() > 0);
    }
    let ptxas = headstart_testing::ptxas::Ptxas::find();
    let mut text = String::new();
    for target in [ptx::PtxTarget::Sm80, ptx::PtxTarget::Sm90] {
        let emitted = ptx::emit(&kernel, &ptx::Options::new(target)).expect("PTX can say it");
        if let Some(ptxas) = &ptxas
            && let Err(said) = ptxas.assemble(&emitted, target)
        {
            panic!("{said}\n{}", emitted.text);
        }
        text = emitted.text;
    }
    text
}
