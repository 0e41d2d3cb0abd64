//! Connections of clients.

use crate::alive;
use crate::journal;
use crate::served::{self, Refused, Served};
use crate::wire::{Answer, Kind, Request, greet};
use rustix::io::Errno;
use rustix::net::{self, shutdown};
use spanlock_lease::{Mode, Span};
use spanlock_structures::store::{Error, Result, Store};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Files of a store, served to clients that lease extents of them.
///
/// A file is made when it is first asked for, whatever is asked. The files are in the store's folder `/files`, their
/// fences in `/fences`, each under the file's name: up to 255 bytes without a slash, in which small and capital letters
/// differ. If the engine begins anew, its fences are small again and refused: remove the fences with the file, while
/// nobody serves the store.
///
/// # Blocking
/// A request waits for requests of other clients in the same extent, which are short, and not for leases.
#[derive(Debug)]
pub struct FencedFiles {
    store: Store,
    open: Mutex<HashMap<String, Arc<Served>>>,
    serving: Mutex<Serving>,
}

/// What is to be ended by [`FencedFiles::stop`].
#[derive(Debug, Default)]
struct Serving {
    has_stopped: bool,
    /// These and the clients have numbers of their own.
    listeners: HashMap<u64, OwnedFd>,
    clients: HashMap<u64, Arc<TcpStream>>,
    next: u64,
}

impl Serving {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// A connection that [`FencedFiles::stop`] ends. It is one descriptor: who was accepted lacks nothing to be served.
struct Client<'a> {
    files: &'a FencedFiles,
    number: u64,
    stream: Arc<TcpStream>,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.files.serving().clients.remove(&self.number);
    }
}

impl FencedFiles {
    /// Files of that store.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn new(store: Store) -> Result<Self> {
        match store.mkdir(served::FOLDER, 0o700) {
            Ok(()) | Err(Error::Exists) => {}
            Err(error) => return Err(error),
        }
        journal::prepare(&store)?;
        Ok(Self {
            store,
            open: Mutex::default(),
            serving: Mutex::default(),
        })
    }

    fn serving(&self) -> MutexGuard<'_, Serving> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what [`serve_tcp`](Self::serve_tcp) serves, for good: nobody is accepted any more, the requests that have
    /// arrived are answered, and all connections are closed. It does not wait for that; `serve_tcp` returns then.
    ///
    /// # Errors
    /// When the system refuses to close a listener.
    pub fn stop(&self) -> io::Result<()> {
        let mut serving = self.serving();
        serving.has_stopped = true;
        let mut stopped = Ok(());
        for (_, listener) in serving.listeners.drain() {
            // Who waits in `accept` is told, which a close does not do.
            match shutdown(listener, net::Shutdown::Both) {
                // Another copy of it was closed.
                Ok(()) | Err(Errno::NOTCONN) => {}
                Err(why) => stopped = Err(why.into()),
            }
        }
        for client in serving.clients.values() {
            // If it has gone by itself, its thread knows.
            let _ = client.shutdown(Shutdown::Read);
        }
        stopped
    }

    /// Closes the store, so that the next opening has nothing to recover.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn close(self) -> Result<()> {
        drop(self.open);
        self.store.close()
    }

    /// Serves clients over TCP, each by a thread, until [`stop`](Self::stop) is called or the listener fails. It
    /// returns when all clients of this listener are gone. While this process can have no more connections or threads,
    /// new clients wait until others have gone. An idle client is kept for as long as its machine answers: one that is
    /// gone without a word is left after about a minute.
    ///
    /// # Errors
    /// That of the listener.
    pub fn serve_tcp(&self, listener: &TcpListener) -> io::Result<()> {
        let copy = listener.as_fd().try_clone_to_owned()?;
        let mut serving = self.serving();
        if serving.has_stopped {
            return Ok(());
        }
        let number = serving.number();
        serving.listeners.insert(number, copy);
        drop(serving);
        thread::scope(|scope| {
            loop {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(_) if self.serving().has_stopped => return Ok(()),
                    Err(error) if is_full(&error) => {
                        thread::sleep(PAUSE);
                        continue;
                    }
                    Err(error) if is_the_clients(&error) => continue,
                    Err(error) => {
                        self.serving().listeners.remove(&number);
                        return Err(error);
                    }
                };
                let Some(client) = self.client(stream) else {
                    return Ok(());
                };
                let client = Arc::new(client);
                while !self.serving().has_stopped {
                    let client = Arc::clone(&client);
                    let thread = thread::Builder::new().name("fenced files".to_owned());
                    // A client that goes, or says what nobody understands, is left.
                    let served = thread.spawn_scoped(scope, move || {
                        alive::prepare(&client.stream)?;
                        self.serve(&*client.stream)
                    });
                    if served.is_ok() {
                        break;
                    }
                    // There are too many threads.
                    thread::sleep(PAUSE);
                }
            }
        })
    }

    /// None: the server has stopped.
    fn client(&self, stream: TcpStream) -> Option<Client<'_>> {
        let stream = Arc::new(stream);
        let mut serving = self.serving();
        if serving.has_stopped {
            return None;
        }
        let number = serving.number();
        serving.clients.insert(number, Arc::clone(&stream));
        Some(Client {
            files: self,
            number,
            stream,
        })
    }

    /// Serves one client, until it goes.
    ///
    /// # Errors
    /// When the connection fails, or the client says what the server does not understand.
    pub fn serve(&self, mut client: impl Read + Write) -> io::Result<()> {
        greet(&mut client)?;
        let mut data = Vec::new();
        while let Some((request, name)) = Request::receive(&mut client, &mut data)? {
            let answer = match self.answer(&request, &name, &mut data) {
                Ok(number) => Answer::Done(number),
                Err(Refused::Late(later)) => Answer::Late(later),
                Err(Refused::Store(error)) => Answer::Failed(error.to_string()),
            };
            let read = match (&answer, request.kind) {
                (Answer::Done(read), Kind::Read) => &data[..*read as usize],
                _ => &[],
            };
            answer.send(&mut client, read)?;
        }
        Ok(())
    }

    fn answer(
        &self,
        request: &Request,
        name: &str,
        data: &mut [u8],
    ) -> std::result::Result<u64, Refused> {
        if (request.kind, request.mode) == (Kind::Write, Mode::Shared) {
            return Err(Error::Invalid("a shared lease does not allow to write").into());
        }
        let file = self.file(name)?;
        let span = match request.kind {
            Kind::Enter => Span::inclusive(request.start, request.length),
            Kind::Sync => return file.sync().map(|()| 0),
            Kind::Size => return file.size(),
            Kind::Write | Kind::Read => {
                let rest = request.length.checked_sub(1);
                let last = rest.and_then(|rest| request.start.checked_add(rest));
                last.and_then(|last| Span::inclusive(request.start, last))
            }
        };
        let span = span.ok_or(Error::Invalid(
            "the extent is empty, or ends behind all positions",
        ))?;
        let entered = (span, request.mode, request.fence);
        let done = match request.kind {
            Kind::Enter => file.enter(&self.store, &entered).map(|()| 0),
            Kind::Read => file.read(&self.store, &entered, data),
            _ => file.write(&self.store, &entered, data),
        };
        done.map(|length| length as u64)
    }

    fn file(&self, name: &str) -> Result<Arc<Served>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(name) {
            return Ok(Arc::clone(file));
        }
        if name.contains('/') {
            return Err(Error::Invalid("a name has no slash"));
        }
        let file = Arc::new(Served::open(&self.store, name)?);
        open.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }
}

/// How long nobody is accepted after there was no room for a connection, or no thread to serve it.
const PAUSE: Duration = Duration::from_millis(20);

/// Whether this process, or the machine, can have no more connections at present.
fn is_full(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].contains(&errno)
    })
}

/// Whether a connection failed before it was accepted. Linux tells the errors of its network then.
fn is_the_clients(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        [
            Errno::CONNABORTED,
            Errno::CONNRESET,
            Errno::INTR,
            Errno::PERM,
            Errno::PROTO,
            Errno::TIMEDOUT,
            Errno::NETDOWN,
            Errno::NETUNREACH,
            Errno::HOSTDOWN,
            Errno::HOSTUNREACH,
            Errno::NONET,
        ]
        .contains(&errno)
    })
}
