//! Options of the commands that print text about the command itself: `plans`, `completions`, `man`.

use std::path::PathBuf;

use clap::Args;

/// The grammar of plans, as `headstart plans` prints it.
pub const PLANS: &str = "\
A plan names the loads to fetch early, the strategy, and the distance in iterations.

  plan      none                          the kernel as it is
            unroll:N  unroll:full         unroll the loop N times
            early                         the loads of an iteration first, then their uses
            inner:N                       make N iterations of the loops inside part of the loop
            registers:R                   let the compiler use R registers a work-item (PTX)
            [inner:N,][unroll:N,][registers:R,]LOAD=STRATEGY,…
                                          fetch loads early, optionally in a loop changed so
  LOAD      values                        the load from this parameter
            values@*                      all of its loads, where it has several
            values@row                    those in the loop of this name
            values@gather.rs:41           those in this source line
  STRATEGY  batched-registers:D           load the values of D iterations, then use them
            rolling-registers:D           a ring of registers, filled D iterations ahead
            batched-shared:D[/LAYOUT]     like batched-registers, in shared memory
            rolling-shared:D[/LAYOUT]     like rolling-registers, in shared memory
            rolling-async:D[/LAYOUT]      asynchronous copies into a ring in shared memory
            cache:LEVEL:D[/nt]            a prefetch hint to L1, L2, L3 or L4, D iterations ahead
            joint:LEVEL:D[/nt][/group]    a hint shared by a sub-group or work-group
            bulk:L2:D                     one hint for the cache line of a whole sub-group
  LAYOUT    interleaved (default), padded, plain
  D         the distance: 1 to 4096 iterations ahead of the use; with unroll:N a multiple of N

Index loads need not be named: those that a prefetched load depends on are fetched before it.
Plans in a list are separated by semicolons.

  unroll:8,values=rolling-async:16/interleaved,indices=rolling-registers:24
";

/// The options of `headstart completions`.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  headstart completions bash > ~/.local/share/bash-completion/completions/headstart";

/// The options of `headstart man`.
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub struct Man {
    /// The folder, created if necessary
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

const MAN_EXAMPLES: &str = "\
Examples:
  headstart man ~/.local/share/man/man1";
