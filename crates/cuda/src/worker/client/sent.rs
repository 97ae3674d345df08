//! The files in which buffer contents without a closed form are passed to a worker.
//!
//! A search binds the same tables again for each geometry that it tries, and gigabytes take seconds to write. Data sent by the
//! last binding are not written again, and keep their name, by which the worker recognises them.

use std::path::{Path, PathBuf};

use super::written;
use crate::failure::Failure;
use crate::ir::Type;
use headstart_device::Fill;

/// Elements that are computed and written at a time.
const PART: usize = 1 << 22;

/// The files that exist.
pub(super) struct Sent {
    folder: PathBuf,
    files: Vec<Contents>,
    /// Files that were ever written: no name is used twice.
    count: usize,
}

/// The contents of a file.
struct Contents {
    element: Type,
    length: u64,
    fill: Fill,
    path: PathBuf,
    /// Whether the binding at hand has it.
    is_used: bool,
}

impl Sent {
    /// None yet.
    pub(crate) fn in_folder(folder: &Path) -> Sent {
        Sent {
            folder: folder.to_owned(),
            files: Vec::new(),
            count: 0,
        }
    }

    /// The file with a buffer's contents.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn file(&mut self, element: Type, length: u64, fill: &Fill) -> Result<PathBuf, Failure> {
        let is_same =
            |file: &Contents| file.element == element && file.length == length && file.fill.is_same(fill);
        if let Some(known) = self.files.iter_mut().find(|file| is_same(file)) {
            known.is_used = true;
            return Ok(known.path.clone());
        }
        let path = self.folder.join(format!("input-{}", self.count));
        self.count += 1;
        match fill {
            Fill::Bytes(bytes) => written(&path, [bytes])?,
            Fill::Pattern(pattern) => {
                let firsts = (0..length).step_by(PART);
                let part = |first| pattern.bytes(element, first, (length - first).min(PART as u64));
                written(&path, firsts.map(part))?;
            }
            Fill::Uninitialized => written(&path, [[]; 0])?,
        }
        self.files.push(Contents {
            element,
            length,
            fill: fill.clone(),
            path: path.clone(),
            is_used: true,
        });
        Ok(path)
    }

    /// Removes the files that were not requested since the last time.
    pub(crate) fn drop_others(&mut self) {
        self.files.retain(|file| {
            if !file.is_used {
                // Remaining files go with the folder.
                let _ = std::fs::remove_file(&file.path);
            }
            file.is_used
        });
        self.files.iter_mut().for_each(|file| file.is_used = false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use headstart_device::Pattern;

    #[test]
    fn what_is_there_is_not_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sent = Sent::in_folder(folder.path());
        let bytes = |contents: &[u8]| Fill::Bytes(Arc::from(contents));
        let (table, other) = (bytes(&[1, 2, 3, 4]), bytes(&[1, 2, 3, 4]));
        let squares = Fill::Pattern(Pattern::Function(Arc::new(|index| index * index)));
        let mut file = |element, length, fill| sent.file(element, length, fill).expect("writable");
        let first = file(Type::I8, 4, &table);
        let computed = file(Type::I16, 3, &squares);
        assert_eq!(std::fs::read(&first).expect("there"), [1, 2, 3, 4]);
        assert_eq!(std::fs::read(&computed).expect("there"), [0, 0, 1, 0, 4, 0]);
        // The same bytes in other memory are not known to be the same.
        assert_eq!(file(Type::I8, 4, &table), first);
        assert_ne!(file(Type::I8, 4, &other), first);
        assert_ne!(file(Type::I16, 2, &squares), computed);
        sent.drop_others();
        assert!(first.exists() && computed.exists());
        assert_eq!(sent.file(Type::I8, 4, &table).expect("there"), first);
        sent.drop_others();
        assert!(first.exists() && !computed.exists());
        assert_ne!(sent.file(Type::I16, 3, &squares).expect("writable"), computed);
    }
}
