//! Any bytes as a SPIR-V module: it is read or refused, with the party at fault, and accepted modules can be written again.

use headstart::Fault;
use headstart::back::spirv::{Options, SpirvTarget};
use headstart::front::ptx::Facts;
use headstart::front::spirv::Module;
use headstart::tune;

/// Most entries of a module that are read.
const MOST_ENTRIES: usize = 4;

/// Checks a module; gives how many entries were read and refused.
///
/// # Panics
/// What went wrong is a bug.
pub fn check(bytes: &[u8]) -> (u32, u32) {
    let module = match Module::new(bytes, "fuzzed.spv") {
        Ok(module) => module,
        Err(error) => {
            assert_ne!(error.fault(), Fault::Bug, "{error}");
            return (0, 1);
        }
    };
    let facts = Facts {
        dynamic_shared_bytes: Some(1024),
        no_overflow: true,
        ..Facts::default()
    };
    let (mut read, mut refused) = (0, 0);
    for name in module.entries().into_iter().take(MOST_ENTRIES) {
        match module.import(Some(name), &facts) {
            Ok(imported) => {
                let options = Options::new(SpirvTarget::IntelLsc);
                match tune::exchanged(&imported.original, &imported.kernel, &options) {
                    Ok(words) => {
                        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                        Module::new(&bytes, "again.spv").expect("what is written is a module");
                    }
                    Err(error) => assert_ne!(error.fault(), Fault::Bug, "{error}"),
                }
                read += 1;
            }
            Err(error) => {
                assert_ne!(error.fault(), Fault::Bug, "{error}");
                refused += 1;
            }
        }
    }
    (read, refused)
}
