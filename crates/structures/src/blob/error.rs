//! Why a request was refused.

use std::fmt;

/// Why a request was refused. After any of these, pool and area are as before, and can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Every place of the area that the alias could have was held when it was tried. Other threads' guards and caches
    /// hold them: drop some, make the area larger, or try again.
    AreaFull,
    /// The alias is longer than the area.
    TooLong {
        /// The length of the alias.
        bytes: usize,
        /// The length of the area.
        area: usize,
    },
    /// The pool has no free extent of that length.
    PoolFull {
        /// The length asked for.
        bytes: usize,
    },
    /// An extent is not of the pool that the area is for.
    ForeignExtent,
    /// A length is not a positive multiple of the page size.
    Misaligned {
        /// The length.
        bytes: usize,
        /// The page size.
        page: usize,
    },
    /// The process was forked after the pool was made.
    Forked,
    /// A system call failed.
    System {
        /// Its name.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AreaFull => f.write_str("no place in the area is free for the alias"),
            Self::TooLong { bytes, area } => {
                write!(f, "the alias has {bytes} bytes, the area {area}")
            }
            Self::PoolFull { bytes } => write!(f, "no {bytes} bytes in a row are free in the pool"),
            Self::ForeignExtent => f.write_str("an extent is not of the area's pool"),
            Self::Misaligned { bytes, page } => {
                write!(
                    f,
                    "{bytes} bytes are no positive multiple of a page of {page}"
                )
            }
            Self::Forked => f.write_str("the pool is not available in a child process"),
            Self::System { call, errno } => {
                let error = std::io::Error::from_raw_os_error(errno);
                write!(f, "{call}: {error}")
            }
        }
    }
}

impl std::error::Error for Error {}
