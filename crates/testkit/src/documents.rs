//! The Rust examples of the documents, compiled and run as doctests. Each document with an example is named here.

macro_rules! documents {
    ($($path:literal),+ $(,)?) => {
        $(
            const _: () = {
                #[doc = include_str!(concat!("../../../", $path))]
                pub struct Document;
            };
        )+
    };
}

documents![
    "README.md",
    "docs/async.md",
    "docs/conformance.md",
    "docs/deadlocks.md",
    "docs/keys.md",
    "docs/owners.md",
    "docs/guide/README.md",
    "docs/guide/async.md",
    "docs/guide/records.md",
    "docs/guide/transactions.md",
    "docs/guide/checkpoints.md",
    "docs/guide/cache.md",
    "docs/guide/hangs.md",
    "docs/guide/moving.md",
];
