//! Requests and answers as bytes. All numbers are in little-endian order.
//!
//! ```text
//!   both sides first:  "SLFS" version:u32
//!   request:   kind:u8 mode:u8 name length:u16 epoch:u32 counter:u64 start:u64 length:u64   name   data, if it writes
//!   answer:    kind:u8 0:u8 0:u16 epoch:u32 counter:u64 length:u64                          text or data
//! ```

use spanlock_lease::{Fence, Mode};
use std::io::{self, Read, Write};

/// The most bytes that one request reads or writes.
pub const MAX_DATA: usize = 1 << 20;

/// The longest text of an answer.
const MAX_TEXT: usize = 4096;

const GREETING: [u8; 8] = *b"SLFS\x01\0\0\0";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `length` is the last position.
    Enter = 1,
    Write,
    Read,
    Sync,
    Size,
}

/// A request without its name and data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    pub(crate) fence: Fence,
    pub(crate) start: u64,
    pub(crate) length: u64,
}

/// What is said to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A number, or how many bytes follow, which are in the buffer.
    Done(u64),
    /// A later fence has entered.
    Late(Fence),
    /// The server cannot do it.
    Failed(String),
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Each side says that it speaks this.
pub(crate) fn greet(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.write_all(&GREETING)?;
    stream.flush()?;
    let mut theirs = [0; GREETING.len()];
    stream.read_exact(&mut theirs)?;
    match theirs == GREETING {
        true => Ok(()),
        false => Err(malformed(
            "the other side is no server or client of fenced files of this version",
        )),
    }
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl Request {
    const HEAD: usize = 32;

    pub(crate) fn send(self, stream: &mut impl Write, name: &str, data: &[u8]) -> io::Result<()> {
        let length = u16::try_from(name.len()).map_err(|_| malformed("the name is too long"))?;
        let mut bytes = Vec::with_capacity(Self::HEAD + name.len() + data.len());
        bytes.extend([self.kind as u8, u8::from(self.mode == Mode::Exclusive)]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(self.fence.epoch.to_le_bytes());
        for number in [self.fence.counter, self.start, self.length] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(name.as_bytes());
        bytes.extend(data);
        stream.write_all(&bytes)?;
        stream.flush()
    }

    /// The next one, its file's name, and its data in the buffer; nothing when the client has gone.
    pub(crate) fn receive(
        stream: &mut impl Read,
        data: &mut Vec<u8>,
    ) -> io::Result<Option<(Self, String)>> {
        let mut head = [0; Self::HEAD];
        match stream.read(&mut head[..1])? {
            0 => return Ok(None),
            _ => stream.read_exact(&mut head[1..])?,
        }
        let kind = match head[0] {
            1 => Kind::Enter,
            2 => Kind::Write,
            3 => Kind::Read,
            4 => Kind::Sync,
            5 => Kind::Size,
            _ => return Err(malformed("there is no such request")),
        };
        let request = Self {
            kind,
            mode: match head[1] {
                0 => Mode::Shared,
                1 => Mode::Exclusive,
                _ => return Err(malformed("there is no such mode")),
            },
            fence: Fence {
                epoch: short(&head, 4),
                counter: long(&head, 8),
            },
            start: long(&head, 16),
            length: long(&head, 24),
        };
        let mut name = vec![0; usize::from(u16::from_le_bytes([head[2], head[3]]))];
        stream.read_exact(&mut name)?;
        let name = String::from_utf8(name).map_err(|_| malformed("the name is no text"))?;
        data.clear();
        if matches!(kind, Kind::Write | Kind::Read) {
            let length = usize::try_from(request.length)
                .ok()
                .filter(|&length| length <= MAX_DATA);
            data.resize(length.ok_or_else(|| malformed("that is too much data"))?, 0);
        }
        if kind == Kind::Write {
            stream.read_exact(data)?;
        }
        Ok(Some((request, name)))
    }
}

impl Answer {
    const HEAD: usize = 24;

    /// With data, for a read that was done.
    pub(crate) fn send(&self, stream: &mut impl Write, data: &[u8]) -> io::Result<()> {
        let none = Fence {
            epoch: 0,
            counter: 0,
        };
        let (kind, fence, length, rest) = match self {
            Self::Done(number) => (0_u8, none, *number, data),
            Self::Late(later) => (1, *later, 0, &[][..]),
            Self::Failed(why) => {
                let text = &why.as_bytes()[..why.floor_char_boundary(MAX_TEXT)];
                (2, none, text.len() as u64, text)
            }
        };
        let mut bytes = Vec::with_capacity(Self::HEAD + rest.len());
        bytes.extend([kind, 0, 0, 0]);
        bytes.extend(fence.epoch.to_le_bytes());
        bytes.extend(fence.counter.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(rest);
        stream.write_all(&bytes)?;
        stream.flush()
    }

    /// The next one. What was read goes into the buffer.
    pub(crate) fn receive(stream: &mut impl Read, into: &mut [u8]) -> io::Result<Self> {
        let mut head = [0; Self::HEAD];
        stream.read_exact(&mut head)?;
        let length = long(&head, 16);
        match head[0] {
            0 if into.is_empty() => Ok(Self::Done(length)),
            0 => {
                let room = usize::try_from(length)
                    .ok()
                    .and_then(|length| into.get_mut(..length));
                stream.read_exact(
                    room.ok_or_else(|| malformed("more was read than was asked for"))?,
                )?;
                Ok(Self::Done(length))
            }
            1 => Ok(Self::Late(Fence {
                epoch: short(&head, 4),
                counter: long(&head, 8),
            })),
            2 if length <= MAX_TEXT as u64 => {
                let mut text = vec![0; length as usize];
                stream.read_exact(&mut text)?;
                Ok(Self::Failed(String::from_utf8_lossy(&text).into_owned()))
            }
            _ => Err(malformed("there is no such answer")),
        }
    }
}
