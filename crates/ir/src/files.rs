//! Files named by users: only regular files are read, up to a size limit.
//!
//! `/dev/zero` never ends, and opening a pipe waits for a writer.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

/// Why a file is not read.
#[derive(Debug, Error)]
pub enum FileError {
    /// It is longer than the caller's limit.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It is a device, a pipe or a socket.
    #[error("it is not a regular file")]
    NotRegular,
    /// Text was asked for.
    #[error("byte {valid} is not UTF-8")]
    NotUtf8 {
        /// Bytes of text before the first that is none.
        valid: usize,
    },
    /// The system does not give it: it is not there, or belongs to another user.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileError {
    /// Whether there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, FileError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// The contents of a regular file of at most `most` bytes.
///
/// # Errors
/// It cannot be read, is no regular file, or is longer.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    // It may grow while it is read.
    open(path, most)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(FileError::TooLong { limit: most });
    }
    Ok(bytes)
}

/// A regular file of at most `most` bytes, opened.
///
/// # Errors
/// It cannot be opened, is no regular file, or is longer.
pub fn open(path: &Path, most: u64) -> Result<File, FileError> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(FileError::Folder);
    }
    if !metadata.is_file() {
        return Err(FileError::NotRegular);
    }
    if metadata.len() > most {
        return Err(FileError::TooLong { limit: most });
    }
    Ok(File::open(path)?)
}

/// The same, as text.
///
/// # Errors
/// As for [`bytes()`]; it is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String, FileError> {
    String::from_utf8(bytes(path, most)?).map_err(|error| FileError::NotUtf8 {
        valid: error.utf8_error().valid_up_to(),
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
        let too_long = bytes(&path, 2).expect_err("too long");
        assert!(matches!(too_long, FileError::TooLong { limit: 2 }), "{too_long}");
        assert_eq!(too_long.to_string(), "it is longer than 2 bytes");
        std::fs::write(&path, [b'a', 0xff]).expect("written");
        let no_text = text(&path, 3).expect_err("no text");
        assert!(matches!(no_text, FileError::NotUtf8 { valid: 1 }), "{no_text}");
        let is_folder = bytes(folder.path(), 3).expect_err("a folder");
        assert!(matches!(is_folder, FileError::Folder), "{is_folder}");
        let missing = bytes(&folder.path().join("b"), 3).expect_err("not there");
        assert!(missing.is_not_found() && !is_folder.is_not_found(), "{missing}");
        let zero = Path::new("/dev/zero");
        if zero.exists() {
            let device = bytes(zero, 3).expect_err("no file");
            assert!(matches!(device, FileError::NotRegular), "{device}");
        }
    }
}
