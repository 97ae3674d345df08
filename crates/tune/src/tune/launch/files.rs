//! Files as contents of a launch file's buffers: NumPy's formats, and raw bytes.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::device::Fill;
use crate::error::{Error, Result};
use crate::files::{self, FileError};
use crate::ir::Type;
use crate::suggest::{accepted, quoted};

/// The longest file that a buffer is filled from, in bytes.
const MOST_FILE_BYTES: u64 = 1 << 30;

/// Bytes of a `.npy` file that have its header.
const HEADER_BYTES: u64 = 4096;

/// How many elements a file in NumPy's formats has, of an archive the named array, and their type; nothing for other files.
pub(in crate::tune) fn length_of(path: &Path, array: Option<&str>) -> Result<Option<(u64, Type)>> {
    if is_npz(path) {
        let bytes = member(&whole(path)?, array).map_err(|error| within(path, error))?;
        let header = Header::of(&bytes).map_err(|error| within(path, error))?;
        return Ok(Some((header.length, header.element())));
    }
    if !is_npy(path) {
        return Ok(None);
    }
    let mut head = Vec::new();
    files::open(path, MOST_FILE_BYTES)
        .and_then(|file| Ok(file.take(HEADER_BYTES).read_to_end(&mut head)?))
        .map_err(|error| unreadable(path, &error))?;
    let header = Header::of(&head).map_err(|error| within(path, error))?;
    Ok(Some((header.length, header.element())))
}

/// The contents of a file, or of an archive's array.
pub(in crate::tune) fn from_file(
    path: &Path,
    array: Option<&str>,
    element: Type,
    length: u64,
) -> Result<Fill> {
    let mut bytes = whole(path)?;
    if is_npz(path) {
        bytes = member(&bytes, array).map_err(|error| within(path, error))?;
    } else if array.is_some() {
        return Err(
            within(path, Error::usage("it is not an archive")).accepted("`array` goes with a `.npz` file")
        );
    }
    if is_npy(path) || is_npz(path) {
        let header = Header::of(&bytes).map_err(|error| within(path, error))?;
        if header.item != element.bytes() {
            return Err(within(
                path,
                Error::usage(format!("its elements are `{}`", header.descr)).accepted(format!(
                    "elements of {} bytes, as `{element}` has",
                    element.bytes()
                )),
            ));
        }
        bytes.drain(..header.data);
    }
    let wanted = length.saturating_mul(u64::from(element.bytes()));
    if (bytes.len() as u64) < wanted {
        return Err(within(
            path,
            Error::usage(format!("it has {} bytes", bytes.len()))
                .accepted(format!("{wanted} for {length} elements `{element}`")),
        ));
    }
    bytes.truncate(wanted as usize);
    Ok(Fill::Bytes(Arc::from(bytes)))
}

fn whole(path: &Path) -> Result<Vec<u8>> {
    files::bytes(path, MOST_FILE_BYTES).map_err(|error| unreadable(path, &error))
}

fn is_npz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npz")
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

fn unreadable(path: &Path, error: &FileError) -> Error {
    let error = match error {
        FileError::TooLong { limit } => {
            Error::usage("the file is too large").accepted(format!("at most {} MiB", limit >> 20))
        }
        _ => Error::usage(format!("cannot be read: {error}")),
    };
    within(path, error)
}

fn within(path: &Path, error: Error) -> Error {
    error.about(format!("file {}", quoted(&path.to_string_lossy())))
}

/// The header in front of the numbers in NumPy's format (NumPy: "NEP 1, A simple file format for NumPy arrays").
#[derive(Debug, PartialEq, Eq)]
struct Header {
    descr: String,
    item: u32,
    length: u64,
    data: usize,
}

impl Header {
    /// The type of its elements: integers of the IR have no sign, and a half of another kind is its bits.
    fn element(&self) -> Type {
        match (self.descr.chars().nth(1), self.item) {
            (Some('f'), 2) => Type::F16,
            (Some('f'), 4) => Type::F32,
            (Some('f'), 8) => Type::F64,
            (_, 1) => Type::I8,
            (_, 2) => Type::I16,
            (_, 4) => Type::I32,
            _ => Type::I64,
        }
    }

    fn of(bytes: &[u8]) -> Result<Header> {
        let odd = |what: &str| Error::input(format!("not a `.npy` file: {what}"));
        let rest = bytes
            .strip_prefix(b"\x93NUMPY")
            .ok_or_else(|| odd("it begins otherwise"))?;
        let (start, length) = match *rest {
            [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([a, b]))),
            [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d]) as usize),
            _ => return Err(odd("an unknown version")),
        };
        let data = start + length;
        let text = bytes
            .get(start..data)
            .and_then(|text| std::str::from_utf8(text).ok())
            .ok_or_else(|| odd("its header is cut off"))?;
        let value = |key: &str| {
            let behind = &text[text.find(&format!("'{key}':"))? + key.len() + 3..];
            Some(behind.trim_start())
        };
        let descr = value("descr")
            .and_then(|rest| rest.strip_prefix('\''))
            .and_then(|rest| rest.split('\'').next())
            .ok_or_else(|| odd("elements of several parts"))?;
        let little = descr.starts_with(['<', '|']);
        let item: Option<u32> = descr.get(2..).and_then(|digits| digits.parse().ok());
        let item = item.filter(|item| little && matches!(item, 1 | 2 | 4 | 8));
        let item = item.ok_or_else(|| odd(&format!("elements {}", quoted(descr))))?;
        if value("fortran_order").is_none_or(|rest| rest.starts_with("True")) {
            return Err(odd("it is in Fortran's order").accepted("`numpy.ascontiguousarray`"));
        }
        let shape = value("shape")
            .and_then(|rest| rest.strip_prefix('('))
            .and_then(|rest| rest.split(')').next())
            .ok_or_else(|| odd("it has no shape"))?;
        let extents = shape
            .split(',')
            .map(str::trim)
            .filter(|extent| !extent.is_empty());
        let mut length = 1u64;
        for extent in extents {
            let extent: u64 = extent.parse().map_err(|_| odd("an odd shape"))?;
            length = length
                .checked_mul(extent)
                .ok_or_else(|| odd("more elements than memory"))?;
        }
        Ok(Header {
            descr: descr.to_owned(),
            item,
            length,
            data,
        })
    }
}

/// An array of an archive in NumPy's format, as the bytes of a `.npy` file. Such an archive is a ZIP file without
/// compression (PKWARE: "APPNOTE.TXT - .ZIP File Format Specification", 4.3).
fn member(archive: &[u8], name: Option<&str>) -> Result<Vec<u8>> {
    let members = directory(archive)?;
    let names = || members.iter().map(|member| member.name.as_str());
    let chosen = match (name, &members[..]) {
        (Some(name), _) => members.iter().find(|member| member.name == name).ok_or_else(|| {
            Error::usage(format!("it has no array {}", quoted(name))).accepted(accepted(
                name,
                "arrays",
                names(),
            ))
        })?,
        (None, [only]) => only,
        (None, _) => {
            let listed: Vec<String> = names().map(quoted).collect();
            return Err(Error::usage(format!("it has {} arrays", members.len()))
                .accepted(format!("`array = …`, one of {}", listed.join(", "))));
        }
    };
    if chosen.method != 0 {
        return Err(
            Error::usage("its arrays are compressed").accepted("`numpy.savez`, which does not compress")
        );
    }
    // In front of the data stands a header with a name and extras of its own.
    let header = chosen.header as usize;
    let of_header = |from: usize| number(archive, header + from, 2);
    let start = of_header(26)
        .zip(of_header(28))
        .map(|(name, extra)| header + 30 + name as usize + extra as usize);
    let data = start.and_then(|start| archive.get(start..start.checked_add(chosen.bytes as usize)?));
    data.map(<[u8]>::to_vec).ok_or_else(cut_off)
}

/// An array in an archive.
struct Member {
    name: String,
    /// How it is compressed: 0 for not at all.
    method: u64,
    bytes: u64,
    /// Where its header stands.
    header: u64,
}

fn cut_off() -> Error {
    Error::input("not a `.npz` file: it is cut off, or larger than 4 GiB")
}

/// A number of this many bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(whole))
}

/// The directory of an archive, at its end.
fn directory(archive: &[u8]) -> Result<Vec<Member>> {
    let odd = || Error::input("not a `.npz` file: it has no directory");
    let end = archive
        .windows(4)
        .rposition(|bytes| bytes == b"PK\x05\x06")
        .ok_or_else(odd)?;
    let count = number(archive, end + 10, 2).ok_or_else(odd)?;
    let mut at = number(archive, end + 16, 4).ok_or_else(odd)? as usize;
    let mut members = Vec::new();
    for _ in 0..count {
        if archive.get(at..at + 4) != Some(b"PK\x01\x02") {
            return Err(odd());
        }
        let of = |from: usize, size: usize| number(archive, at + from, size).ok_or_else(odd);
        let (length, extra, comment) = (of(28, 2)? as usize, of(30, 2)? as usize, of(32, 2)? as usize);
        let name = archive.get(at + 46..at + 46 + length).ok_or_else(odd)?;
        let name = String::from_utf8_lossy(name);
        members.push(Member {
            name: name.strip_suffix(".npy").unwrap_or(&name).to_owned(),
            method: of(10, 2)?,
            bytes: of(24, 4)?,
            header: of(42, 4)?,
        });
        at += 46 + length + extra + comment;
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::LaunchFile;

    fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn numpy_files_are_read() {
        let header = Header::of(&npy("<f4", "3, 4", &[])).expect("a header");
        assert_eq!((header.item, header.length), (4, 12));
        assert_eq!(Header::of(&npy("|u1", "7,", &[])).expect("bytes").length, 7);
        for odd in [
            npy(">f4", "3", &[]),
            npy("<c16", "3", &[]),
            npy("<f4", "x", &[]),
            b"no".to_vec(),
        ] {
            Header::of(&odd).expect_err("refused");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        std::fs::write(&path, npy("<i4", "2,", &[1, 0, 0, 0, 2, 0, 0, 0])).expect("written");
        std::fs::write(
            folder.path().join("launch.toml"),
            "[parameters.p]\nfile = \"a.npy\"",
        )
        .expect("written");
        let launch = LaunchFile::read(&folder.path().join("launch.toml")).expect("a launch file");
        let own = launch.facts().parameters["p"];
        assert_eq!((own.length, own.unit), (Some(2), Some(4)));
        // Of the same bytes are twice as many halves in as many words.
        let kernel = "hsir 1\nkernel @k(%p: ptr.global i64[] align 8 readonly) {\n  return\n}\n";
        let kernel = Arc::new(crate::ir::parse(kernel, "k.hsir").expect("a kernel"));
        let workload = launch.workload(&kernel).expect("eight bytes");
        assert!(matches!(
            workload.given[0],
            crate::tune::ArgumentSpec::Input { length: 1, .. }
        ));
        assert!(matches!(from_file(&path, None, Type::I32, 2), Ok(Fill::Bytes(bytes)) if bytes[4] == 2));
        let error = from_file(&path, None, Type::F64, 1).expect_err("another width");
        assert!(error.to_string().contains("elements of 8 bytes"), "{error}");
        assert!(
            from_file(&path, None, Type::I32, 3).is_err(),
            "more than there are"
        );
    }

    /// An archive of these arrays, none compressed, as `numpy.savez` writes it.
    fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let (mut bytes, mut listed) = (Vec::new(), Vec::new());
        for (name, data) in arrays {
            let (header, name) = (bytes.len() as u32, format!("{name}.npy"));
            let size = (data.len() as u32).to_le_bytes();
            bytes.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
            bytes.extend([size, size].concat());
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend([4, 0]);
            bytes.extend(name.as_bytes());
            bytes.extend([1, 0, 0, 0]);
            bytes.extend(data);
            listed.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
            listed.extend([size, size].concat());
            listed.extend((name.len() as u16).to_le_bytes());
            listed.extend([0; 12]);
            listed.extend(header.to_le_bytes());
            listed.extend(name.as_bytes());
        }
        let start = (bytes.len() as u32).to_le_bytes();
        let count = (arrays.len() as u16).to_le_bytes();
        bytes.extend(&listed);
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        bytes.extend([count, count].concat());
        bytes.extend((listed.len() as u32).to_le_bytes());
        bytes.extend(start);
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn arrays_of_archives_are_read() {
        let arrays = [
            ("rows", npy("<i4", "2,", &[1, 0, 0, 0, 2, 0, 0, 0])),
            ("x", npy("|u1", "3,", &[7, 8, 9])),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.npz");
        std::fs::write(&path, npz(&arrays)).expect("written");
        assert_eq!(length_of(&path, Some("x")).expect("there"), Some((3, Type::I8)));
        let filled = from_file(&path, Some("rows"), Type::I32, 2).expect("there");
        assert!(matches!(filled, Fill::Bytes(bytes) if bytes[4] == 2));
        let error = length_of(&path, None).expect_err("which").to_string();
        assert!(error.contains("`rows`, `x`"), "{error}");
        let error = length_of(&path, Some("row")).expect_err("none").to_string();
        assert!(error.contains("did you mean `rows`"), "{error}");
        std::fs::write(&path, b"PK\x05\x06").expect("written");
        length_of(&path, None).expect_err("cut off");
    }
}
