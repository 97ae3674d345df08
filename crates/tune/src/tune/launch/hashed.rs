//! Hash tables as contents of a launch file's buffers: slots with keys, and keys to look up.
//!
//! The keys are distinct random numbers. A key is in the first slot from its hash on that was free when it was inserted (linear
//! probing), as in most hash tables on GPUs, whose kernels search from there until they find the key or a free slot.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::ir::Type;
use crate::random::splitmix64;
use crate::suggest::{accepted, quoted};

/// Most slots of a table.
const MOST_SLOTS: u64 = 1 << 28;
/// Most elements of a slot.
const MOST_STRIDE: u64 = 16;
/// The greatest load: beyond, a search goes through much of the table.
const MOST_LOAD: f64 = 0.99;

/// A hash table with open addressing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::tune) struct Table {
    slots: u64,
    load: f64,
    #[serde(default)]
    hash: Hash,
    #[serde(default = "all_bits")]
    empty: i64,
    #[serde(default)]
    seed: u64,
    /// Elements of a slot, of which the first is the key.
    #[serde(default = "one")]
    stride: u64,
}

fn one() -> u64 {
    1
}

fn all_bits() -> i64 {
    -1
}

/// Where the search for a key begins, of as many slots as a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Hash {
    /// The finaliser of MurmurHash3 for the key's size (Appleby, 2011).
    #[default]
    Murmur,
    /// The key itself.
    Modulo,
    /// The high bits of the key times 2^32 or 2^64 divided by the golden ratio (Knuth: "The Art of Computer Programming",
    /// volume 3, 6.4).
    Fibonacci,
}

/// The table of a name.
pub(in crate::tune) fn table<'t>(tables: &'t BTreeMap<String, Table>, name: &str) -> Result<&'t Table> {
    let found = tables.get(name).ok_or_else(|| {
        Error::usage(format!("there is no hash table {}", quoted(name))).accepted(accepted(
            name,
            "tables",
            tables.keys().map(String::as_str),
        ))
    })?;
    if !found.slots.is_power_of_two() || found.slots > MOST_SLOTS {
        return Err(Error::usage(format!("a hash table of {} slots", found.slots))
            .accepted(format!("a power of two, at most {MOST_SLOTS}")));
    }
    if !(1..=MOST_STRIDE).contains(&found.stride) {
        return Err(Error::usage(format!("slots of {} elements", found.stride))
            .accepted(format!("a `stride` of 1 to {MOST_STRIDE}")));
    }
    if !(0.0..=MOST_LOAD).contains(&found.load) {
        return Err(Error::usage(format!("a load of {}", found.load)).accepted(format!("0 to {MOST_LOAD}")));
    }
    Ok(found)
}

impl Table {
    /// How many elements its slots have together.
    pub(crate) fn slots(&self) -> u64 {
        self.slots * self.stride
    }

    fn check(&self, element: Type) -> Result<()> {
        match matches!(element, Type::I32 | Type::I64) {
            true => Ok(()),
            false => {
                Err(Error::usage(format!("elements `{element}` hold no keys")).accepted("`i32` or `i64`"))
            }
        }
    }

    /// The number of keys.
    fn count(&self) -> u64 {
        (self.slots as f64 * self.load) as u64
    }

    /// The `number`-th key at random, not the value of free slots.
    fn key(&self, element: Type, number: u64) -> u64 {
        let empty = self.empty as u64 & element.mask();
        let mut key = splitmix64(number, self.seed) & element.mask();
        while key == empty {
            key = splitmix64(key, self.seed ^ 1) & element.mask();
        }
        key
    }

    /// The contents of its slots.
    pub(crate) fn filled(&self, element: Type) -> Result<Fill> {
        self.check(element)?;
        let empty = self.empty as u64 & element.mask();
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.slots as usize).map_err(|_| {
            Error::device(format!(
                "the host has no memory for a hash table of {} slots",
                self.slots
            ))
        })?;
        slots.resize(self.slots as usize, empty);
        let mut known = HashSet::new();
        let mut number = 0;
        while (known.len() as u64) < self.count() {
            let key = self.key(element, number);
            number += 1;
            if known.insert(key) {
                let mut at = self.hash.of(element, key, self.slots) as usize;
                while slots[at] != empty {
                    at = (at + 1) % slots.len();
                }
                slots[at] = key;
            }
        }
        let size = element.bytes() as usize;
        let mut bytes = vec![0; self.slots() as usize * size];
        for (place, slot) in bytes.chunks_mut(size * self.stride as usize).zip(slots) {
            place[..size].copy_from_slice(&slot.to_le_bytes()[..size]);
        }
        Ok(Fill::Bytes(Arc::from(bytes)))
    }

    /// Keys to look up: this share of them it has.
    pub(crate) fn wanted(&self, element: Type, hits: f64, seed: u64) -> Result<Fill> {
        self.check(element)?;
        if !(0.0..=1.0).contains(&hits) {
            return Err(Error::usage(format!("a share of {hits}")).accepted("`hits` from 0 to 1"));
        }
        let (table, count) = (self.clone(), self.count());
        let key = move |index: u64| {
            let any = splitmix64(index, seed ^ 0x6b65_7973);
            let is_hit = count > 0 && ((any >> 11) as f64) < hits * (1u64 << 53) as f64;
            match is_hit {
                true => table.key(element, splitmix64(any, seed) % count),
                // Of this many numbers hardly one is a key.
                false => table.key(element, any | 1 << 63),
            }
        };
        Ok(Fill::Pattern(Pattern::Function(Arc::new(key))))
    }
}

impl Hash {
    fn of(self, element: Type, key: u64, slots: u64) -> u64 {
        let bits = slots.trailing_zeros();
        let hash = match (self, element) {
            (Hash::Modulo, _) => key,
            (Hash::Murmur, Type::I32) => {
                let mut hash = key as u32;
                hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
                hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
                u64::from(hash ^ hash >> 16)
            }
            (Hash::Murmur, _) => {
                let mut hash = key;
                hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
                hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
                hash ^ hash >> 33
            }
            (Hash::Fibonacci, Type::I32) => {
                let product = (key as u32).wrapping_mul(0x9e37_79b9);
                u64::from(product.checked_shr(32 - bits).unwrap_or(0))
            }
            (Hash::Fibonacci, _) => {
                let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                product.checked_shr(64 - bits).unwrap_or(0)
            }
        };
        hash & (slots - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_may_have_more_than_a_key() {
        let tables = [1, 2].map(|stride| Table {
            slots: 64,
            load: 0.5,
            hash: Hash::Murmur,
            empty: -1,
            seed: 5,
            stride,
        });
        let [one, two] = tables.map(|table| match table.filled(Type::I32) {
            Ok(Fill::Bytes(bytes)) => bytes,
            other => panic!("{other:?}"),
        });
        assert_eq!(two.len(), 2 * one.len());
        for (key, slot) in one.chunks(4).zip(two.chunks(8)) {
            assert_eq!((key, [0; 4].as_slice()), slot.split_at(4));
        }
    }

    #[test]
    fn a_search_finds_each_key_that_it_should() {
        for (hash, element) in [
            (Hash::Murmur, Type::I32),
            (Hash::Murmur, Type::I64),
            (Hash::Modulo, Type::I32),
            (Hash::Fibonacci, Type::I64),
            (Hash::Fibonacci, Type::I32),
        ] {
            let table = Table {
                slots: 1024,
                load: 0.75,
                hash,
                empty: -1,
                seed: 5,
                stride: 1,
            };
            let Ok(Fill::Bytes(bytes)) = table.filled(element) else {
                panic!("a table");
            };
            let size = element.bytes() as usize;
            let slot = |at: u64| {
                let mut bits = [0; 8];
                bits[..size].copy_from_slice(&bytes[at as usize * size..][..size]);
                u64::from_le_bytes(bits)
            };
            let is_free = |bits: u64| bits == element.mask();
            assert_eq!((0..1024).filter(|&at| !is_free(slot(at))).count(), 768);
            let Ok(Fill::Pattern(wanted)) = table.wanted(element, 0.5, 9) else {
                panic!("keys");
            };
            let found = (0..1000).filter(|&index| {
                let key = wanted.bits(element, index);
                let mut at = hash.of(element, key, 1024);
                while !is_free(slot(at)) && slot(at) != key {
                    at = (at + 1) % 1024;
                }
                slot(at) == key
            });
            let found = found.count();
            assert!((420..580).contains(&found), "{hash:?} {element}: {found}");
        }
    }

    #[test]
    fn odd_tables_are_refused() {
        let of = |text: &str| {
            let table: Table = toml::from_str(text).expect("a table");
            let tables = BTreeMap::from([("t".to_owned(), table)]);
            super::table(&tables, "t")
                .map(|_| ())
                .expect_err(text)
                .to_string()
        };
        assert!(of("slots = 1000\nload = 0.5").contains("a power of two"));
        assert!(of("slots = 1024\nload = 1.5").contains("a load of 1.5"));
    }
}
