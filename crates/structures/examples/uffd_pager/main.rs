//! Memory that a pager serves: pages come from elsewhere when they are first touched, and are dropped again.
//!
//! The kernel reports a missing page through userfaultfd, and several handlers serve these reports. A handler loads
//! the whole cluster around a page, since its neighbours are likely to be wanted next. So handlers may want the same
//! pages at a time, and an evictor wants to drop pages that a handler is about to install. A range lock keeps them
//! apart: whoever loads or drops pages holds their range. Clusters that do not overlap are served side by side.
//!
//! ```text
//!   program     touches a page ──────────────> (sleeps) ─────────────────────────> goes on
//!   handler       │ reads the report, locks the cluster, loads it, installs it, wakes, unlocks
//!   evictor       │                        waits for the lock ────────────────────────> drops the pages
//! ```
//!
//! Each load has to find its page missing (the kernel says so if it is not), and each read has to find what was
//! loaded. Without the lock both fail.
//!
//!     cargo run -p spanlock-structures --example uffd_pager
//!
//! Where userfaultfd is not to be had, the example says why and ends.

#[cfg(target_os = "linux")]
mod pager;

fn main() {
    #[cfg(target_os = "linux")]
    match pager::run() {
        Ok(report) => println!("{report}"),
        Err(error) => println!("skipped: userfaultfd is not to be had: {error}"),
    }
    #[cfg(not(target_os = "linux"))]
    println!("skipped: userfaultfd is Linux's");
}
