//! What is kept in etcd, as keys and as what they mean.
//!
//! | key, below `PREFIX/RESOURCE/` | value | lease of etcd |
//! |---|---|---|
//! | `version` | the epoch of fences, and the cluster's number | none |
//! | `held/REQUEST` | what is held | the lease's, for its ttl |
//! | `wish/REQUEST` | what is wished for | the wish's, for 5 s |
//! | `grace` | nothing; while it is there, nothing is granted | for the longest ttl |
//!
//! All values are text, for people who look with `etcdctl get --prefix`.

use crate::config::encoded;
use crate::wire::{KeyValue, RangeRequest, ResponseHeader};
use spanlock_lease::{Mode, RequestId, Span};
use std::fmt;

/// The keys of one resource.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// With the `/` at its end.
    below: String,
}

/// What a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Version,
    Grace,
    Held(RequestId),
    Wish(RequestId),
}

impl Keys {
    pub(crate) fn new(prefix: &str, resource: &str) -> Self {
        Self {
            below: format!("{prefix}/{}/", encoded(resource)),
        }
    }

    pub(crate) fn key(&self, place: Place) -> Vec<u8> {
        let below = &self.below;
        match place {
            Place::Version => format!("{below}version"),
            Place::Grace => format!("{below}grace"),
            Place::Held(id) => format!("{below}held/{id}"),
            Place::Wish(id) => format!("{below}wish/{id}"),
        }
        .into_bytes()
    }

    pub(crate) fn place(&self, key: &[u8]) -> Option<Place> {
        place(key.strip_prefix(self.below.as_bytes())?)
    }

    /// All of them.
    pub(crate) fn all(&self) -> RangeRequest {
        below(self.below.clone())
    }

    /// Those of wishes.
    pub(crate) fn wishes(&self) -> RangeRequest {
        below(format!("{}wish/", self.below))
    }
}

/// All keys that begin so. The text ends with `/`, after which comes `0`.
pub(crate) fn below(text: String) -> RangeRequest {
    let key = text.into_bytes();
    let mut range_end = key.clone();
    *range_end.last_mut().expect("it ends with a /") += 1;
    RangeRequest { key, range_end }
}

/// What the end of a key stands for, after the resource.
pub(crate) fn place(end: &[u8]) -> Option<Place> {
    let end = std::str::from_utf8(end).ok()?;
    match end.split_once('/') {
        None if end == "version" => Some(Place::Version),
        None if end == "grace" => Some(Place::Grace),
        Some(("held", id)) => Some(Place::Held(id.parse().ok()?)),
        Some(("wish", id)) => Some(Place::Wish(id.parse().ok()?)),
        _ => None,
    }
}

/// A range that is held or wished for, as its value says: `exclusive FIRST LAST EPOCH SINCE CLIENT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) span: Span,
    pub(crate) mode: Mode,
    /// In which it was granted. Of a wish, in which it came.
    pub(crate) epoch: u32,
    /// When the client's clock says that it began, in milliseconds since 1970. Nothing but a listing looks at it.
    pub(crate) since: u64,
    /// By which people know who asked.
    pub(crate) client: String,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Shared => "shared",
            Mode::Exclusive => "exclusive",
        };
        let (first, last) = (self.span.start(), self.span.last());
        write!(
            f,
            "{mode} {first} {last} {} {} {}",
            self.epoch, self.since, self.client
        )
    }
}

impl Claim {
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(value).ok()?.splitn(6, ' ');
        let mode = match words.next()? {
            "shared" => Mode::Shared,
            "exclusive" => Mode::Exclusive,
            _ => return None,
        };
        let mut number = || words.next()?.parse::<u64>().ok();
        let (first, last, epoch, since) = (number()?, number()?, number()?, number()?);
        Some(Self {
            span: Span::inclusive(first, last)?,
            mode,
            epoch: epoch.try_into().ok()?,
            since,
            client: words.next()?.to_owned(),
        })
    }

    /// Whether it excludes the other one.
    pub(crate) fn conflicts(&self, span: Span, mode: Mode) -> bool {
        self.span.overlaps(span) && self.mode.conflicts(mode)
    }
}

/// What is held, or wished for.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: RequestId,
    pub(crate) claim: Claim,
    /// The transaction that made it.
    pub(crate) created: i64,
    /// The latest one that wrote it.
    pub(crate) modified: i64,
}

impl Entry {
    pub(crate) fn new(id: RequestId, kv: &KeyValue) -> Option<Self> {
        Some(Self {
            id,
            claim: Claim::parse(&kv.value)?,
            created: kv.create_revision,
            modified: kv.mod_revision,
        })
    }
}

/// The key `version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Version {
    /// 0 if there is no such key.
    pub(crate) epoch: u32,
    /// The cluster in which the epoch began.
    pub(crate) cluster: u64,
    /// The transaction that wrote it last: the last one that granted. 0 if there is no such key.
    pub(crate) modified: i64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:x}", self.epoch, self.cluster)
    }
}

impl Version {
    fn parse(kv: &KeyValue) -> Option<Self> {
        let (epoch, cluster) = std::str::from_utf8(&kv.value).ok()?.split_once(' ')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            cluster: u64::from_str_radix(cluster, 16).ok()?,
            modified: kv.mod_revision,
        })
    }
}

/// All that is known of a resource, at one revision.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) revision: i64,
    pub(crate) cluster: u64,
    pub(crate) version: Version,
    pub(crate) in_grace: bool,
    pub(crate) held: Vec<Entry>,
    pub(crate) wishes: Vec<Entry>,
}

/// A key that this library has not written. It may stand for something that is held.
#[derive(Debug)]
pub(crate) struct Foreign(pub(crate) Vec<u8>);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = String::from_utf8_lossy(&self.0);
        write!(
            f,
            "the key {key:?} is none that this version of the library writes"
        )
    }
}

impl std::error::Error for Foreign {}

impl State {
    /// # Errors
    /// A key that is not understood.
    pub(crate) fn parse(
        keys: &Keys,
        header: ResponseHeader,
        kvs: &[KeyValue],
    ) -> Result<Self, Foreign> {
        let ResponseHeader {
            cluster_id: cluster,
            revision,
        } = header;
        let (version, in_grace, held, wishes) = (Version::default(), false, Vec::new(), Vec::new());
        let mut state = Self {
            revision,
            cluster,
            version,
            in_grace,
            held,
            wishes,
        };
        for kv in kvs {
            let understood = keys.place(&kv.key).and_then(|place| state.add(place, kv));
            understood.ok_or_else(|| Foreign(kv.key.clone()))?;
        }
        Ok(state)
    }

    fn add(&mut self, place: Place, kv: &KeyValue) -> Option<()> {
        match place {
            Place::Version => self.version = Version::parse(kv)?,
            Place::Grace => self.in_grace = true,
            Place::Held(id) => self.held.push(Entry::new(id, kv)?),
            Place::Wish(id) => self.wishes.push(Entry::new(id, kv)?),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Keys, Place};
    use spanlock_lease::{Mode, Span};

    #[test]
    fn what_is_written_is_read() {
        let keys = Keys::new("spanlock/lease", "a/b");
        let id = "123".parse().unwrap();
        for place in [
            Place::Version,
            Place::Grace,
            Place::Held(id),
            Place::Wish(id),
        ] {
            assert_eq!(keys.place(&keys.key(place)), Some(place));
        }
        assert_eq!(
            keys.place(&Keys::new("spanlock/lease", "a").key(Place::Grace)),
            None
        );
        let span = Span::inclusive(0, u64::MAX).unwrap();
        let client = "a program[7]@machine".to_owned();
        let claim = Claim {
            span,
            mode: Mode::Shared,
            epoch: 3,
            since: 5,
            client,
        };
        assert_eq!(Claim::parse(claim.to_string().as_bytes()), Some(claim));
        for wrong in [
            "",
            "shared 1 0 1 1 a",
            "shared 0 1 4294967296 1 a",
            "alone 0 1 1 1 a",
            "shared 0 1 1 1",
        ] {
            assert_eq!(Claim::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
