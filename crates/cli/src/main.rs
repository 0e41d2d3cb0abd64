//! The command `spanlock`. It is in a library, so that its tests can have it with all features.

use std::process::ExitCode;

fn main() -> ExitCode {
    spanlock_cli::main()
}
