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
