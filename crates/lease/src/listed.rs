//! What engines list for people.

use crate::{Mode, RequestId, Span};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// A lease, or a wish for one.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The resource.
    pub resource: String,
    /// Whether it is held.
    pub state: State,
    /// The range.
    pub span: Span,
    /// How it is held or wished for.
    pub mode: Mode,
    /// Who asked, as the engine knows it.
    pub client: String,
    /// The name of the request.
    pub id: RequestId,
    /// How long ago it was granted, or wished for. A clock says so that may be set.
    pub age: Duration,
    /// When it ends, unless it is renewed.
    pub left: Duration,
}

/// Whether a range is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is.
    Held,
    /// Somebody waits for it.
    Awaited,
}

/// By which people know this process: its program, its number, and its machine.
#[must_use]
pub fn client_name() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name);
    let program = program.map_or("unknown".into(), OsStr::to_string_lossy);
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    format!("{program}[{}]@{machine}", std::process::id())
}
