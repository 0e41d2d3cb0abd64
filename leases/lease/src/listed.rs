//! What engines list for people.

use crate::{Mode, RequestId, Span};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// A lease, a wish for one, or a time in which none is granted.
#[derive(Debug, Clone)]
pub struct Listed<R = Span> {
    /// The resource.
    pub resource: String,
    /// Whether it is held.
    pub state: State,
    /// The range.
    pub span: R,
    /// How it is held or wished for.
    pub mode: Mode,
    /// Who asked, as the engine knows it. Nobody has asked for a grace.
    pub client: String,
    /// The name of the request. Of a grace, it is the number 0.
    pub id: RequestId,
    /// How long ago it was granted or wished for, or began. A clock says so that may be set.
    pub age: Duration,
    /// When it ends, unless it is renewed.
    pub left: Duration,
}

/// Whether a range is held, or could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is.
    Held,
    /// Somebody waits for it.
    Awaited,
    /// Nobody is granted it, and holders renew: the server was restored or replaced, and may lack the latest leases.
    Grace,
}

impl<R> Listed<R> {
    /// That nothing of a resource, all of which is `span`, is granted until a time has passed.
    #[must_use]
    pub fn grace(resource: String, span: R, age: Duration, left: Duration) -> Self {
        Self {
            resource,
            state: State::Grace,
            span,
            mode: Mode::Exclusive,
            client: String::new(),
            id: RequestId::NONE,
            age,
            left,
        }
    }
}

/// By which people know this process: its program, its number, and its machine.
#[must_use]
pub fn client_name() -> String {
    let program = std::env::current_exe().ok();
    client_name_of(program.as_deref().unwrap_or(Path::new("unknown")))
}

/// By which people know this process if it stands for another program: that, its number, and its machine.
#[must_use]
pub fn client_name_of(program: &Path) -> String {
    let program = program
        .file_name()
        .map_or("unknown".into(), OsStr::to_string_lossy);
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    format!("{program}[{}]@{machine}", std::process::id())
}
