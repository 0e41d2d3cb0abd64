//! The way from a client to the server, which delays what is sent, loses it without a word, or is cut.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to what is sent in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// It arrives.
    #[default]
    Passes,
    /// It arrives so much later.
    Delays(Duration),
    /// It does not arrive, and nothing after it on the same connection does, as when a router has forgotten it.
    Loses,
}

/// In which direction.
#[derive(Clone, Copy)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// To the client.
    FromServer,
}

/// It forwards from a port of this machine, in threads that end with the process.
pub struct Network {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    server: PathBuf,
    ways: Mutex<[Way; 2]>,
    open: Mutex<Vec<(TcpStream, UnixStream)>>,
    has_lost: AtomicBool,
}

impl Network {
    /// To the server's socket.
    #[must_use]
    pub fn new(server: PathBuf) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            server,
            ways: Mutex::default(),
            open: Mutex::default(),
            has_lost: AtomicBool::new(false),
        });
        let forwards = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                Shared::connect(&forwards, client.expect("it is accepted"));
            }
        });
        Self { shared, port }
    }

    /// Where clients connect.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What happens from now on.
    pub fn set(&self, direction: Direction, way: Way) {
        self.shared.ways.lock().unwrap()[direction as usize] = way;
    }

    /// Whether a connection has lost something.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.shared.has_lost.load(SeqCst)
    }

    /// Connections that have lost something stay as they are. Others pass what is sent from now on.
    pub fn mend(&self) {
        *self.shared.ways.lock().unwrap() = Default::default();
    }

    /// Both ends of all connections see that they are closed.
    pub fn cut(&self) {
        for (client, server) in self.shared.open.lock().unwrap().drain(..) {
            // One that has ended by itself is closed already.
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: TcpStream) {
        // While the server is down, the client finds its connection closed.
        let Ok(server) = UnixStream::connect(&self.server) else {
            return;
        };
        client.set_nodelay(true).expect("it is a socket");
        let copy = || {
            (
                client.try_clone().expect("a socket is copied"),
                server.try_clone().expect("a socket is copied"),
            )
        };
        self.open.lock().unwrap().push(copy());
        let ((from_client, to_server), (to_client, from_server)) = (copy(), copy());
        let up = Arc::clone(self);
        thread::spawn(move || up.forward(Direction::ToServer, from_client, to_server));
        let down = Arc::clone(self);
        thread::spawn(move || down.forward(Direction::FromServer, from_server, to_client));
    }

    fn forward(&self, direction: Direction, mut from: impl Read, mut to: impl Write + Close) {
        let (mut buffer, mut has_lost) = ([0; 1 << 14], false);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let way = self.ways.lock().unwrap()[direction as usize];
            match way {
                Way::Passes => {}
                Way::Delays(time) => thread::sleep(time),
                Way::Loses => {
                    has_lost = true;
                    self.has_lost.store(true, SeqCst);
                }
            }
            if !has_lost && to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // Who does not get what is sent is not told of its end either.
        if !has_lost {
            to.close();
        }
    }
}

trait Close {
    fn close(&self);
}

impl Close for TcpStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Close for UnixStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
