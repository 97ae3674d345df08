//! The library's settings, from the environment.
//!
//! `HEADSTART_DRIVER` is `list:FOLDER`, `capture:FOLDER` or `exec:FOLDER`; the command sets it.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The library's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Off,
    /// Counts launches and takes their times.
    List,
    /// Copies chosen launches with their memory.
    Capture,
    /// Puts better kernels in place.
    Exec,
}

impl Mode {
    /// Whether the program's actions are logged.
    pub fn captures(self) -> bool {
        matches!(self, Mode::List | Mode::Capture)
    }
}

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The mode.
    pub mode: Mode,
    /// Where files are written and read.
    pub folder: PathBuf,
    /// Most bytes of memory that a captured launch may reach.
    pub most_bytes: u64,
    /// Seconds that a captured launch may take.
    pub patience_s: u64,
}

const UNREAD: u8 = u8::MAX;
static MODE: AtomicU8 = AtomicU8::new(UNREAD);
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The mode: one load once it is known.
#[inline]
pub fn mode() -> Mode {
    match MODE.load(Ordering::Relaxed) {
        0 => Mode::Off,
        1 => Mode::List,
        2 => Mode::Capture,
        3 => Mode::Exec,
        _ => {
            let mode = get().mode;
            MODE.store(mode as u8, Ordering::Relaxed);
            mode
        }
    }
}

/// From now on nothing is done.
pub fn turn_off() {
    MODE.store(Mode::Off as u8, Ordering::Relaxed);
}

/// The settings, read once.
pub fn get() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
        read(
            env::var_os("HEADSTART"),
            env::var_os("HEADSTART_DRIVER"),
            number("HEADSTART_DRIVER_MAX_BYTES"),
            number("HEADSTART_DRIVER_PATIENCE"),
        )
    })
}

fn read(
    switch: Option<OsString>,
    driver: Option<OsString>,
    most_bytes: Option<u64>,
    patience_s: Option<u64>,
) -> Settings {
    let mut settings = Settings {
        mode: Mode::Off,
        folder: PathBuf::new(),
        most_bytes: most_bytes.unwrap_or(4 << 30),
        patience_s: patience_s.unwrap_or(60),
    };
    let Some(driver) = driver.filter(|_| switch.is_none_or(|switch| switch != "off")) else {
        return settings;
    };
    let text = driver.as_bytes();
    let Some(colon) = text.iter().position(|&byte| byte == b':') else {
        return settings;
    };
    settings.mode = match &text[..colon] {
        b"list" => Mode::List,
        b"capture" => Mode::Capture,
        b"exec" => Mode::Exec,
        _ => Mode::Off,
    };
    settings.folder = PathBuf::from(OsString::from_vec(text[colon + 1..].to_vec()));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_turns_everything_off() {
        let mode = |switch: Option<&str>, driver: Option<&str>| {
            read(switch.map(OsString::from), driver.map(OsString::from), None, None).mode
        };
        assert_eq!(mode(None, Some("list:/tmp/x")), Mode::List);
        assert_eq!(mode(Some("on"), Some("exec:x")), Mode::Exec);
        assert_eq!(mode(Some("off"), Some("exec:x")), Mode::Off);
        for driver in [None, Some(""), Some("exec"), Some("mist:x")] {
            assert_eq!(mode(None, driver), Mode::Off, "{driver:?}");
        }
        let settings = read(None, Some("capture:/a:b".into()), Some(7), None);
        assert_eq!((settings.folder, settings.most_bytes), ("/a:b".into(), 7));
    }
}
