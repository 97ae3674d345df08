//! Comparing results on the GPU, where they are: gigabytes take milliseconds there, and a second to be fetched.
//!
//! Outputs hold a *poison* pattern before the launch, so that unwritten elements are distinguished from an earlier launch's results.
//! There are two patterns, because a result may happen to equal one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::launch::{Arguments, Geometry};
use super::memory::Buffer;
use super::module::Function;

/// The bytes that outputs hold before a launch, in turn. No bit is the same in both.
pub const POISONS: [u8; 2] = [0xa5, 0x5a];

/// The time limit of a comparison, which reads at most all of the GPU's memory.
const PATIENCE: Duration = Duration::from_secs(60);

/// Work-items of a work-group of these kernels.
const GROUP: u32 = 256;

/// How two contents of an output differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// How many of its words of 4 bytes differ: 0 where it is the same.
    pub words: u64,
    /// The offset of the first byte that does.
    pub first: u64,
}

impl Difference {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.words == 0
    }
}

/// The kernels that compare.
pub(crate) struct Comparer {
    gpu: Gpu,
    compare: Function,
    sum: Function,
    result: Buffer,
}

/// The text of the kernels.
pub(crate) const TEXT: &str = include_str!("compare.ptx");

impl Comparer {
    /// Compiles them.
    ///
    /// Fails if the driver does not take them, or there is no memory for two numbers.
    pub(crate) fn new(gpu: &Gpu) -> Result<Comparer, Failure> {
        Ok(Comparer {
            compare: gpu.load(TEXT, "compare")?,
            sum: gpu.load(TEXT, "sum")?,
            result: gpu.allocate(16)?,
            gpu: gpu.clone(),
        })
    }

    /// How two buffers of a size differ. `poisons` are their contents before they were written, if that matters: bytes that
    /// hold the poison in both were not written, and count as equal.
    ///
    /// Fails if they are of different sizes, or as launches do.
    pub(crate) fn difference(
        &mut self,
        found: &Buffer,
        right: &Buffer,
        poisons: Option<(u8, u8)>,
    ) -> Result<Difference, Failure> {
        if found.bytes() != right.bytes() {
            return Err(Failure::new(
                FailureKind::Request,
                format!(
                    "buffers of {} and {} bytes were compared",
                    found.bytes(),
                    right.bytes()
                ),
            ));
        }
        let (of_found, of_right) = poisons.unwrap_or((0, 0));
        let mut arguments = Arguments::new();
        arguments.push_address(found.address());
        arguments.push_address(right.address());
        arguments.push(&(found.bytes() as u64).to_le_bytes());
        arguments.push(&[of_found; 4]);
        arguments.push(&[of_right; 4]);
        arguments.push_address(self.result.address());
        let [words, first] = self.run(Which::Compare, found.bytes(), [0, u64::MAX], &arguments)?;
        Ok(Difference { words, first })
    }

    /// A sum of a buffer's bytes: another one, but for a chance of about 2⁻⁶⁴, once some have changed.
    ///
    /// Fails as launches do.
    pub(crate) fn sum(&mut self, of: &Buffer) -> Result<u64, Failure> {
        let mut arguments = Arguments::new();
        arguments.push_address(of.address());
        arguments.push(&(of.bytes() as u64).to_le_bytes());
        arguments.push_address(self.result.address());
        let [sum, _] = self.run(Which::Sum, of.bytes(), [0, 0], &arguments)?;
        Ok(sum)
    }

    /// Launches one of them on this many bytes, with these initial counts: the counts afterwards.
    fn run(
        &mut self,
        which: Which,
        bytes: usize,
        at_first: [u64; 2],
        arguments: &Arguments,
    ) -> Result<[u64; 2], Failure> {
        if bytes == 0 {
            return Ok(at_first);
        }
        self.result.write(&at_first.map(u64::to_le_bytes).concat())?;
        let most = u64::from(self.gpu.facts().cores) * 16;
        let groups = (bytes as u64)
            .div_ceil(u64::from(GROUP) * 4)
            .clamp(1, most.max(1));
        let function = match which {
            Which::Compare => &self.compare,
            Which::Sum => &self.sum,
        };
        let geometry = Geometry {
            groups: [groups as u32, 1, 1],
            group: [GROUP, 1, 1],
            dynamic_shared_bytes: 0,
            cooperative: false,
        };
        function.launch(geometry, arguments)?;
        self.gpu.wait(PATIENCE)?;
        let mut read = [0; 16];
        self.result.read(&mut read)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| read[at + byte]));
        Ok([number(0), number(8)])
    }
}

/// One of the kernels.
#[derive(Clone, Copy)]
enum Which {
    Compare,
    Sum,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ir::Type;
    use headstart_device::Fill;
    use headstart_front::ptx::{Facts, import};
    use headstart_sim::functional::Options;
    use headstart_testing as testing;
    use headstart_tune::tune::compare::Compare;
    use headstart_tune::tune::workload::{ArgumentSpec, Workload};

    /// The `result` that an entry of the text leaves, on the functional engine. Buffers come first, then the other arguments.
    fn left(entry: &str, given: Vec<ArgumentSpec>, at_first: [u64; 2]) -> [u64; 2] {
        let imported = import(TEXT, "compare.ptx", Some(entry), &Facts::default()).expect("we can read it");
        let mut workload = Workload::new(Arc::new(imported.kernel), 3, 32);
        workload.given = given;
        workload.given.push(ArgumentSpec::Output {
            element: Type::I64,
            length: 2,
            fill: bytes(&at_first.map(u64::to_le_bytes).concat()),
            compare: Compare::Bits,
        });
        let outputs = testing::run(&workload, &workload.kernel, Options::CHECKING).expect("it runs");
        let words = outputs[0].1.chunks_exact(8);
        let words: Vec<u64> = words
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        [words[0], words[1]]
    }

    fn bytes(bytes: &[u8]) -> Fill {
        Fill::Bytes(Arc::from(bytes))
    }

    fn input(of: &[u8]) -> ArgumentSpec {
        ArgumentSpec::Input {
            element: Type::I8,
            length: of.len() as u64,
            fill: bytes(of),
        }
    }

    fn difference(found: &[u8], right: &[u8], poisons: (u8, u8)) -> Difference {
        let poison = |byte: u8| ArgumentSpec::Scalar(Type::I32, u64::from(u32::from_le_bytes([byte; 4])));
        let given = vec![
            input(found),
            input(right),
            ArgumentSpec::Scalar(Type::I64, found.len() as u64),
            poison(poisons.0),
            poison(poisons.1),
        ];
        let [words, first] = left("compare", given, [0, u64::MAX]);
        Difference { words, first }
    }

    #[test]
    fn every_byte_that_differs_is_found_and_the_first_is_told() {
        for length in [1, 2, 3, 4, 5, 7, 8, 401, 1026] {
            let right: Vec<u8> = (0..length).map(|byte| (byte * 7) as u8).collect();
            assert!(difference(&right, &right, (0, 0)).is_none());
            for at in [0, length / 2, length - 1] {
                for flipped in [1, 0x80, 0xff] {
                    let mut found = right.clone();
                    found[at] ^= flipped;
                    let expected = Difference {
                        words: 1,
                        first: at as u64,
                    };
                    assert_eq!(difference(&found, &right, (0, 0)), expected, "{length} {at}");
                }
            }
        }
        let mut found = vec![1; 1000];
        for at in [10, 11, 500, 999] {
            found[at] = 2;
        }
        assert_eq!(
            difference(&found, &[1; 1000], (9, 9)),
            Difference { words: 3, first: 10 }
        );
    }

    #[test]
    fn what_nobody_wrote_is_the_same_and_what_one_wrote_is_not() {
        let [one, other] = POISONS;
        // Byte 1 was written by neither, byte 2 by the first alone, byte 3 by the second alone.
        let found = [7, one, 9, one];
        let right = [7, other, other, 9];
        assert_eq!(
            difference(&found, &right, (one, other)),
            Difference { words: 1, first: 2 }
        );
        assert!(difference(&found[..2], &right[..2], (one, other)).is_none());
        // One that writes the other's poison has written.
        assert_eq!(difference(&[other], &[other], (one, other)).words, 0);
        assert_eq!(difference(&[other], &[one], (one, other)).words, 1);
        assert_eq!(difference(&[one], &[other], (one, one)).words, 1);
    }

    #[test]
    fn other_bytes_have_another_sum() {
        let sum = |of: &[u8]| {
            let given = vec![input(of), ArgumentSpec::Scalar(Type::I64, of.len() as u64)];
            left("sum", given, [0, 0])[0]
        };
        let all: Vec<u8> = (0..=255).cycle().take(1003).collect();
        let right = sum(&all);
        assert_eq!(right, sum(&all));
        for at in [0, 3, 500, 1002] {
            let mut changed = all.clone();
            changed[at] ^= 0x10;
            assert_ne!(sum(&changed), right, "{at}");
        }
        let mut swapped = all.clone();
        swapped.swap(4, 400);
        assert_ne!(sum(&swapped), right);
    }
}
