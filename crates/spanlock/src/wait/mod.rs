//! How threads sleep and are woken.

mod parker;

pub(crate) use parker::{Parker, Ticket, Wakeups};
