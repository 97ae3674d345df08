//! The comparison of a kernel on the simulator, under every check, with its ordinary function.

/// Runs `kernel(&input, &mut output, scalars…)` on the engine and as an ordinary function, and compares the
/// outputs' bits. Gives the output.
macro_rules! agree {
    ($kernel:ident $(::<$($generic:tt),+>)?, $geometry:expr, $input:expr, $output:expr $(, $scalar:expr)*) => {{
        use headstart::device::{Device, Element, TypedBuffer};
        let (geometry, input, output) = ($geometry, $input, $output);
        let mut expected = output.clone();
        $kernel::reference $(::<$($generic),+>)? (geometry, &input, &mut expected $(, $scalar)*)
            .expect("the ordinary function runs");
        let device = headstart::device::sim::Simulator::untimed();
        let queue = device.queue().expect("a queue");
        let compiled = $kernel::compile $(::<$($generic),+>)? (&device).expect("the kernel is right");
        let source = TypedBuffer::from_slice(&device, &input).expect("a buffer");
        let mut target = TypedBuffer::from_slice(&device, &output).expect("a buffer");
        let arguments = $kernel::arguments(&source, &mut target $(, $scalar)*);
        let text = headstart::ir::print(compiled.program().kernel());
        if let Err(error) = compiled.launch(&*queue, geometry, arguments).wait() {
            panic!("{error}\n{text}");
        }
        let found = target.read(&*queue).expect("the output is read");
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let (found_bits, expected_bits) = (Element::to_bits(*found), Element::to_bits(*expected));
            assert_eq!(
                found_bits, expected_bits,
                "element {index}: the device has {found:?}, Rust has {expected:?}\n{text}"
            );
        }
        found
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

/// The devices that tests run on: the simulator under every check, and the first GPU if there is one.
pub fn devices() -> Vec<Box<dyn headstart::device::Device>> {
    let mut devices: Vec<Box<dyn headstart::device::Device>> =
        vec![Box::new(headstart::device::sim::Simulator::untimed())];
    match headstart::device::cuda::device::CudaDevice::open(0) {
        Ok(gpu) => devices.push(Box::new(gpu)),
        Err(error) => eprintln!("no GPU: {error}"),
    }
    devices
}

/// The first OpenCL device, if there is one.
pub fn opencl() -> Option<headstart::device::opencl::device::OpenClDevice> {
    let opened = headstart::device::opencl::device::OpenClDevice::open(0);
    opened
        .inspect_err(|error| eprintln!("no OpenCL device: {error}"))
        .ok()
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
    let ptxas = headstart::testing::ptxas::Ptxas::find();
    let mut text = String::new();
    for target in [ptx::Target::Sm80, ptx::Target::Sm90] {
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
