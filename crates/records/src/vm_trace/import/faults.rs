//! Page faults from `perf script`.

use super::{Error, Seen, page, time, wrong};
use crate::vm_trace::trace::Call;

/// The faults of a process. What they were for is not known yet.
pub(super) fn faults(script: &str, process: u32) -> Result<Vec<Seen>, Error> {
    let mut faults = Vec::new();
    for line in script.lines() {
        match fault(line) {
            Some((found, seen)) if found == process => faults.push(seen),
            Some(_) => {}
            None => return wrong(format!("perf: `{line}` is no fault")),
        }
    }
    Ok(faults)
}

/// The process, and the fault: `PROCESS/THREAD SECONDS: ADDRESS`.
fn fault(line: &str) -> Option<(u32, Seen)> {
    let mut fields = line.split_whitespace();
    let (process, thread) = fields.next()?.split_once('/')?;
    let when = time(fields.next()?.strip_suffix(':')?)?;
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let call = Call::Fault {
        page: page(address),
        access: 0,
    };
    let thread = thread.parse().ok()?;
    Some((
        process.parse().ok()?,
        Seen {
            thread,
            begin: when,
            end: when,
            call,
        },
    ))
}
