//! Machine code that a device's compiler has made, to be kept.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Machine code of one kernel, and its origin.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// The device and driver, and a fingerprint of their inputs: the code can be reused where all of them are equal.
    pub key: String,
    /// The code, as the driver has it.
    pub code: Arc<[u8]>,
}

impl Image {
    /// An image of this device's and driver's code for this source.
    pub fn new(device: &str, source: &[u8], code: Vec<u8>) -> Image {
        Image {
            key: Image::key(device, source),
            code: code.into(),
        }
    }

    /// The key of an image: the device and driver, our version, and a fingerprint of the source.
    pub(crate) fn key(device: &str, source: &[u8]) -> String {
        let device: String = device
            .chars()
            .map(|c| if c.is_whitespace() { ' ' } else { c })
            .collect();
        format!(
            "{device} · {} · {:032x}",
            env!("CARGO_PKG_VERSION"),
            fingerprint(source)
        )
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.key, self.code.len())
    }
}

/// Images by their keys.
#[derive(Clone, Debug, Default)]
pub struct Images(BTreeMap<String, Image>);

impl Images {
    /// None.
    pub fn new() -> Images {
        Images::default()
    }

    /// Adds one, in place of another with the same key.
    pub(crate) fn insert(&mut self, image: Image) {
        self.0.insert(image.key.clone(), image);
    }

    /// This device's and driver's code for this source, if it is here.
    pub fn find(&self, device: &str, source: &[u8]) -> Option<&Image> {
        self.0.get(&Image::key(device, source))
    }

    /// All of them, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Image> {
        self.0.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// FNV-1a of 128 bits: the same on every machine. It tells sources apart; it is no defence against forgers, who could
/// write machine code into the file anyway.
pub(crate) fn fingerprint(bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &byte| {
            (hash ^ u128::from(byte)).wrapping_mul(PRIME)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_by_device_and_source() {
        let mut images = Images::new();
        images.insert(Image::new("cuda sm_90", b"one", vec![1]));
        images.insert(Image::new("cuda sm_90", b"two", vec![2]));
        assert_eq!(
            images.find("cuda sm_90", b"two").map(|image| image.code[0]),
            Some(2)
        );
        assert_eq!(images.find("cuda sm_80", b"two"), None);
        assert_eq!(images.find("cuda sm_90", b"three"), None);
    }

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // The published values for these inputs.
        assert_eq!(fingerprint(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fingerprint(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
