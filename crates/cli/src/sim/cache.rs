//! Results kept from one command to the next, so that a figure can be extended.
//!
//! A result is a file of its own, whose name is a digest of all that it follows from and whose content has that in
//! full. What cannot be read or is of something else is not there.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// A folder of results of one build.
pub(super) struct Cache {
    folder: PathBuf,
    commit: String,
    warned: Once,
}

#[derive(Serialize, Deserialize)]
struct Kept<R> {
    commit: String,
    of: String,
    result: R,
}

impl Cache {
    /// For a build from that commit; `None` if its sources are in no commit, so that two of them may differ.
    pub(super) fn new(folder: PathBuf, commit: &str) -> Option<Self> {
        let is_known = !commit.ends_with("-dirty") && commit.chars().all(|c| c.is_ascii_hexdigit());
        is_known.then(|| Self {
            folder,
            commit: commit.to_owned(),
            warned: Once::new(),
        })
    }

    /// The folder for this user, as far as the environment names it.
    pub(super) fn of_user() -> Option<PathBuf> {
        let named = |name| std::env::var_os(name).map(PathBuf::from);
        let absolute = |path: &PathBuf| path.is_absolute();
        let cache = named("XDG_CACHE_HOME").filter(absolute);
        let home = || named("HOME").filter(absolute);
        let cache = cache.or_else(|| Some(home()?.join(".cache")));
        Some(cache?.join("spanlock"))
    }

    /// The result that was kept, or else what `find` finds, which is kept.
    pub(super) fn get_or<R: Serialize + DeserializeOwned, E>(
        &self,
        of: &str,
        find: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let path = self.path(of);
        match self.read(&path, of) {
            Ok(Some(result)) => return Ok(result),
            Ok(None) => {}
            Err(error) => self.warn(&path, error),
        }
        let kept = Kept {
            commit: self.commit.clone(),
            of: of.to_owned(),
            result: find()?,
        };
        if let Err(error) = self.write(&path, &kept) {
            self.warn(&path, error);
        }
        Ok(kept.result)
    }

    fn path(&self, of: &str) -> PathBuf {
        let mut digest = DefaultHasher::new();
        (&self.commit, of).hash(&mut digest);
        self.folder.join(format!("{:016x}.json", digest.finish()))
    }

    fn read<R: DeserializeOwned>(&self, path: &Path, of: &str) -> io::Result<Option<R>> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let kept: Kept<R> = serde_json::from_slice(&text)?;
        Ok((kept.commit == self.commit && kept.of == of).then_some(kept.result))
    }

    fn write<R: Serialize>(&self, path: &Path, kept: &Kept<R>) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // Complete before it has its name: a reader finds all of it or nothing.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&mut file, kept)?;
        file.persist(path)?;
        Ok(())
    }

    /// Once: what is wrong with one file is often wrong with all.
    fn warn(&self, path: &Path, error: impl Display) {
        self.warned.call_once(|| {
            let path = path.display();
            // If the standard error is closed, the warning is lost.
            let _ = writeln!(io::stderr(), "warning: {path}: {error}; not used");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use std::fs;

    fn found(cache: &Cache, of: &str, fresh: f64) -> f64 {
        cache.get_or(of, || Ok::<_, ()>(fresh)).unwrap()
    }

    #[test]
    fn results_are_kept_for_a_commit_and_all_they_follow_from() {
        let folder = tempfile::tempdir().unwrap();
        let of = |commit| Cache::new(folder.path().join("new"), commit);
        let cache = of("0123abcd").unwrap();
        assert_eq!(found(&cache, "one", 0.1), 0.1);
        assert_eq!(found(&cache, "one", 2.0), 0.1);
        assert_eq!(found(&cache, "two", 3.0), 3.0);
        assert_eq!(found(&of("0123abce").unwrap(), "one", 4.0), 4.0);
        assert!(of("0123abcd-dirty").is_none() && of("unknown").is_none());
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), "0123abcd").unwrap();
        assert_eq!(found(&cache, "one", 1.0), 1.0);
        fs::write(cache.path("one"), "{").unwrap();
        assert_eq!(found(&cache, "one", 2.0), 2.0);
        assert_eq!(found(&cache, "one", 3.0), 2.0, "mended");
        // Of another, as if their digests were equal.
        fs::copy(cache.path("one"), cache.path("two")).unwrap();
        assert_eq!(found(&cache, "two", 4.0), 4.0);
        fs::remove_file(cache.path("one")).unwrap();
        fs::create_dir(cache.path("one")).unwrap();
        assert_eq!(found(&cache, "one", 5.0), 5.0);
        let nowhere = Cache::new("/dev/null/x".into(), "0123abcd").unwrap();
        assert_eq!(found(&nowhere, "one", 6.0), 6.0);
    }

    #[test]
    fn failures_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), "0123abcd").unwrap();
        assert_eq!(cache.get_or("one", || Err::<f64, _>("no")), Err("no"));
        assert_eq!(found(&cache, "one", 1.0), 1.0);
    }
}
