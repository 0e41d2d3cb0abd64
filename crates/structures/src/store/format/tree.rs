//! The payloads of entries that change directories.

use super::bytes::Reader;
use super::entry::{Head, What};
use crate::store::tree::{Attributes, Change, Kind, NewNode};

const NODE: u8 = 16;
const LINK: u8 = 17;
const UNLINK: u8 = 18;
const RENAME: u8 = 19;
const ATTRIBUTES: u8 = 20;
const EXCHANGE: u8 = 21;

/// An entry for a change: its head, whose number and epoch are yet to come, and its payload.
pub(crate) fn encode(change: &Change, time: i64) -> (Head, Vec<u8>) {
    let mut payload = Vec::new();
    let short = |payload: &mut Vec<u8>, name: &[u8]| {
        payload.push(u8::try_from(name.len()).expect("names have at most 255 bytes"));
        payload.extend_from_slice(name);
    };
    let (code, a, b) = match change {
        Change::Node {
            parent,
            name,
            ino,
            generation,
            node,
        } => {
            payload.extend_from_slice(&generation.to_le_bytes());
            for number in [node.mode, node.uid, node.gid, node.device] {
                payload.extend_from_slice(&number.to_le_bytes());
            }
            payload.push(node.kind.code());
            short(&mut payload, name);
            payload.extend_from_slice(&node.target);
            (NODE, *parent, *ino)
        }
        Change::Link { parent, name, ino } => {
            short(&mut payload, name);
            (LINK, *parent, *ino)
        }
        Change::Unlink { parent, name } => {
            short(&mut payload, name);
            (UNLINK, *parent, 0)
        }
        Change::Rename {
            from,
            name,
            to,
            new_name,
        } => {
            short(&mut payload, name);
            short(&mut payload, new_name);
            (RENAME, *from, *to)
        }
        Change::Exchange([(from, name), (to, new_name)]) => {
            short(&mut payload, name);
            short(&mut payload, new_name);
            (EXCHANGE, *from, *to)
        }
        Change::Attributes { ino, set } => {
            for number in [set.mode, set.uid, set.gid] {
                payload.extend_from_slice(&number.to_le_bytes());
            }
            for time in [set.accessed, set.modified, set.changed] {
                payload.extend_from_slice(&time.to_le_bytes());
            }
            (ATTRIBUTES, 0, *ino)
        }
    };
    let what = What::Tree(code);
    let (epoch, number) = (0, 0);
    (
        Head {
            what,
            epoch,
            number,
            time,
            a,
            b,
        },
        payload,
    )
}

/// The change that an entry describes; `None` if it describes none.
pub(crate) fn decode(head: &Head, payload: &[u8]) -> Option<Change> {
    let What::Tree(code) = head.what else {
        return None;
    };
    let mut from = Reader(payload);
    Some(match code {
        NODE => {
            let generation = from.u64()?;
            let [mode, uid, gid, device] = [from.u32()?, from.u32()?, from.u32()?, from.u32()?];
            let kind = Kind::of(from.u8()?)?;
            let name = from.short()?.to_vec();
            let target = from.0.to_vec();
            let node = NewNode {
                kind,
                mode,
                uid,
                gid,
                device,
                target,
            };
            Change::Node {
                parent: head.a,
                name,
                ino: head.b,
                generation,
                node,
            }
        }
        LINK => Change::Link {
            parent: head.a,
            name: from.short()?.to_vec(),
            ino: head.b,
        },
        UNLINK => Change::Unlink {
            parent: head.a,
            name: from.short()?.to_vec(),
        },
        RENAME => Change::Rename {
            from: head.a,
            name: from.short()?.to_vec(),
            to: head.b,
            new_name: from.short()?.to_vec(),
        },
        EXCHANGE => {
            let (name, new_name) = (from.short()?.to_vec(), from.short()?.to_vec());
            Change::Exchange([(head.a, name), (head.b, new_name)])
        }
        ATTRIBUTES => {
            let [mode, uid, gid] = [from.u32()?, from.u32()?, from.u32()?];
            let mut time = || from.u64().map(u64::cast_signed);
            let (accessed, modified, changed) = (time()?, time()?, time()?);
            let set = Attributes {
                mode,
                uid,
                gid,
                accessed,
                modified,
                changed,
            };
            Change::Attributes { ino: head.b, set }
        }
        _ => return None,
    })
}
