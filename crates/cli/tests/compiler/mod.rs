//! C programs that the tests run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of `tests/programs` under another name. `None`, with a printed reason, if there is no compiler.
pub fn compiled(source: &str, name: &str, flags: &[&str], options: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(flags).arg("-o").arg(&program);
    match command.arg(folder.join(source)).args(options).status() {
        Ok(status) => {
            assert!(status.success(), "{source} does not compile");
            Some(program)
        }
        Err(error) => {
            println!("skipped: no C compiler: {}: {error}", compiler.display());
            None
        }
    }
}
