//! A file that another machine serves.

use crate::alive;
use crate::wire::{Answer, Kind, MAX_DATA, Request, greet};
use spanlock_lease::{Fence, Lost, Mode, Span, Token};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A file that another machine serves, over one connection. Requests of several threads go one after another.
///
/// A connection that has failed is of no use any more: [`Error::Io`]. Connect again, and enter again: a lease that is
/// still held stays good.
pub struct FencedFile {
    name: String,
    /// Nothing after a failure, since an answer may be on its way that belongs to another request.
    stream: Mutex<Option<Box<dyn Stream>>>,
}

/// Why nothing was done, or it is not known whether anything was.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The lease is lost, or was not renewed in time. Nothing was sent.
    Lost,
    /// A later lease has entered: this one was lost without our notice. Nothing was done.
    Refused {
        /// Its fence.
        later: Fence,
    },
    /// The extent is not within the lease, or the lease is shared and this is a write. Nothing was sent.
    NotLeased,
    /// The server could not do it, and says why. Nothing was done, unless the write was of more than
    /// [`MAX_DATA`](crate::MAX_DATA) bytes: then pieces may be written.
    Server(String),
    /// The connection failed. If this was a write, it may have been done.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => Lost.fmt(f),
            Self::Refused { later } => {
                write!(
                    f,
                    "the lease was lost: a later one, with the fence {later}, has entered the extent"
                )
            }
            Self::NotLeased => f.write_str("the extent is not leased, or not for writing"),
            Self::Server(why) => write!(f, "the server of the file: {why}"),
            Self::Io(why) => write!(f, "the connection to the server of the file failed: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(why) => Some(why),
            _ => None,
        }
    }
}

impl From<Lost> for Error {
    fn from(Lost: Lost) -> Self {
        Self::Lost
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl FencedFile {
    /// Connects to a server. The file is made when it is first used.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn connect(server: impl ToSocketAddrs, name: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(server)?;
        alive::prepare(&stream)?;
        Self::over(stream, name)
    }

    /// Over a connection that there is: a socket of another kind, or one with encryption.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn over(mut stream: impl Read + Write + Send + 'static, name: &str) -> Result<Self, Error> {
        greet(&mut stream)?;
        Ok(Self {
            name: name.to_owned(),
            stream: Mutex::new(Some(Box::new(stream))),
        })
    }

    /// Begins to work under a lease of positions of this file. Whoever holds an earlier lease of any of them is refused
    /// from now on.
    ///
    /// # Errors
    /// [`Error::Refused`] when the lease was lost before, and the other ones.
    pub fn enter<'a>(&'a self, token: &'a Token) -> Result<Extent<'a>, Error> {
        let extent = Extent { file: self, token };
        let (start, last) = (token.span().start(), token.span().last());
        extent.ask(Kind::Enter, start, last, &[], &mut [])?;
        Ok(extent)
    }

    /// How long it is. Needs no lease, and may be late by the time it arrives.
    ///
    /// # Errors
    /// [`Error::Server`], [`Error::Io`].
    pub fn size(&self) -> Result<u64, Error> {
        self.send(self.plain(Kind::Size), &[], &mut [])
    }

    fn plain(&self, kind: Kind) -> Request {
        Request {
            kind,
            mode: Mode::Shared,
            fence: Fence {
                epoch: 0,
                counter: 0,
            },
            start: 0,
            length: 0,
        }
    }

    fn send(&self, request: Request, data: &[u8], into: &mut [u8]) -> Result<u64, Error> {
        let mut slot = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stream = slot
            .take()
            .ok_or(io::ErrorKind::NotConnected)
            .map_err(io::Error::from)?;
        request.send(&mut stream, &self.name, data)?;
        let answer = Answer::receive(&mut stream, into)?;
        *slot = Some(stream);
        match answer {
            Answer::Done(number) => Ok(number),
            Answer::Late(later) => Err(Error::Refused { later }),
            Answer::Failed(why) => Err(Error::Server(why)),
        }
    }
}

impl fmt::Debug for FencedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FencedFile");
        debug.field("name", &self.name).finish_non_exhaustive()
    }
}

/// Positions of a file that are leased. Each request asks first whether the lease is still good, and the server checks
/// its fence.
#[derive(Debug)]
pub struct Extent<'a> {
    file: &'a FencedFile,
    token: &'a Token,
}

impl Extent<'_> {
    /// The positions.
    #[must_use]
    pub fn span(&self) -> Span {
        self.token.span()
    }

    /// Writes all of `data` at `at`: in one piece up to [`MAX_DATA`](crate::MAX_DATA) bytes, else in several.
    ///
    /// # Errors
    /// Why not. If there are several pieces, some may be written.
    pub fn write_at(&self, data: &[u8], at: u64) -> Result<(), Error> {
        if self.token.mode() == Mode::Shared {
            return Err(Error::NotLeased);
        }
        self.is_leased(data.len(), at)?;
        let places = (0..).step_by(MAX_DATA).map(|offset| at + offset);
        for (piece, at) in data.chunks(MAX_DATA).zip(places) {
            self.ask(Kind::Write, at, piece.len() as u64, piece, &mut [])?;
        }
        Ok(())
    }

    /// Reads into the buffer what begins at `at`. Returns the number of bytes, which is smaller than the buffer only at
    /// the end of the file.
    ///
    /// # Errors
    /// Why not.
    pub fn read_at(&self, into: &mut [u8], at: u64) -> Result<usize, Error> {
        self.is_leased(into.len(), at)?;
        let places = (0..).step_by(MAX_DATA).map(|offset| at + offset);
        let mut all = 0;
        for (piece, at) in into.chunks_mut(MAX_DATA).zip(places) {
            let read = self.ask(Kind::Read, at, piece.len() as u64, &[], piece)? as usize;
            all += read;
            if read < piece.len() {
                break;
            }
        }
        Ok(all)
    }

    /// What was written so far, by whomever, outlasts a failure of the server's power.
    ///
    /// # Errors
    /// [`Error::Server`], [`Error::Io`].
    pub fn sync(&self) -> Result<(), Error> {
        self.file
            .send(self.file.plain(Kind::Sync), &[], &mut [])
            .map(drop)
    }

    fn is_leased(&self, length: usize, at: u64) -> Result<(), Error> {
        let span = self.span();
        // Nothing is leased by whoever asks for nothing, so that is allowed anywhere.
        let Some(rest) = length.checked_sub(1) else {
            return Ok(());
        };
        let last = u64::try_from(rest)
            .ok()
            .and_then(|rest| at.checked_add(rest));
        match last.is_some_and(|last| at >= span.start() && last <= span.last()) {
            true => Ok(()),
            false => Err(Error::NotLeased),
        }
    }

    fn ask(
        &self,
        kind: Kind,
        start: u64,
        length: u64,
        data: &[u8],
        into: &mut [u8],
    ) -> Result<u64, Error> {
        self.token.check()?;
        let request = Request {
            kind,
            mode: self.token.mode(),
            fence: self.token.fence(),
            start,
            length,
        };
        self.file.send(request, data, into)
    }
}
