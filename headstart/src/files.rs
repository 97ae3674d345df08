//! Files that users name: read with a limit, and only what is a regular file.
//!
//! `/dev/zero` never ends, and opening a pipe waits for whoever writes into it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The contents of a regular file of at most `most` bytes.
///
/// # Errors
/// It cannot be read, is no regular file, or is longer.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    let too_long = || io::Error::other(format!("it is longer than {most} bytes"));
    if metadata.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if metadata.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    Ok(bytes)
}

/// The same, as text.
///
/// # Errors
/// As for [`bytes()`]; it is not UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(path, most)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {valid} is not UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_some_length_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "äb").expect("written");
        assert_eq!(bytes(&path, 3).expect("read").len(), 3);
        assert_eq!(text(&path, 3).expect("read"), "äb");
        assert!(
            bytes(&path, 2)
                .expect_err("too long")
                .to_string()
                .contains("longer than 2")
        );
        std::fs::write(&path, [b'a', 0xff]).expect("written");
        assert!(
            text(&path, 3)
                .expect_err("no text")
                .to_string()
                .contains("byte 1 is not UTF-8")
        );
        assert!(
            bytes(folder.path(), 3)
                .expect_err("a folder")
                .to_string()
                .contains("folder")
        );
        let zero = Path::new("/dev/zero");
        if zero.exists() {
            assert!(
                bytes(zero, 3)
                    .expect_err("no file")
                    .to_string()
                    .contains("no regular file")
            );
        }
    }
}
