//! The names of protocol edges, from where they stand in source files. Also part of other crates' build scripts.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// Those in `intact!("…")` and `order!("…"` in the files of a folder, and of the folders in it.
pub fn named_in(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut edges = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            edges.append(&mut named_in(&path)?);
            continue;
        }
        let text = fs::read_to_string(&path)?;
        for opening in ["intact!(", "order!("] {
            edges.extend(text.split(opening).skip(1).filter_map(|rest| {
                let name = rest.trim_start().strip_prefix('"')?;
                Some(name.split('"').next()?.to_owned())
            }));
        }
    }
    Ok(edges)
}
