//! Areas from `/proc/PID/smaps`.

use super::{Error, Files, file, page, wrong};
use crate::vm_trace::trace::{Area, Backing, EXECUTE, READ, WRITE, attribute};

/// Where the kernel's half of the addresses begins: what is there is not of the process.
const KERNEL: u64 = 1 << 63;

/// The areas, by address. `when` tells an error's reader which of the two files is wrong.
pub(super) fn areas(when: &str, smaps: &str, files: &mut Files) -> Result<Vec<Area>, Error> {
    let mut areas = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            if let Some(area) = current.take() {
                areas.push(Area {
                    attributes: attributes(flags),
                    ..area
                });
            }
        } else if let Some(head) = head(line) {
            if current.is_some() {
                return wrong(format!("{when}: an area without VmFlags before `{line}`"));
            }
            if head.start >= KERNEL {
                break;
            }
            current = Some(head.area(files));
        }
    }
    if areas.is_empty() {
        return wrong(format!("{when}: no areas, so it is no /proc/PID/smaps"));
    }
    Ok(areas)
}

/// The first line of an area.
struct Head<'a> {
    start: u64,
    end: u64,
    protection: u32,
    offset: u64,
    name: &'a str,
}

fn head(line: &str) -> Option<Head<'_>> {
    let mut fields = line.splitn(5, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    let allowed = fields.next()?.as_bytes();
    let bits = [(b'r', READ), (b'w', WRITE), (b'x', EXECUTE)];
    let bits = bits.into_iter().zip(allowed);
    let bits = bits.filter(|((letter, _), found)| letter == *found);
    let protection = bits.map(|((_, bit), _)| bit).sum();
    let offset = hex(fields.next()?)?;
    let (_device, rest) = (fields.next()?, fields.next()?);
    // The inode, and behind blanks the name.
    let name = rest.split_once(' ').map_or("", |(_, name)| name.trim());
    Some(Head {
        start,
        end,
        protection,
        offset,
        name,
    })
}

impl Head<'_> {
    fn area(&self, files: &mut Files) -> Area {
        let anonymous = self.name.is_empty()
            || ["[heap]", "[stack]"].contains(&self.name)
            || self.name.starts_with("[anon");
        let backing = if anonymous {
            Backing::Anonymous
        } else {
            file(files, self.name, self.offset)
        };
        let (start, end, protection) = (page(self.start), page(self.end), self.protection);
        Area {
            start,
            end,
            protection,
            attributes: 0,
            backing,
        }
    }
}

fn attributes(flags: &str) -> u32 {
    let known = attribute::NAMES.into_iter();
    let set = known.filter(|(name, _)| flags.split_whitespace().any(|flag| flag == *name));
    set.fold(0, |attributes, (_, attribute)| attributes | attribute)
}
