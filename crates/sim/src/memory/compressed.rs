//! Compression of device memory: adjacent lines that are alike enough are kept as one, and lines of a surface that was cleared as none.
//!
//! Compressed data take less of the memory's bus and fewer of its banks; reading their metadata takes time. Memory is
//! compressed if an allocation requested it and the model has `dram.compression`. The timing knows no data: it is given the
//! compressible fraction of each buffer's pairs of lines, and selects pairs by a hash.

use std::ops::Range;

use super::port::spread;

/// How the lines of a buffer can be kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compressible {
    /// The buffer.
    pub addresses: Range<u64>,
    /// The part of its pairs of lines whose words are all one value.
    pub clear: f64,
    /// The part whose words differ little.
    pub alike: f64,
}

/// How a line is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// As it is.
    Whole,
    /// With its neighbours in the place of one.
    Compressed,
    /// Not at all: its clear value is stored elsewhere.
    Clear,
}

/// The facts about a launch's buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Compression {
    buffers: Vec<Compressible>,
    /// Adjacent lines that are kept as one.
    pub(super) together: u64,
}

impl Compression {
    /// This many adjacent lines are kept as one; with fewer than two, none are.
    pub(super) fn new(together: u32, buffers: &[Compressible]) -> Compression {
        Compression {
            buffers: if together > 1 {
                buffers.to_vec()
            } else {
                Vec::new()
            },
            together: u64::from(together.max(1)),
        }
    }

    /// How the line at an address is kept.
    pub(super) fn of(&self, address: u64, line_bytes: u64) -> Kept {
        let Some(buffer) = self
            .buffers
            .iter()
            .find(|buffer| buffer.addresses.contains(&address))
        else {
            return Kept::Whole;
        };
        let group = address / (line_bytes * self.together);
        let drawn = (spread(group ^ 0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64;
        match drawn {
            drawn if drawn < buffer.clear => Kept::Clear,
            drawn if drawn < buffer.clear + buffer.alike => Kept::Compressed,
            _ => Kept::Whole,
        }
    }
}

/// How the groups of adjacent lines of some bytes can be kept: the parts that are clear, and alike. Words are alike whose upper halves are
/// the same (assumed; the hardware's rule is not public).
pub(crate) fn parts(groups: impl Iterator<Item = Vec<u32>>) -> (f64, f64) {
    let (mut all, mut clear, mut alike) = (0u32, 0u32, 0u32);
    for words in groups {
        let Some(&first) = words.first() else { continue };
        all += 1;
        if words.iter().all(|&word| word == first) {
            clear += 1;
        } else if words.iter().all(|&word| word >> 16 == first >> 16) {
            alike += 1;
        }
    }
    let part = |count: u32| f64::from(count) / f64::from(all.max(1));
    (part(clear), part(alike))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_little_are_alike() {
        let groups = [
            vec![7; 32],
            (0..32).collect(),
            (0..32).map(|word| word << 20).collect(),
        ];
        assert_eq!(parts(groups.into_iter()), (1.0 / 3.0, 1.0 / 3.0));
        assert_eq!(parts(std::iter::empty()), (0.0, 0.0));
    }

    #[test]
    fn neighbours_are_kept_alike() {
        let buffer = Compressible {
            addresses: 0..1 << 20,
            clear: 0.25,
            alike: 0.5,
        };
        let compression = Compression::new(2, std::slice::from_ref(&buffer));
        let kept: Vec<Kept> = (0..1 << 14).map(|line| compression.of(line * 64, 64)).collect();
        assert!(kept.chunks(2).all(|pair| pair[0] == pair[1]));
        let part =
            |wanted: Kept| kept.iter().filter(|&&kept| kept == wanted).count() as f64 / kept.len() as f64;
        assert!((part(Kept::Clear) - 0.25).abs() < 0.02 && (part(Kept::Compressed) - 0.5).abs() < 0.02);
        assert_eq!(compression.of(1 << 21, 64), Kept::Whole);
        assert_eq!(Compression::new(1, &[buffer]).of(0, 64), Kept::Whole);
    }
}
