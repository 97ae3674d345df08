//! `headstart completions` and `headstart man`: the files that a package installs beside the command.

use std::fs;

use clap::CommandFactory;
use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::arguments::{Arguments, Completions, Man};
use headstart_cli::output::print_as_it_is;

/// Prints a shell's completions.
pub fn completions(options: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "headstart", &mut script);
    let script = String::from_utf8(script);
    print_as_it_is(&script.map_err(|error| Error::bug(format!("the completions are not text: {error}")))?)
}

/// Writes a manual page for the command and for each of its commands.
pub fn man(options: &Man) -> Result<()> {
    let refused = |error: std::io::Error| {
        let shown = quoted(&options.folder.to_string_lossy());
        Error::device(format!("the pages cannot be written: {error}")).at(shown)
    };
    fs::create_dir_all(&options.folder).map_err(refused)?;
    clap_mangen::generate_to(Arguments::command(), &options.folder).map_err(refused)
}
