//! A short name of a text.

use std::fmt::{self, Write};

/// FNV-1a of 128 bits (RFC 9923) of a text, in hexadecimal digits. The text need not exist as a whole.
pub(in crate::tune) fn hash(text: &dyn fmt::Display) -> String {
    struct Hasher(u128);
    impl fmt::Write for Hasher {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
            }
            Ok(())
        }
    }
    let mut hasher = Hasher(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    // Hashing cannot fail.
    let _ = write!(hasher, "{text}");
    format!("{:032x}", hasher.0)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(hash(&""), "6c62272e07bb014262b821756295c58d");
        // From the test vectors of RFC 9923.
        assert_eq!(hash(&"a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
