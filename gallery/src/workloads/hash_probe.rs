//! `hash-probe`: keys looked up in a hash table with linear probing, as joins and groupings of databases do.
//!
//! The first slot of a key follows from the key alone; how many slots are read after it depends on how full the table
//! is. Half of the keys that are looked up are there.

use std::sync::Arc;

use headstart::device::splitmix64;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::divided_searches;
use crate::data::{Words, computed, kept, output, scalar, words};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};

/// An odd number: keys times this are spread over 32 bits (Knuth's multiplicative method).
const SPREAD: u32 = 2_654_435_761;
/// Its inverse: the key before spreading.
const INVERSE: u32 = 244_002_641;
/// The key of a slot that holds none.
const EMPTY: u32 = u32::MAX;

/// Bytes of the table, the keys and the values.
pub(super) fn bytes(settings: &Settings) -> u64 {
    let keys = settings.get("groups") * settings.get("group") * settings.get("items");
    (8 << settings.get("bits")) + 8 * keys.max(1)
}

/// The values of the keys, 0 where there is none.
#[kernel(work_group = group)]
pub fn hash_probe(
    keys: &[u32],
    table: &[[u32; 2]],
    values: &mut [u32],
    items: u32,
    bits: u32,
    #[constant] group: u32,
) {
    let mask = (1u32 << bits) - 1;
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        let key = keys[at];
        let mut slot = key.wrapping_mul(SPREAD) >> (32 - bits);
        let [first, first_value] = table[slot as usize];
        let (mut held, mut value) = (first, first_value);
        while held != key && held != EMPTY {
            slot = (slot + 1) & mask;
            let [next, next_value] = table[slot as usize];
            held = next;
            value = next_value;
        }
        values[at] = value;
    }
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("groups", "work-groups", 528, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number("items", "keys that each work-item looks up", 64, 0..=1 << 16),
    Parameter::number(
        "bits",
        "the table has 2 to this power of slots of 8 bytes",
        20,
        6..=29,
    ),
    Parameter::number("load", "slots in a hundred that hold a key", 50, 1..=95),
];

/// `hash-probe`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "hash-probe",
    summary: "keys looked up in a hash table with linear probing",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            let few = settings.with("groups", 2).with("items", iterations);
            few.with("bits", settings.get("bits").min(10))
        },
        shapes: divided_searches,
    },
    workload: |settings, _| {
        let (groups, group, items) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("items"),
        );
        let bits = settings.small("bits");
        let table = table(settings);
        let slots = Arc::clone(&table);
        let count = u64::from(groups) * u64::from(group) * u64::from(items);
        // A random key, or that of a random slot: half of the searches succeed, whatever the load.
        let key = move |index: u64| {
            let random = splitmix64(index, SEED);
            let is_there = |tried: &u32| slots.get(*tried as usize * 2) != EMPTY;
            let tried = (0..64).map(|again| (splitmix64(index, SEED + again) >> (64 - bits)) as u32);
            match random & 1 {
                0 => tried
                    .into_iter()
                    .find(is_there)
                    .map_or(0, |slot| u64::from(slots.get(slot as usize * 2))),
                _ => (random >> 32).min(u64::from(EMPTY) - 1),
            }
        };
        let kernel = hash_probe::kernel(group)?;
        Workload::new(Arc::new(kernel), groups, group)
            .with("keys", computed(Type::I32, count.max(1), key))?
            .with("table", words(&table))?
            .with("values", output(Type::I32, count.max(1)))?
            .with("items", scalar(items))?
            .with("bits", scalar(bits))
    },
};

const SEED: u64 = 1000;

/// Slots of a key and a value. Keys are put in by their first slots in ascending order, so that it takes one pass; the
/// last slots stay empty, so that no key goes around the end.
fn table(settings: &Settings) -> Arc<Words> {
    let (bits, load) = (settings.small("bits"), settings.get("load"));
    kept(&format!("hash table {bits} {load}"), || {
        let slots = 1usize << bits;
        Words::filled(slots * 2, |table| put_in(table, bits, load))
    })
}

/// Puts keys into a table that holds zeros.
fn put_in(table: &mut [[u8; 4]], bits: u32, load: u64) {
    let slots = 1usize << bits;
    let empty = EMPTY.to_le_bytes();
    table.iter_mut().step_by(2).for_each(|key| *key = empty);
    let mut free = 0;
    for home in 0..slots {
        // As many keys as fall on a slot by chance: four throws, each of which hits with a quarter of the load.
        let bits_of_home = splitmix64(home as u64, 5);
        for throw in 0..4 {
            let chance = (bits_of_home >> (throw * 16)) & 0xffff;
            let place = free.max(home);
            if chance * 400 >= load << 16 || place >= slots - 1 {
                continue;
            }
            // Keys of one slot differ in the low bits of what they are spread to.
            let key = ((home as u32) << (32 - bits) | throw as u32).wrapping_mul(INVERSE);
            if key != EMPTY {
                table[place * 2] = key.to_le_bytes();
                let value = (splitmix64(u64::from(key), 6) as u32).max(1);
                table[place * 2 + 1] = value.to_le_bytes();
                free = place + 1;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};
    use super::*;

    /// The values that a map of the standard library has.
    pub(in super::super) fn check(ran: &Ran) {
        let table = ran.u32s("table");
        let full: Vec<&[u32]> = table.chunks(2).filter(|slot| slot[0] != EMPTY).collect();
        let filled = full.len();
        let known: std::collections::HashMap<u32, u32> = full.iter().map(|slot| (slot[0], slot[1])).collect();
        let wanted: usize = ran.word("load").parse().expect("a number");
        let slots = table.len() / 2;
        assert!(
            (filled * 100 / slots).abs_diff(wanted) < 6,
            "{filled} of {slots} for {wanted}"
        );
        assert_eq!(known.len(), filled, "a key stands twice");
        let keys = ran.u32s("keys");
        let expected: Vec<u32> = keys
            .iter()
            .map(|key| known.get(key).copied().unwrap_or(0))
            .collect();
        let found = expected.iter().filter(|&&value| value > 0).count();
        assert!(found * 5 > keys.len() * 2, "{found} of {} are there", keys.len());
        assert_eq!(ran.u32s("values"), expected);
    }

    #[test]
    fn keys_that_are_there_are_found_and_no_others() {
        assert_eq!(SPREAD.wrapping_mul(INVERSE), 1);
        for load in ["load=50", "load=90"] {
            check(&run(
                "hash-probe",
                &["groups=2", "group=32", "items=20", "bits=10", load],
            ));
        }
    }
}
