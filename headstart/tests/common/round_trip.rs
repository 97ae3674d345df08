//! What must hold of any text that is given to the parser.

use headstart::{Fault, ir};

/// Reads any text as a kernel. It may be refused with one line that blames the input; what is accepted
/// prints and reads back as the same kernel, and what then verifies is the same after another turn.
///
/// True if it was accepted.
pub fn check(text: &str) -> bool {
    let kernel = match ir::parse(text, "fuzzed.hsir") {
        Ok(kernel) => kernel,
        Err(error) => {
            let message = error.to_string();
            assert_eq!(error.fault(), Fault::Input, "{message}");
            assert!(message.starts_with("fuzzed.hsir:"), "{message}");
            assert!(!message.chars().any(char::is_control), "{message:?}");
            assert!(message.len() < 5000, "{message}");
            return false;
        }
    };
    let printed = ir::print(&kernel);
    let again = ir::parse(&printed, "printed.hsir").unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(ir::print(&again), printed);
    let verified = ir::verify(&kernel);
    let verified_again = ir::verify(&again);
    assert_eq!(
        verified.is_ok(),
        verified_again.is_ok(),
        "{verified:?} {verified_again:?}\n{printed}"
    );
    match verified {
        Ok(()) => assert_eq!(ir::first_difference(&kernel, &again), None, "\n{printed}"),
        Err(error) => assert_eq!(error.fault(), Fault::Input, "{error}"),
    }
    assert_eq!(ir::read(text, "fuzzed.hsir").is_ok(), ir::verify(&kernel).is_ok());
    true
}
