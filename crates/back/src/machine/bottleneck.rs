//! Registers that are in use at an instruction in any order of the instructions around it.
//!
//! ```text
//! %a = load …        Whatever a compiler does first, %a to %h are all in registers when %m is
//! … %h = load …      computed: %m is made of each of them, and each is read again by an instruction
//! %m = %a + … + %h   that needs %m. Of values that are not read again, or not needed for %m, an order
//! store %a - %m …    can be found that has fewer of them at once.
//! ```
//!
//! A compiler that orders well spills where there is such an instruction, and nowhere else.

use cranelift_entity::SecondaryMap;

use super::draft::{Draft, Virtual, Virtuals};
use super::program::Control;

/// Of more instructions between two jumps it is not looked for: its cost grows with their square.
const MOST: usize = 4096;

/// Whether at some instruction more than `room` 32-bit registers are in use in any order of those between the same two jumps.
pub(crate) fn is_there(drafts: &[Draft], virtuals: &Virtuals, room: u32) -> bool {
    let mut uses: SecondaryMap<Virtual, Uses> = SecondaryMap::new();
    for draft in drafts {
        draft
            .defines
            .iter()
            .for_each(|&register| uses[register].written += 1);
        draft.uses.iter().for_each(|&register| uses[register].read += 1);
    }
    drafts
        .chunk_by(|one, next| is_plain(one) && is_plain(next))
        .filter(|stretch| (2..=MOST).contains(&stretch.len()))
        .any(|stretch| Stretch::new(stretch, &uses).wants_more(virtuals, room))
}

fn is_plain(draft: &Draft) -> bool {
    draft.control == Control::Next
}

/// How often a register is written and read.
#[derive(Clone, Copy, Default)]
struct Uses {
    written: usize,
    read: usize,
}

/// A register that is written once, in a stretch.
struct Value {
    register: Virtual,
    /// Where it is written.
    written: usize,
    /// Where it is read.
    read: Vec<usize>,
    /// It is read in another stretch, too.
    leaves: bool,
}

/// Instructions between two jumps.
struct Stretch {
    /// For each instruction a bit for each that it needs the result of, directly or not.
    needs: Vec<Vec<u64>>,
    values: Vec<Value>,
}

impl Stretch {
    fn new(drafts: &[Draft], uses: &SecondaryMap<Virtual, Uses>) -> Stretch {
        let mut needs: Vec<Vec<u64>> = Vec::with_capacity(drafts.len());
        let mut of: SecondaryMap<Virtual, Option<usize>> = SecondaryMap::new();
        let mut values: Vec<Value> = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            let mut own = vec![0; drafts.len().div_ceil(64)];
            for &register in &draft.uses {
                let Some(value) = of[register] else { continue };
                let value: &mut Value = &mut values[value];
                value.read.push(at);
                own[value.written / 64] |= 1 << (value.written % 64);
                for (word, more) in own.iter_mut().zip(&needs[value.written]) {
                    *word |= more;
                }
            }
            needs.push(own);
            let once = draft
                .defines
                .iter()
                .filter(|&&register| uses[register].written == 1);
            for &register in once {
                of[register] = Some(values.len());
                values.push(Value {
                    register,
                    written: at,
                    read: Vec::new(),
                    leaves: false,
                });
            }
        }
        for value in &mut values {
            value.leaves = uses[value.register].read > value.read.len();
        }
        Stretch { needs, values }
    }

    fn is_needed(&self, first: usize, by: usize) -> bool {
        self.needs[by][first / 64] >> (first % 64) & 1 == 1
    }

    /// Whether more registers are in use at one of the instructions.
    fn wants_more(&self, virtuals: &Virtuals, room: u32) -> bool {
        let wanted_at = |at: usize| -> u32 {
            let values = self.values.iter().filter(|value| {
                let is_read_behind = || value.read.iter().any(|&read| self.is_needed(at, read));
                self.is_needed(value.written, at) && (value.leaves || is_read_behind())
            });
            values
                .map(|value| u32::from(virtuals[value.register].width))
                .sum()
        };
        (0..self.needs.len()).any(|at| wanted_at(at) > room)
    }
}
