//! The way to a cluster: connections to its members, each with encryption or without.

use crate::config::{Config, Member};
use crate::grpc::{Channel, Code, Failed, Status};
use crate::wire::{AuthenticateRequest, Call};
use h2::PingPong;
use spanlock_lease::Trouble;
use spanlock_lease_tls::Heard;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// No call takes longer than this, or its connection is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a member may take to be connected to, before the next one is tried.
const CONNECTS: Duration = Duration::from_secs(2);

/// Asks a cluster.
pub(crate) trait Calls {
    /// One answer, by a moment.
    async fn call<C: Call>(&self, by: Instant, asked: &C) -> Result<C::Answer, Failed>;
}

/// How connections are made.
pub(crate) struct Cluster {
    config: Config,
    /// The member that is tried next.
    next: AtomicUsize,
}

impl Cluster {
    pub(crate) fn new(config: Config) -> Self {
        let next = AtomicUsize::new(fastrand::usize(..config.members.len()));
        Self { config, next }
    }

    /// Connects to the first member that can be reached.
    pub(crate) async fn connect(&self) -> Result<(Channel, PingPong), Failed> {
        let members = &self.config.members;
        let mut failed = None;
        for _ in members {
            // A connection that is left leads to the next one.
            let member = &members[self.next.fetch_add(1, Relaxed) % members.len()];
            let connected = timeout(CONNECTS, self.connect_to(member)).await;
            let late = |_| {
                let why = format!("it did not connect within {} s", CONNECTS.as_secs());
                Err(Failed::Broken(why.into()))
            };
            match connected.unwrap_or_else(late) {
                Ok(connected) => return Ok(connected),
                Err(Failed::Broken(why)) => {
                    failed = Some(Failed::Broken(format!("{member}: {why}").into()))
                }
                Err(refused @ Failed::Status(_)) => failed = Some(refused),
            }
        }
        Err(failed.expect("there is a member"))
    }

    /// A member that wants TLS closes what is not encrypted.
    fn closed(&self, failed: Failed) -> Failed {
        match failed {
            Failed::Broken(why) if self.config.tls.is_none() && why.is::<h2::Error>() => {
                Failed::Broken(format!("{why} (a member with TLS is reached by https://)").into())
            }
            other => other,
        }
    }

    /// What took the time, if no connection was there in time.
    fn is_not_connected(&self) -> String {
        let members: Vec<_> = self.config.members.iter().map(Member::to_string).collect();
        format!("no connection in time to {}", members.join(", "))
    }

    async fn connect_to(&self, member: &Member) -> Result<(Channel, PingPong), Failed> {
        let (channel, pings) = match member {
            Member::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                Channel::new(Box::new(stream), "http://etcd").await?
            }
            Member::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match &self.config.tls {
                    None => Channel::new(Box::new(stream), "http://etcd").await?,
                    Some(tls) => {
                        let name = ServerName::try_from(host.clone())
                            .map_err(|error| Failed::Broken(error.into()))?;
                        let tls = TlsConnector::from(Arc::clone(tls));
                        let stream = tls.connect(name, Heard::new(stream)).await?;
                        Channel::new(Box::new(stream), "https://etcd").await?
                    }
                }
            }
        };
        let Some(user) = &self.config.user else {
            return Ok((channel, pings));
        };
        let asked = AuthenticateRequest {
            name: user.name.clone(),
            password: user.password.clone(),
        };
        let answer = channel.call(&asked).await?;
        Ok((channel.with_token(&answer.token)?, pings))
    }
}

/// A connection, once there is one. One that fails is left, and the next call makes another.
pub(crate) struct Line {
    cluster: Arc<Cluster>,
    channel: Mutex<Option<Arc<Channel>>>,
}

impl Line {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self {
            cluster,
            channel: Mutex::default(),
        }
    }

    async fn channel(&self) -> Result<Arc<Channel>, Failed> {
        let mut channel = self.channel.lock().await;
        if let Some(channel) = channel.as_ref() {
            return Ok(Arc::clone(channel));
        }
        let (connected, _) = self.cluster.connect().await?;
        Ok(Arc::clone(channel.insert(Arc::new(connected))))
    }
}

impl Calls for Line {
    async fn call<C: Call>(&self, by: Instant, asked: &C) -> Result<C::Answer, Failed> {
        let mut used = None;
        let answer = timeout_at(by, async {
            let channel = used.insert(self.channel().await?);
            channel.call(asked).await
        });
        let answer = answer.await.unwrap_or_else(|_late| {
            let why = match used {
                None => self.cluster.is_not_connected(),
                Some(_) => "the server did not answer in time".to_owned(),
            };
            Err(Failed::Broken(why.into()))
        });
        if let (Err(failed), Some(used)) = (&answer, used)
            && remedy(failed) == Remedy::Connect
            // Calls that are under way end first. Whoever makes another connection at this moment has left this one.
            && let Ok(mut channel) = self.channel.try_lock()
            && channel.as_ref().is_some_and(|now| Arc::ptr_eq(now, &used))
        {
            *channel = None;
        }
        answer.map_err(|failed| self.cluster.closed(failed))
    }
}

/// What may help when a call has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Another member, or a user who has said again who he is.
    Connect,
    /// To ask again later. The member has too much to do, and another connection would give it more.
    Wait,
    Nothing,
}

fn remedy(failed: &Failed) -> Remedy {
    match failed {
        Failed::Broken(_) => Remedy::Connect,
        Failed::Status(Status { code, message }) => match code {
            Code::Other => Remedy::Connect,
            Code::InvalidArgument if message.contains("auth store") => Remedy::Connect,
            Code::ResourceExhausted => Remedy::Wait,
            Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::Unimplemented => Remedy::Nothing,
        },
    }
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        let remedy = remedy(&failed);
        let why = match failed {
            Failed::Status(status) => status.into(),
            Failed::Broken(why) => why,
        };
        match remedy {
            Remedy::Connect | Remedy::Wait => Self::Unreachable(why),
            Remedy::Nothing => Self::Refused(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, Cluster, Line, Remedy, remedy};
    use crate::grpc::{Code, Failed, Status};
    use crate::wire::LeaseRevokeRequest;
    use spanlock_lease::Trouble;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::runtime::Builder;
    use tokio::time::Instant;

    /// Users are told about by a call, which is a part of connecting.
    #[test]
    fn an_error_says_whether_the_connection_took_the_time() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = silent.local_addr().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // A machine that is slow may be late to connect. It has more time then.
        let says = |user: &str, expected: &str| {
            let line = Line::new(Arc::new(Cluster::new(
                format!("etcd://{user}{at}").parse().unwrap(),
            )));
            (0..8).any(|times| {
                let asks = async {
                    let by = Instant::now() + Duration::from_millis(50 << times);
                    line.call(by, &LeaseRevokeRequest { id: 1 }).await
                };
                let failed = runtime.block_on(asks).unwrap_err();
                Trouble::from(failed).to_string().ends_with(expected)
            })
        };
        assert!(says(
            "me:secret@",
            &format!("no connection in time to {at}")
        ));
        assert!(says("", "the server did not answer in time"));
    }

    #[test]
    fn a_member_that_has_too_much_to_do_is_asked_again_over_the_same_connection() {
        let failed = Failed::Status(Status {
            code: Code::of(b"8"),
            message: "etcdserver: too many requests".to_owned(),
        });
        assert_eq!(remedy(&failed), Remedy::Wait);
        assert!(matches!(Trouble::from(failed), Trouble::Unreachable(_)));
    }
}
