//! Bundles: a library with devices' compiled code, in a file. Loading it compiles nothing.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Bundle, Device, Library};
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn double(values: &mut [f32]) {
//!     values[global_id()] *= 2.0;
//! }
//!
//! let device = Simulator::untimed(); // or a GPU, or several: `Bundle::build(library, &[&one, &other])`
//! let bundle = Bundle::build(Library::new([double::kernel()?])?, &[&device])?;
//! let loaded = Bundle::parse(&bundle.to_bytes())?; // or `write` and `read`, with a file
//! let program = loaded.load(&device)?.get("double")?.clone();
//! # Ok::<(), headstart::Error>(())
//! ```
//! The file holds the kernels as IR, too, so every device accepts it: one that finds no code for itself, or code of another
//! driver, compiles. Machine code is run as it is: load only bundles from sources that you would run programs from.

use std::path::Path;

use super::{Device, Image, Images, Library, Programs};
use crate::files;
use crate::{Error, Result};

/// The first line of a bundle.
const HEAD: &str = "headstart bundle 1";

/// Most images in a bundle.
const MOST_IMAGES: usize = 1 << 16;

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The longest key of an image, in bytes.
const LONGEST_KEY: usize = 1 << 10;

/// A library, and machine code of its kernels.
#[derive(Clone, Debug)]
pub struct Bundle {
    library: Library,
    images: Images,
}

impl Bundle {
    /// Compiles every kernel of a library on each of these devices.
    ///
    /// # Errors
    /// A device cannot run one of them.
    pub fn build(library: Library, devices: &[&dyn Device]) -> Result<Bundle> {
        let mut images = Images::new();
        for device in devices {
            for kernel in library.kernels() {
                let program = device.compile(kernel)?;
                if let Some(image) = device.image(&program)? {
                    images.insert(image);
                }
            }
        }
        Ok(Bundle { library, images })
    }

    /// Its kernels.
    #[doc(hidden)]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Its machine code.
    #[doc(hidden)]
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// Makes every kernel ready to launch on a device, with its machine code if that is here.
    ///
    /// # Errors
    /// The device cannot run one of them.
    pub fn load(&self, device: &dyn Device) -> Result<Programs> {
        self.library.load(device, &self.images)
    }

    /// As it is written to a file: a line with its version; the library behind a line with its size; each image behind
    /// a line with its size and key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let library = self.library.to_text();
        let mut bytes = format!("{HEAD}\n{}\n{library}", library.len()).into_bytes();
        for image in self.images.iter() {
            bytes.extend_from_slice(format!("{} {}\n", image.code.len(), image.key).as_bytes());
            bytes.extend_from_slice(&image.code);
        }
        bytes
    }

    /// Reads the output of [`Bundle::to_bytes`].
    ///
    /// # Errors
    /// The bytes are none that it wrote.
    pub fn parse(bytes: &[u8]) -> Result<Bundle> {
        let mut rest = bytes;
        let head = line(&mut rest).filter(|head| *head == HEAD);
        head.ok_or_else(|| wrong("the first line is another"))?;
        let size = line(&mut rest).and_then(|size| size.parse().ok());
        let text = size.and_then(|size| take(&mut rest, size));
        let text = text.ok_or_else(|| wrong("the library is shorter than its size"))?;
        let text = std::str::from_utf8(text).map_err(|_| wrong("the library is not text"))?;
        let library = Library::parse(text)?;
        let mut images = Images::new();
        while !rest.is_empty() {
            if images.len() == MOST_IMAGES {
                return Err(wrong("it has too many images"));
            }
            let (size, key) = line(&mut rest)
                .and_then(|line| line.split_once(' '))
                .ok_or_else(|| wrong("an image's size and key are missing"))?;
            let size = size
                .parse()
                .map_err(|_| wrong("an image's size is not a number"))?;
            let code = take(&mut rest, size).ok_or_else(|| wrong("an image is shorter than its size"))?;
            images.insert(Image {
                key: key.to_owned(),
                code: code.into(),
            });
        }
        Ok(Bundle { library, images })
    }

    /// Writes the bundle to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.to_bytes())
            .map_err(|error| Error::usage(format!("{} cannot be written: {error}", path.display())))
    }

    /// Reads a bundle from a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Bundle> {
        let bytes = files::bytes(path, MAX_BYTES)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", path.display())))?;
        Bundle::parse(&bytes).map_err(|error| error.at(path.display().to_string()))
    }
}

fn wrong(what: &str) -> Error {
    Error::input(format!("not a bundle: {what}")).accepted(format!("`{HEAD}`"))
}

/// The next line.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().take(LONGEST_KEY).position(|&byte| byte == b'\n')?;
    let line = take(rest, end)?;
    *rest = &rest[1..];
    std::str::from_utf8(line).ok()
}

/// The next bytes.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Idle;
    use crate::ir;

    fn bundle() -> Bundle {
        let text = "hsir 1\nkernel @one(%n: i32) {\n  return\n}\n";
        let kernel = ir::parse(text, "test").expect("the kernel is right");
        let library = Library::new([kernel]).expect("right");
        let mut bundle = Bundle::build(library, &[&Idle::new()]).expect("it runs there");
        assert!(bundle.images.is_empty(), "the simulator keeps no code");
        bundle.images.insert(Image::new(
            "a device,\nspelled on two lines",
            b"source",
            vec![10, 0, 255],
        ));
        bundle.images.insert(Image::new("empty", b"", Vec::new()));
        bundle
    }

    #[test]
    fn bundles_are_read_as_they_were_written() {
        let bundle = bundle();
        let again = Bundle::parse(&bundle.to_bytes()).expect("what was written");
        assert_eq!(again.to_bytes(), bundle.to_bytes());
        let found = again.images.find("a device,\nspelled on two lines", b"source");
        assert_eq!(found.map(|image| image.code.to_vec()), Some(vec![10, 0, 255]));
        assert!(again.load(&Idle::new()).expect("runs").get("one").is_ok());
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        let bytes = bundle().to_bytes();
        for length in 0..bytes.len() {
            // Cut anywhere but between two parts, it is none; and nothing panics.
            if let Ok(part) = Bundle::parse(&bytes[..length]) {
                assert!(part.images.len() < 2, "{length}");
            }
        }
        let said = |bytes: &[u8]| Bundle::parse(bytes).expect_err("wrong").to_string();
        assert!(said(b"").contains("the first line"), "{}", said(b""));
        let huge = format!("{HEAD}\n99999999999999999999\n");
        assert!(said(huge.as_bytes()).contains("shorter than its size"));
        let mut tail = bytes.clone();
        tail.extend_from_slice(b"many k\n");
        assert!(said(&tail).contains("not a number"), "{}", said(&tail));
    }
}
