//! `headstart offload`: which loops of a program are worth a device.

use headstart::advise::offload::{loops_of, offload, text};
use headstart::files;
use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::arguments;
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::terminal;

/// The longest profile, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Runs the command.
pub fn run(options: &arguments::Offload) -> Result<()> {
    let place = quoted(&options.profile.to_string_lossy());
    let json = Destination::asked("--json", options.json.as_deref())?;
    let chosen = device::find(&options.device, &options.model)?;
    let model = chosen.model().ok_or_else(|| {
        Error::usage(format!("{} has no model", chosen.name()))
            .accepted("`--device sim:NAME`, or a model file")
    })?;
    if options
        .program
        .is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite()))
    {
        return Err(Error::usage("`--program` is not a time").accepted("seconds, above 0"));
    }
    let profile = files::text(&options.profile, MAX_BYTES)
        .map_err(|error| Error::input(format!("the profile cannot be read: {error}")).at(&place))?;
    let loops = loops_of(&profile).map_err(|error| error.at(&place))?;
    let found = offload(model, &loops, options.program);
    match json {
        Some(json) => json.write(&json_line(&found)?),
        None => print(&text(&found, terminal::output())),
    }
}
