//! The Rust examples of the documents, compiled and run as doctests. Each document with an example is named here.

#![cfg(doctest)]

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

documents!["README.md", "docs/owners.md"];
