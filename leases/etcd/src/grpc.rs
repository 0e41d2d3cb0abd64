//! Calls of gRPC, over a connection of HTTP/2.
//!
//! A message has a byte that says whether it is compressed, which ours and etcd's are not, and its length in four. A
//! call ends with a status in the trailers.

use crate::wire::Call;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::{Builder, SendRequest};
use h2::{PingPong, RecvStream, SendStream};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use prost::Message;
use std::error::Error;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use tokio::io::{AsyncRead, AsyncWrite};

/// What the other side may send before it is read, for each call and for all.
const WINDOW: u32 = 1 << 20;

/// What a connection is made over.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Why a call has failed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server says so.
    Status(Status),
    /// There is no answer, and it is not known whether the call was done.
    Broken(Box<dyn Error + Send + Sync>),
}

/// What the server says instead of an answer.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) code: Code,
    pub(crate) message: String,
}

/// The codes of gRPC that mean something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Unimplemented,
    Other,
}

impl Code {
    pub(crate) fn of(number: &[u8]) -> Self {
        match number {
            b"3" => Self::InvalidArgument,
            b"5" => Self::NotFound,
            b"7" => Self::PermissionDenied,
            b"8" => Self::ResourceExhausted,
            b"9" => Self::FailedPrecondition,
            b"12" => Self::Unimplemented,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Status {}

impl Failed {
    /// What is wrong with encryption a member has said that could be reached, and it will be the same later.
    fn is_of_encryption(error: &io::Error) -> Option<Self> {
        (error.kind() == io::ErrorKind::InvalidData).then(|| {
            let (code, message) = (Code::PermissionDenied, format!("TLS: {error}"));
            Self::Status(Status { code, message })
        })
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::is_of_encryption(&error).unwrap_or_else(|| Self::Broken(error.into()))
    }
}

impl From<h2::Error> for Failed {
    fn from(error: h2::Error) -> Self {
        let of_encryption = error.get_io().and_then(Self::is_of_encryption);
        of_encryption.unwrap_or_else(|| Self::Broken(error.into()))
    }
}

impl From<prost::DecodeError> for Failed {
    fn from(error: prost::DecodeError) -> Self {
        Self::Broken(error.into())
    }
}

/// A connection. It ends when all of its calls and clones have.
#[derive(Clone)]
pub(crate) struct Channel {
    requests: SendRequest<Bytes>,
    /// Begins the address of each call: how the connection is made, and a name that nobody looks at.
    base: &'static str,
    token: Option<HeaderValue>,
}

impl Channel {
    /// Begins one. What is returned beside it asks whether the other side still is there.
    pub(crate) async fn new(
        io: Box<dyn Io>,
        base: &'static str,
    ) -> Result<(Self, PingPong), Failed> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .enable_push(false);
        let (requests, mut connection) = builder.handshake(io).await?;
        let pings = connection.ping_pong().expect("it is taken once");
        // What ends it is told to whose call it ends.
        tokio::spawn(async move { drop(connection.await) });
        let token = None;
        Ok((
            Self {
                requests,
                base,
                token,
            },
            pings,
        ))
    }

    /// The same, of a user.
    pub(crate) fn with_token(self, token: &str) -> Result<Self, Failed> {
        let token = HeaderValue::from_str(token).map_err(|error| Failed::Broken(error.into()))?;
        let token = Some(token);
        Ok(Self { token, ..self })
    }

    /// One answer.
    pub(crate) async fn call<C: Call>(&self, asked: &C) -> Result<C::Answer, Failed> {
        let mut stream = self.begin::<C>().await?;
        stream.send(asked, Then::NoMore)?;
        let answer = stream.next().await?;
        // The status comes after the answer.
        match (answer, stream.next().await?) {
            (Some(answer), None) => Ok(answer),
            _ => Err(Failed::Broken(
                "the server answered once too often, or not at all".into(),
            )),
        }
    }

    /// Any number of answers.
    pub(crate) async fn begin<C: Call>(&self) -> Result<Stream<C>, Failed> {
        let mut request = Request::post(format!("{}{}", self.base, C::PATH))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            // A member that has lost its cluster says so, and does not wait to have it back.
            .header("hasleader", "true");
        if let Some(token) = &self.token {
            request = request.header("token", token);
        }
        let request = request.body(()).expect("its parts are valid");
        let mut requests = self.requests.clone().ready().await?;
        let (answer, sends) = requests.send_request(request, false)?;
        Ok(Stream {
            sends,
            receives: Receives::Not(answer),
            buffer: BytesMut::new(),
            call: PhantomData,
        })
    }
}

/// Whether more will be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    More,
    NoMore,
}

/// A call that is under way.
pub(crate) struct Stream<C> {
    sends: SendStream<Bytes>,
    receives: Receives,
    buffer: BytesMut,
    call: PhantomData<C>,
}

enum Receives {
    /// Nothing has come.
    Not(h2::client::ResponseFuture),
    Body(RecvStream),
}

impl<C: Call> Stream<C> {
    pub(crate) fn send(&mut self, asked: &C, then: Then) -> Result<(), Failed> {
        let length = asked.encoded_len();
        let mut frame = BytesMut::with_capacity(5 + length);
        frame.put_u8(0);
        frame.put_u32(u32::try_from(length).expect("what is asked is short"));
        asked.encode(&mut frame).expect("there is room");
        Ok(self.sends.send_data(frame.freeze(), then == Then::NoMore)?)
    }

    /// The next answer, until the server ends the call.
    pub(crate) async fn next(&mut self) -> Result<Option<C::Answer>, Failed> {
        if let Receives::Not(answer) = &mut self.receives {
            let answer = answer.await?;
            let (head, body) = answer.into_parts();
            if head.status != StatusCode::OK {
                let why = format!("the server answers with {}, and not with gRPC", head.status);
                return Err(Failed::Broken(why.into()));
            }
            self.receives = Receives::Body(body);
            // An answer that is nothing but a status has it here.
            if head.headers.contains_key(STATUS) {
                return status(&head.headers).map(|()| None);
            }
        }
        let Receives::Body(body) = &mut self.receives else {
            unreachable!("it has come")
        };
        loop {
            if let Some(frame) = frame(&mut self.buffer)? {
                return Ok(Some(C::Answer::decode(frame)?));
            }
            match body.data().await {
                Some(more) => {
                    let more = more?;
                    body.flow_control().release_capacity(more.len())?;
                    self.buffer.extend_from_slice(&more);
                }
                None => {
                    let trailers = body.trailers().await?;
                    return status(&trailers.unwrap_or_default()).map(|()| None);
                }
            }
        }
    }
}

/// Takes a message out of what has come, if all of it has.
fn frame(buffer: &mut BytesMut) -> Result<Option<BytesMut>, Failed> {
    let Some((head, rest)) = buffer.split_at_checked(5) else {
        return Ok(None);
    };
    if head[0] != 0 {
        return Err(Failed::Broken(
            "the server compresses what nobody asked it to".into(),
        ));
    }
    let length = (&head[1..]).get_u32() as usize;
    if rest.len() < length {
        return Ok(None);
    }
    buffer.advance(5);
    Ok(Some(buffer.split_to(length)))
}

const STATUS: &str = "grpc-status";

/// How a call has ended.
fn status(trailers: &HeaderMap) -> Result<(), Failed> {
    let text = |name| trailers.get(name).map(HeaderValue::as_bytes);
    match text(STATUS) {
        Some(b"0") => Ok(()),
        Some(code) => Err(Failed::Status(Status {
            code: Code::of(code),
            message: String::from_utf8_lossy(text("grpc-message").unwrap_or(code)).into_owned(),
        })),
        None => Err(Failed::Broken(
            "the server ended the call without a status".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Channel, Failed};
    use crate::wire::LeaseRevokeRequest;
    use spanlock_lease_tls::Heard;
    use std::io::{Error, ErrorKind};
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::runtime::Builder;

    /// The other side has said why it refuses, and closed. Writes fail after so many, and then the reason is there.
    struct Refuses {
        writes: u32,
        reads: Option<Waker>,
    }

    impl AsyncRead for Refuses {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<Result<(), Error>> {
            match self.writes {
                0 => Poll::Ready(Err(Error::new(ErrorKind::InvalidData, "alert"))),
                _ => {
                    self.reads = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }
    }

    impl AsyncWrite for Refuses {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<Result<usize, Error>> {
            match self.writes.checked_sub(1) {
                None => Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
                Some(left) => {
                    self.writes = left;
                    if left == 0
                        && let Some(reads) = self.reads.take()
                    {
                        reads.wake();
                    }
                    Poll::Ready(Ok(bytes.len()))
                }
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn who_refuses_and_closes_is_heard() {
        let runtime = Builder::new_current_thread().build().unwrap();
        for writes in [0, 1] {
            let stream = Heard::new(Refuses {
                writes,
                reads: None,
            });
            let asks = async {
                let (channel, _pings) = Channel::new(Box::new(stream), "https://etcd").await?;
                channel.call(&LeaseRevokeRequest { id: 1 }).await
            };
            match runtime.block_on(asks) {
                Err(Failed::Status(status)) => assert_eq!(status.message, "TLS: alert"),
                other => panic!("after {writes} writes: {other:?}"),
            }
        }
    }
}
