//! Launches of a program that differ only in scalars and data: the one that a plan is derived with, and the others that
//! it must be right for, too.

use std::sync::Arc;

use super::interpret::interpret;
use super::tree::{Content, Program, Role, Scalar};
use crate::Random;
use crate::device::sim::functional::BufferMemory;
use crate::device::{Argument, Buffer, Fill};
use crate::error::Result;

/// Launches tried to find enough that mean something.
const TRIED: u64 = 40;

/// What a program is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The scalars' bits.
    pub scalars: Vec<u64>,
    /// What each array holds at first.
    pub contents: Vec<Vec<u64>>,
    /// Arrays that are the same memory as an earlier one.
    pub aliases: Vec<Option<usize>>,
}

/// A launch, and what its arrays hold afterwards.
#[derive(Clone, Debug)]
pub struct LaunchOutcome {
    /// What the program is given.
    pub launch: Launch,
    /// The interpreter's result for each array.
    pub results: Vec<Vec<u64>>,
}

impl Launch {
    /// The array whose memory an array is.
    pub fn buffer(&self, array: usize) -> usize {
        self.aliases[array].unwrap_or(array)
    }

    /// The launch on the functional engine, with fresh memory: the memory of each array.
    ///
    /// # Errors
    /// A buffer is too large.
    pub fn bind(&self, program: &Program) -> Result<(crate::device::Launch, Vec<Arc<BufferMemory>>)> {
        let mut memories: Vec<Arc<BufferMemory>> = Vec::new();
        let mut buffers: Vec<Buffer> = Vec::new();
        for (number, array) in program.arrays.iter().enumerate() {
            let shared = self.aliases[number];
            if let Some(earlier) = shared {
                memories.push(Arc::clone(&memories[earlier]));
                buffers.push(buffers[earlier].clone());
                continue;
            }
            let bytes = bytes_of(array.element, &self.contents[number]);
            let element = array.element.ir();
            let memory = Arc::new(BufferMemory::new(
                element,
                array.length,
                Fill::Bytes(bytes.into()),
            )?);
            buffers.push(Buffer::new(element, array.length, Arc::clone(&memory) as _));
            memories.push(memory);
        }
        let scalars = program.scalars.iter().zip(&self.scalars);
        let scalars = scalars.map(|(scalar, &bits)| Argument::Scalar(scalar.ty.ir(), bits));
        let arguments = buffers.into_iter().map(Argument::Buffer).chain(scalars);
        let launch = crate::device::Launch::new(program.groups, program.group, arguments.collect());
        Ok((launch, memories))
    }
}

/// The elements' bytes, little-endian.
pub(crate) fn bytes_of(element: Scalar, elements: &[u64]) -> Vec<u8> {
    let size = element.ir().bytes() as usize;
    let bytes = elements.iter().map(|bits| bits.to_le_bytes());
    bytes.flat_map(|bytes| bytes.into_iter().take(size)).collect()
}

/// Up to this many launches that mean something, and how many of those that were tried do not. `aliased` says which array
/// may be the same memory as which.
pub fn launches(
    random: &mut Random,
    program: &Program,
    aliased: Option<(usize, usize)>,
    wanted: usize,
) -> (Vec<LaunchOutcome>, u64) {
    let first = Launch {
        scalars: program
            .scalars
            .iter()
            .map(|scalar| usual(random, scalar.role, scalar.ty))
            .collect(),
        contents: program
            .arrays
            .iter()
            .map(|array| contents(random, array.content, array.element, array.length))
            .collect(),
        aliases: vec![None; program.arrays.len()],
    };
    let mut found: Vec<LaunchOutcome> = Vec::new();
    let mut dropped = 0;
    let mut launch = first.clone();
    for number in 0..TRIED {
        if found.len() == wanted {
            break;
        }
        if number > 0 {
            let base = match found.is_empty() {
                true => &first,
                false => &random.choose(&found).launch,
            };
            launch = varied(random, program, base, aliased);
            if random.chance(20) {
                turn(random, program, &mut launch);
            }
        }
        match interpret(program, &launch) {
            Ok(results) => found.push(LaunchOutcome {
                launch: launch.clone(),
                results,
            }),
            Err(_) => dropped += 1,
        }
    }
    (found, dropped)
}

/// The launch with other scalars, or other data, or both.
fn varied(random: &mut Random, program: &Program, base: &Launch, aliased: Option<(usize, usize)>) -> Launch {
    let mut launch = base.clone();
    if random.chance(75) {
        let all = random.chance(35);
        let changed = random.below(program.scalars.len() as u64) as usize;
        for (number, scalar) in program.scalars.iter().enumerate() {
            if all && random.chance(60) || number == changed {
                launch.scalars[number] = any(random, scalar.role, scalar.ty);
            }
        }
    }
    if random.chance(60) {
        for (number, array) in program.arrays.iter().enumerate() {
            if random.chance(50) {
                launch.contents[number] = contents(random, array.content, array.element, array.length);
            }
        }
    }
    if let Some((array, of)) = aliased {
        let same = random.chance(60);
        launch.aliases[array] = same.then_some(of);
        if same {
            launch.contents[array] = launch.contents[of].clone();
        }
    }
    launch
}

/// No iterations, or the last ones before a type's end: bounds, starts and steps go with each other.
fn turn(random: &mut Random, program: &Program, launch: &mut Launch) {
    let ends = random.chance(35);
    for (number, scalar) in program.scalars.iter().enumerate() {
        let mask = scalar.ty.ir().mask();
        let greatest = if scalar.ty.is_signed() { mask >> 1 } else { mask };
        launch.scalars[number] = match (scalar.role, ends) {
            (Role::Bound, false) => scalar.ty.bits_of(random.below(4) as i64 - 2),
            (Role::Step, false) => scalar.ty.bits_of(-(random.between(1, 4) as i64)),
            (Role::Bound, true) => greatest - random.below(3),
            (Role::Start, true) => greatest - random.between(2, 9),
            (Role::Step, true) => random.between(1, 3),
            _ => continue,
        };
    }
}

/// A value with which loops run some iterations.
fn usual(random: &mut Random, role: Role, ty: Scalar) -> u64 {
    let number = match role {
        Role::Bound => random.between(6, 24) as i64,
        Role::Start => random.below(4) as i64,
        Role::Step => *random.choose(&[1, 1, 1, 2, 3]),
        Role::Small => random.between(2, 9) as i64,
        Role::Any => random.below(40) as i64,
    };
    ty.bits_of(number)
}

/// A value, however odd.
fn any(random: &mut Random, role: Role, ty: Scalar) -> u64 {
    let extreme = |random: &mut Random| {
        let mask = ty.ir().mask();
        let at = *random.choose(&[0, mask, mask >> 1, (mask >> 1) + 1]);
        let by = random.below(5);
        match random.chance(50) {
            true => at.wrapping_add(by) & mask,
            false => at.wrapping_sub(by) & mask,
        }
    };
    let number = match role {
        Role::Bound => match random.below(10) {
            0..3 => random.below(4) as i64,
            3 => -(random.below(4) as i64),
            4..8 => random.below(28) as i64,
            8 => *random.choose(&[31, 32, 33, 63, 64]),
            _ => return extreme(random),
        },
        Role::Start => match random.below(8) {
            0 => return extreme(random),
            1 => -(random.below(4) as i64),
            _ => random.below(9) as i64,
        },
        Role::Step => *random.choose(&[1, 1, 2, 3, 4, 7, -1, -1, -2, -5]),
        Role::Small => random.between(1, 40) as i64,
        Role::Any => match random.chance(30) {
            true => return extreme(random),
            false => random.below(70) as i64 - 4,
        },
    };
    ty.bits_of(number)
}

/// An unusual float with this many bits of exponent and mantissa: NaN, infinite, zero, subnormal, near an integer type's ends,
/// with and without a sign.
pub(crate) fn unusual_float(random: &mut Random, exponent: u32, mantissa: u32) -> u64 {
    let ones = |bits: u32| (1u64 << bits) - 1;
    let bias = ones(exponent) >> 1;
    let any = random.bits() & ones(mantissa);
    let small = random.below(4);
    let magnitude = match random.below(16) {
        0 => 0,
        1 => ones(exponent) << mantissa,
        // Quiet and signalling NaNs, with payloads.
        2 => ones(exponent) << mantissa | 1 << (mantissa - 1) | any,
        3 => ones(exponent) << mantissa | any >> 1 | 1,
        // Subnormal numbers, the least normal ones, the largest.
        4 => any,
        5 => small,
        6 => (1 << mantissa) + small - 1,
        7 => (ones(exponent) << mantissa) - 1 - small,
        // Near powers of two, where integers end; halves between integers.
        8..11 => {
            let power = (bias + random.below(67)).min(ones(exponent) - 1);
            ((power << mantissa) + small).wrapping_sub(2)
        }
        11 | 12 => {
            let power = (bias + random.below(u64::from(mantissa))).min(ones(exponent) - 1);
            let kept = (power - bias) as u32 + 1;
            power << mantissa | any >> (mantissa - kept.min(mantissa)) << (mantissa - kept.min(mantissa))
        }
        _ => (bias - 4 + random.below(12)) << mantissa | any,
    };
    magnitude | (random.below(2) << (exponent + mantissa))
}

/// 64 bits of unusual numbers: one of a double's width, two of a float's, four of a half's, or integers.
fn special(random: &mut Random) -> u64 {
    let half = |random: &mut Random| unusual_float(random, 5, 10);
    let single = |random: &mut Random| unusual_float(random, 8, 23);
    let extreme = |random: &mut Random| {
        let width = *random.choose(&[8, 16, 32, 64]);
        let at = *random.choose(&[0, u64::MAX, 1 << (width - 1), (1u64 << (width - 1)) - 1]);
        at.wrapping_add(random.below(5)).wrapping_sub(2)
    };
    match random.below(8) {
        0..3 => unusual_float(random, 11, 52),
        3..5 => single(random) | single(random) << 32,
        5 => (0..4).fold(0, |bits, _| bits << 16 | half(random)),
        6 => extreme(random),
        _ => random.bits(),
    }
}

fn contents(random: &mut Random, content: Content, element: Scalar, length: u64) -> Vec<u64> {
    let mask = element.ir().mask();
    let way = random.below(10);
    let constant = random.bits();
    let mut element_at = |index: u64| match (content, way) {
        (Content::Below(below), 0) => (below - 1) & mask,
        (Content::Below(_), 1) => 0,
        (Content::Below(below), 2) => constant % below,
        (Content::Below(below), 3) => index % below,
        (Content::Below(below), _) => random.below(below),
        (Content::Flags, 0 | 1) => 0,
        (Content::Flags, 2 | 3) => 1,
        // Set up to some element, or from there on: loops that end at the first that is clear, or run up to it.
        (Content::Flags, 4) => u64::from(index < constant % 24),
        (Content::Flags, 5) => u64::from(index >= constant % 24),
        (Content::Flags, 6) => u64::from(random.chance(85)),
        (Content::Flags, _) => random.below(3),
        (Content::Zeros, _) => 0,
        (Content::Special, _) => special(random),
        (Content::Floats, _) => element.bits_of(random.below(17) as i64 - 8),
        (Content::Any, 0) => 0,
        (Content::Any, 1) => mask,
        (Content::Any, 2 | 3) => element.bits_of(random.below(9) as i64 - 2),
        (Content::Any, _) => random.bits() & mask,
    };
    (0..length).map(&mut element_at).collect()
}
