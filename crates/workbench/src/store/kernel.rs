//! What threads do to files.

use serde::{Deserialize, Serialize};
use spanlock_records::by_name;

/// What threads do to files. Unless the name says otherwise, an operation is on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// FxMark: each writes the first page of its own region of one file, over and over.
    Dwom,
    /// FxMark: each writes the first page of a file of its own.
    Dwol,
    /// FxMark: each reads the first page of its own region of one file.
    Drbm,
    /// FxMark: each reads the first page of a file of its own.
    Drbl,
    /// The first page of the own region: three writes for each read (P3, Fig. 12 (c)).
    #[serde(rename = "mix-3-1")]
    Mix31,
    /// The first page of the own region: one write for three reads (P3, Fig. 12 (d)).
    #[serde(rename = "mix-1-3")]
    Mix13,
    /// Writes of random pages of the own region (P3, Fig. 15 (a)).
    RandomWrite,
    /// Reads of random pages of the own region (P3, Fig. 15 (b)).
    RandomRead,
    /// Writes of random pages of the whole file: threads meet.
    OverlapWrite,
    /// As many reads as writes of random pages of the whole file.
    OverlapMixed,
    /// HACC-IO: each writes a checkpoint of nine arrays to its own part of one file. An operation is a checkpoint.
    Hacc,
}

by_name!(Kernel);

/// The files of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// One, in which each thread has a region.
    Shared,
    /// One for each thread.
    Private,
}

/// The pages that a thread uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The first of its region.
    First,
    /// Any of its region.
    Own,
    /// Any of the file.
    Any,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Dwom,
        Self::Dwol,
        Self::Drbm,
        Self::Drbl,
        Self::Mix31,
        Self::Mix13,
        Self::RandomWrite,
        Self::RandomRead,
        Self::OverlapWrite,
        Self::OverlapMixed,
        Self::Hacc,
    ];

    /// The files that it uses.
    #[must_use]
    pub const fn files(self) -> Files {
        match self {
            Self::Dwol | Self::Drbl => Files::Private,
            _ => Files::Shared,
        }
    }

    /// The pages that a thread uses.
    #[must_use]
    pub const fn pages(self) -> Pages {
        match self {
            Self::Dwom | Self::Dwol | Self::Drbm | Self::Drbl | Self::Mix31 | Self::Mix13 => {
                Pages::First
            }
            Self::RandomWrite | Self::RandomRead | Self::Hacc => Pages::Own,
            Self::OverlapWrite | Self::OverlapMixed => Pages::Any,
        }
    }

    /// Of four operations, those that read.
    #[must_use]
    pub const fn reads_of_four(self) -> u8 {
        match self {
            Self::Dwom | Self::Dwol | Self::RandomWrite | Self::OverlapWrite | Self::Hacc => 0,
            Self::Mix31 => 1,
            Self::OverlapMixed => 2,
            Self::Mix13 => 3,
            Self::Drbm | Self::Drbl | Self::RandomRead => 4,
        }
    }

    /// It, in words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Dwom => "DWOM: writes, a page each of one file",
            Self::Dwol => "DWOL: writes, a page each of files of their own",
            Self::Drbm => "DRBM: reads, a page each of one file",
            Self::Drbl => "DRBL: reads, a page each of files of their own",
            Self::Mix31 => "three writes to a read, a page each of one file",
            Self::Mix13 => "a write to three reads, a page each of one file",
            Self::RandomWrite => "writes of random pages of own regions",
            Self::RandomRead => "reads of random pages of own regions",
            Self::OverlapWrite => "writes of random pages of the whole file",
            Self::OverlapMixed => "reads and writes of random pages of the whole file",
            Self::Hacc => "HACC-IO: checkpoints in one file",
        }
    }
}
