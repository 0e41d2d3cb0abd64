//! The kernel's numbers for the store's types.

use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};
use spanlock_structures::store::{Error, Kind, PAGE, Stat};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of a node for the kernel. The store uses a node's number again when the node is gone; generations are
/// used once, and all but the root's are large.
pub(crate) fn id_of(stat: &Stat) -> u64 {
    match stat.generation {
        0 => INodeNo::ROOT.0,
        generation => generation,
    }
}

pub(crate) fn attributes_of(stat: &Stat) -> FileAttr {
    let times = &stat.attributes;
    let bytes = match stat.kind {
        Kind::Directory => PAGE as u64, // Directories have no size of their own.
        _ => stat.size,
    };
    FileAttr {
        ino: INodeNo(id_of(stat)),
        size: bytes,
        blocks: stat.pages * (PAGE as u64 / 512),
        atime: time_of(times.accessed),
        mtime: time_of(times.modified),
        ctime: time_of(times.changed),
        crtime: UNIX_EPOCH,
        kind: type_of(stat.kind, times.mode),
        perm: u16::try_from(times.mode & 0o7777).expect("twelve bits"),
        nlink: stat.links,
        uid: times.uid,
        gid: times.gid,
        rdev: stat.device,
        blksize: u32::try_from(PAGE).expect("4096"),
        flags: 0,
    }
}

/// The type of a node. Special nodes have it in their mode.
pub(crate) fn type_of(kind: Kind, mode: u32) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Special => match mode & libc::S_IFMT {
            libc::S_IFCHR => FileType::CharDevice,
            libc::S_IFBLK => FileType::BlockDevice,
            libc::S_IFSOCK => FileType::Socket,
            _ => FileType::NamedPipe,
        },
    }
}

/// The kind of a node of this mode.
pub(crate) fn kind_of(mode: u32) -> Kind {
    match mode & libc::S_IFMT {
        libc::S_IFREG | 0 => Kind::File,
        _ => Kind::Special,
    }
}

fn time_of(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    match nanoseconds {
        0.. => UNIX_EPOCH + distance,
        _ => UNIX_EPOCH - distance,
    }
}

/// Nanoseconds since 1970. Times that do not fit become the nearest that do.
pub(crate) fn nanoseconds(time: TimeOrNow) -> i64 {
    let time = match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |time| -time),
    }
}

/// What a program is told of an error.
pub(crate) fn errno(error: &Error) -> Errno {
    match error {
        Error::NotFound => Errno::ENOENT,
        Error::Exists => Errno::EEXIST,
        Error::NotDirectory => Errno::ENOTDIR,
        Error::IsDirectory => Errno::EISDIR,
        Error::NotEmpty => Errno::ENOTEMPTY,
        Error::Invalid(_) => Errno::EINVAL,
        Error::NameTooLong => Errno::ENAMETOOLONG,
        Error::TooLarge => Errno::EFBIG,
        Error::NoSpace | Error::Exhausted => Errno::ENOSPC,
        Error::Unsupported(_) => Errno::ENOTSUP,
        Error::Busy => Errno::EBUSY,
        Error::Io(error) => error.raw_os_error().map_or(Errno::EIO, Errno::from_i32),
        _ => Errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        for time in [0, 1, -1, 1_700_000_000_123_456_789, i64::MAX, -999_999_999] {
            assert_eq!(nanoseconds(TimeOrNow::SpecificTime(time_of(time))), time);
        }
    }
}
