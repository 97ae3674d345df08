//! The error type: whose fault it is, the problem, its place, and the accepted alternatives.
//!
//! A message is one line. It names the thing that the user wrote, not the function that failed.

use std::fmt;

use crate::violation::Violation;

/// Who has to act for the error to go away. Each has its own exit status on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The kernel or its data: exit status 1.
    Input,
    /// The way it was asked for (an unknown option, plan, parameter): exit status 2.
    Usage,
    /// The device, its driver or this machine cannot do it (a full disk, no memory left): exit status 3.
    Device,
    /// A bug of ours: exit status 4.
    Bug,
}

/// A result with Headstart's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The message, in the words that the command line prints.
///
/// Its `Debug` form is the message as well: a `main` that gives [`Result`] prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Details>);

#[derive(Clone, PartialEq, Eq)]
struct Details {
    fault: Fault,
    what: String,
    place: Option<String>,
    accepted: Option<String>,
    violation: Option<Violation>,
    is_named: bool,
}

impl Error {
    fn new(fault: Fault, what: impl Into<String>) -> Error {
        Error(Box::new(Details {
            fault,
            what: what.into(),
            place: None,
            accepted: None,
            violation: None,
            is_named: false,
        }))
    }

    /// The kernel or its input is at fault.
    #[doc(hidden)]
    pub fn input(what: impl Into<String>) -> Error {
        Error::new(Fault::Input, what)
    }

    /// An execution of the kernel breaks a rule.
    #[doc(hidden)]
    pub fn violation(violation: Violation) -> Error {
        let mut error = Error::new(Fault::Input, violation.to_string());
        error.0.violation = Some(violation);
        error
    }

    /// It was asked for in a way that is not understood.
    #[doc(hidden)]
    pub fn usage(what: impl Into<String>) -> Error {
        Error::new(Fault::Usage, what)
    }

    /// The device cannot do it.
    #[doc(hidden)]
    pub fn device(what: impl Into<String>) -> Error {
        Error::new(Fault::Device, what)
    }

    /// Headstart itself is wrong.
    #[doc(hidden)]
    pub fn bug(what: impl Into<String>) -> Error {
        Error::new(Fault::Bug, what)
    }

    /// Adds where it is: `gather.rs:41:9`, `model.toml:12`, `work-item 5 of work-group 2`.
    #[doc(hidden)]
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Error {
        self.0.place.get_or_insert_with(|| place.to_string());
        self
    }

    /// Adds the file, unless the place names it already.
    #[doc(hidden)]
    #[must_use]
    pub fn within(mut self, file: &str) -> Error {
        let named = self.0.place.as_ref().is_some_and(|place| place.contains(file));
        if !named {
            let place = self.0.place.take().map(|place| format!("{file}: {place}"));
            self.0.place = Some(place.unwrap_or_else(|| file.to_owned()));
        }
        self
    }

    /// Adds the accepted alternatives.
    #[doc(hidden)]
    #[must_use]
    pub fn accepted(mut self, accepted: impl fmt::Display) -> Error {
        self.0.accepted = Some(accepted.to_string());
        self
    }

    /// Adds another thing that would be accepted.
    #[doc(hidden)]
    #[must_use]
    pub fn or_accepted(mut self, accepted: impl fmt::Display) -> Error {
        self.0.accepted = Some(match self.0.accepted.take() {
            Some(known) => format!("{known}; or {accepted}"),
            None => accepted.to_string(),
        });
        self
    }

    /// Prefixes the operation that failed: `SUBJECT: what went wrong`.
    #[doc(hidden)]
    #[must_use]
    pub fn about(mut self, subject: impl fmt::Display) -> Error {
        self.0.what = format!("{subject}: {}", self.0.what);
        self.named()
    }

    /// Declares that the message names what it is about: [`Error::is_named`].
    #[doc(hidden)]
    #[must_use]
    pub fn named(mut self) -> Error {
        self.0.is_named = true;
        self
    }

    /// Whether the message names what it is about, so that [`Error::about`] would repeat it.
    #[doc(hidden)]
    pub fn is_named(&self) -> bool {
        self.0.is_named
    }

    /// Carries on the rule that an execution broke, from the error that this one is about.
    #[doc(hidden)]
    #[must_use]
    pub fn caused_by(mut self, cause: &Error) -> Error {
        self.0.violation.clone_from(&cause.0.violation);
        self
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.0.fault
    }

    /// The message without place and suggestion.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// Where it went wrong, if that is known.
    pub fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    /// The accepted alternatives, if known.
    pub fn accepts(&self) -> Option<&str> {
        self.0.accepted.as_deref()
    }

    /// The rule that an execution broke, if that is what went wrong.
    pub fn cause(&self) -> Option<&Violation> {
        self.0.violation.as_ref()
    }

    /// The whole message, without whose fault it is.
    #[doc(hidden)]
    pub fn unblamed(&self) -> String {
        let mut text = self
            .0
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!("{place}: "));
        text.push_str(&self.0.what);
        text.extend(self.0.accepted.iter().flat_map(|accepted| ["; ", accepted]));
        text
    }

    /// The exit status of a command that ends with this error.
    #[doc(hidden)]
    pub fn exit_status(&self) -> u8 {
        match self.0.fault {
            Fault::Input => 1,
            Fault::Usage => 2,
            Fault::Device => 3,
            Fault::Bug => 4,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.0.place {
            write!(f, "{place}: ")?;
        }
        if self.0.fault == Fault::Bug {
            write!(f, "a bug in Headstart: ")?;
        }
        write!(f, "{}", self.0.what)?;
        match &self.0.accepted {
            Some(accepted) => write!(f, "; {accepted}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
