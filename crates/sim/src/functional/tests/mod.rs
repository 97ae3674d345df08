//! Tests of the engine as a whole.

mod faults;
mod masks;
mod placed;
mod prefetches;
mod products;
mod runs;

use std::sync::Arc;

use super::{BufferMemory, CompiledKernel, Groups, Options};
use crate::device::{Argument, Buffer, Counters, Element, Fill, Launch};
use crate::ir::{Kernel, Type, parse, verify};
use crate::{Error, Result};

/// A kernel and its launch.
pub(super) struct Case {
    pub kernel: Arc<Kernel>,
    pub launch: Launch,
    pub options: Options,
    pub sub_group_size: u32,
}

impl Case {
    /// A kernel in text form, to be launched in `groups` work-groups of `group` work-items.
    pub(crate) fn new(text: &str, groups: u32, group: u32) -> Case {
        let kernel = parse(text, "test.hsir").unwrap_or_else(|error| panic!("{error}"));
        verify(&kernel).unwrap_or_else(|error| panic!("{error}"));
        Case::of(kernel, groups, group)
    }

    /// A verified kernel.
    pub(crate) fn of(kernel: Kernel, groups: u32, group: u32) -> Case {
        Case {
            kernel: Arc::new(kernel),
            launch: Launch::new(groups, group, Vec::new()),
            options: Options::CHECKING,
            sub_group_size: 32,
        }
    }

    /// The next parameter gets a buffer.
    pub(crate) fn fill(mut self, element: Type, length: u64, fill: Fill) -> Case {
        let memory = BufferMemory::new(element, length, fill).expect("fits");
        let buffer = Buffer::new(element, length, Arc::new(memory));
        self.launch.arguments.push(Argument::Buffer(buffer));
        self
    }

    /// The next parameter gets a buffer of these elements.
    pub(crate) fn buffer<T: Element>(self, elements: &[T]) -> Case {
        let size = T::TYPE.bytes() as usize;
        let bytes = |element: &T| element.to_bits().to_le_bytes().into_iter().take(size);
        let bytes: Vec<u8> = elements.iter().flat_map(bytes).collect();
        self.fill(T::TYPE, elements.len() as u64, Fill::Bytes(bytes.into()))
    }

    /// The next parameter gets a buffer that is not written.
    pub(crate) fn output<T: Element>(self, length: u64) -> Case {
        self.fill(T::TYPE, length, Fill::Uninitialized)
    }

    /// The next parameter gets a scalar.
    pub(crate) fn scalar<T: Element>(mut self, number: T) -> Case {
        let argument = Argument::Scalar(T::TYPE, number.to_bits());
        self.launch.arguments.push(argument);
        self
    }

    pub(crate) fn run(&self) -> Result<Counters> {
        let compiled = CompiledKernel::new(Arc::clone(&self.kernel));
        compiled.run(&self.launch, self.sub_group_size, self.options, &Groups::All)
    }

    /// The message of the error that the run must end with.
    pub(crate) fn error(&self) -> String {
        let error: Error = self.run().expect_err("the kernel is at fault");
        assert_eq!(error.exit_status(), 1, "{error}");
        error.to_string()
    }

    /// The elements of the buffer that a parameter got.
    pub(crate) fn read<T: Element>(&self, argument: usize) -> Vec<T> {
        let Argument::Buffer(buffer) = &self.launch.arguments[argument] else {
            panic!("argument {argument} is a scalar");
        };
        let memory: Arc<BufferMemory> = buffer.implementation().expect("the simulator's");
        let mut bytes = vec![0; buffer.bytes() as usize];
        memory
            .copy_out(0, &mut bytes)
            .unwrap_or_else(|error| panic!("{error}"));
        let element = |bytes: &[u8]| {
            let mut bits = [0; 8];
            bits[..bytes.len()].copy_from_slice(bytes);
            T::from_bits(u64::from_le_bytes(bits))
        };
        bytes
            .chunks_exact(T::TYPE.bytes() as usize)
            .map(element)
            .collect()
    }
}
