//! What the command `headstart` and the repository's laboratory share: devices, output, progress, and how a command ends. It
//! promises nothing to other programs.

pub mod device;
pub mod output;
pub mod progress;
pub mod published;
pub mod terminal;
pub mod toolkit;

use std::panic::{self, UnwindSafe};
use std::process::ExitCode;

use headstart::{Error, Result};

/// Runs a command, whose exit status is 0 but for that of a program that was run, and says what went wrong.
pub fn run(look: &terminal::Look, command: impl FnOnce() -> Result<u8> + UnwindSafe) -> ExitCode {
    terminal::set_up(look);
    // A bug of ours is said in one line, like everything else; RUST_BACKTRACE asks for more.
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|_| ()));
    }
    let outcome = panic::catch_unwind(command).unwrap_or_else(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it stopped without a word");
        Err(Error::bug(said.replace('\n', " ")).accepted("please report it with the command that you ran"))
    });
    match outcome {
        Ok(_) if progress::was_interrupted() => ExitCode::from(progress::INTERRUPTED_STATUS),
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // Standard error may be closed as well; the status still tells the outcome.
            let line = format!("{}\n", terminal::errors().fitted(&format!("headstart: {error}")));
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            ExitCode::from(error.exit_status())
        }
    }
}
