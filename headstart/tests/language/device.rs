//! The functional engine as a device, and the comparison of a kernel on it with its ordinary function.

use std::sync::Arc;

use headstart::Result;
use headstart::device::sim::functional::{BufferMemory, CompiledKernel, Groups, Options};
use headstart::device::{
    Buffer, Command, Description, Device, Fill, Launch, Outcome, Program, Queue, WorkerQueue,
};
use headstart::ir::{Kernel, Type, verify};

/// Runs every check that the engine has.
pub struct Checked(Description);

impl Checked {
    pub fn new() -> Checked {
        Checked(Description {
            name: "checked".to_owned(),
            title: "the functional engine".to_owned(),
            cores: 1,
            max_group_size: 1024,
            max_group_dimensions: [1024; 3],
            sub_group_sizes: vec![8, 16, 32],
            default_sub_group_size: 32,
            max_shared_bytes: 1 << 16,
            memory_bytes: 1 << 32,
        })
    }
}

impl Device for Checked {
    fn description(&self) -> &Description {
        &self.0
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        Ok(Buffer::new(
            element,
            length,
            Arc::new(BufferMemory::new(element, length, fill)?),
        ))
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        verify(kernel)?;
        Ok(Program::new(
            Arc::clone(kernel),
            CompiledKernel::new(Arc::clone(kernel)),
        ))
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let description = self.0.clone();
        Ok(Box::new(WorkerQueue::new(move |command| {
            run(command, &description)
        })?))
    }
}

fn run(command: Command, description: &Description) -> Result<Outcome> {
    match command {
        Command::Launch(program, launch) => {
            launch.check(program.kernel(), description)?;
            let size = Launch::sub_group_size(&launch, program.kernel(), description);
            let compiled = program.implementation::<CompiledKernel>()?;
            let counters = compiled.run(&launch, size, Options::CHECKING, &Groups::All)?;
            Ok(Outcome {
                counters,
                ..Outcome::default()
            })
        }
        Command::Read {
            buffer,
            offset,
            length,
        } => {
            let mut bytes = vec![0; length as usize];
            buffer
                .implementation::<BufferMemory>()?
                .copy_out(offset, &mut bytes)?;
            Ok(Outcome {
                bytes,
                ..Outcome::default()
            })
        }
        Command::Write {
            buffer,
            offset,
            bytes,
        } => {
            buffer.implementation::<BufferMemory>()?.copy_in(offset, &bytes);
            Ok(Outcome::default())
        }
    }
}

/// Runs `kernel(&input, &mut output, scalars…)` on the engine and as an ordinary function, and compares the
/// outputs' bits. Gives the output.
macro_rules! agree {
    ($kernel:ident $(::<$($generic:tt),+>)?, $geometry:expr, $input:expr, $output:expr $(, $scalar:expr)*) => {{
        use headstart::device::{Device, Element, TypedBuffer};
        let (geometry, input, output) = ($geometry, $input, $output);
        let mut expected = output.clone();
        $kernel::reference $(::<$($generic),+>)? (geometry, &input, &mut expected $(, $scalar)*)
            .expect("the ordinary function runs");
        let device = crate::device::Checked::new();
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
    (0..count as u64)
        .map(|index| (headstart_noise(index) >> 32) as u32)
        .collect()
}

fn headstart_noise(index: u64) -> u64 {
    let mut z = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
