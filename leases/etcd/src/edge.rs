//! Named edges of the protocol, which a model can leave out one at a time.

/// Whether a step is taken: always, except in the model of what happens without it.
#[cfg(not(test))]
pub(crate) const fn intact(_edge: &str) -> bool {
    true
}

#[cfg(test)]
thread_local! {
    /// The edge that the model of this thread leaves out.
    pub(crate) static LEFT_OUT: std::cell::Cell<&'static str> = const { std::cell::Cell::new("none") };
}

#[cfg(test)]
pub(crate) fn intact(edge: &str) -> bool {
    LEFT_OUT.get() != edge
}
