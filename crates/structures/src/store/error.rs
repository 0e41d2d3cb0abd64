//! What can go wrong.

use std::fmt;
use std::io;

/// The result of an operation of a store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of a store failed. Unless it says otherwise, the operation has changed nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no file or directory of that name.
    NotFound,
    /// The name is taken.
    Exists,
    /// A part of the path is no directory.
    NotDirectory,
    /// The operation is for files, and this is a directory.
    IsDirectory,
    /// The directory has entries.
    NotEmpty,
    /// The name is empty, `.` or `..`, or contains a slash or a zero byte; a directory would be moved into itself.
    Invalid(&'static str),
    /// A name is longer than 255 bytes, or a symbolic link's target than a log page has room for.
    NameTooLong,
    /// The offset is beyond [`MAX_FILE_SIZE`](crate::store::MAX_FILE_SIZE).
    TooLarge,
    /// There is no free page, or no free inode. A write has tried to free pages of logs.
    NoSpace,
    /// The store has begun 2^32 log pages and files since it was opened, and has no more numbers for them. Reopen it.
    /// Or the clock says that it is 2116 or later, and writes after that would have no order.
    Exhausted,
    /// The store does not do this to nodes of this kind.
    Unsupported(&'static str),
    /// A sync has failed. What was not durable before may be lost, and nothing more is written. Reopen the store.
    Poisoned,
    /// Another process, or another part of this one, has opened the store.
    Busy,
    /// The medium contains no store.
    NotAStore(&'static str),
    /// The store was made by another version of this program.
    Version(u32),
    /// The store is damaged: what, and where. `spanlock store check` lists all damage. A write that finds the log of
    /// its file damaged, since the log was to be rewritten, has happened.
    Corrupt(String),
    /// The medium failed.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file or directory"),
            Self::Exists => f.write_str("the name is taken"),
            Self::NotDirectory => f.write_str("not a directory"),
            Self::IsDirectory => f.write_str("is a directory"),
            Self::NotEmpty => f.write_str("the directory is not empty"),
            Self::Invalid(what) | Self::Unsupported(what) => f.write_str(what),
            Self::NameTooLong => f.write_str("the name is too long"),
            Self::TooLarge => f.write_str("beyond the largest size of a file"),
            Self::NoSpace => f.write_str("the store is full"),
            Self::Exhausted => {
                f.write_str("no more numbers for log pages and files (reopen the store), or a clock beyond 2116")
            }
            Self::Poisoned => {
                f.write_str("an earlier sync failed, so the store takes no more writes; reopen it")
            }
            Self::Busy => f.write_str("the store is open already"),
            Self::NotAStore(why) => write!(f, "this is no store: {why}"),
            Self::Version(found) => write!(
                f,
                "the store has format version {found}, and this program reads version {}",
                crate::store::FORMAT_VERSION
            ),
            Self::Corrupt(what) => write!(f, "the store is damaged: {what}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
