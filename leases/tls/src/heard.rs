//! What the other side says last is heard.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection below TLS. Who refuses a client says why, and closes. The client's next write fails then, and whoever
/// gives up at that never reads the reason. So a write to what the other side has closed says nothing, and the reads
/// tell: first what has come, then that the write has failed.
#[derive(Debug)]
pub struct Heard<S> {
    stream: S,
    /// Why a write has failed.
    failed: Option<io::Error>,
}

impl<S> Heard<S> {
    /// What is said over `stream`.
    pub fn new(stream: S) -> Self {
        let failed = None;
        Self { stream, failed }
    }

    /// What a write says. One that fails is `written` nevertheless.
    fn wrote<T>(&mut self, wrote: Poll<io::Result<T>>, written: T) -> Poll<io::Result<T>> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match wrote {
            Poll::Ready(Err(error)) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                self.failed = Some(error);
                Poll::Ready(Ok(written))
            }
            other => other,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let is_end = matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        match self.failed.take_if(|_| is_end) {
            Some(error) => Poll::Ready(Err(error)),
            None => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(wrote, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wrote = Pin::new(&mut self.stream).poll_flush(context);
        self.wrote(wrote, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wrote = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wrote(wrote, ())
    }
}

#[cfg(test)]
mod tests {
    use super::Heard;
    use std::io::ErrorKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::runtime::Builder;

    #[test]
    fn what_was_said_is_read_before_a_write_has_failed() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (own, mut other) = duplex(64);
            let mut own = Heard::new(own);
            other.write_all(b"refused").await.unwrap();
            drop(other);
            own.write_all(b"asks").await.unwrap();
            own.flush().await.unwrap();
            let mut said = Vec::new();
            let ended = own.read_to_end(&mut said).await;
            assert_eq!(said, b"refused");
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::BrokenPipe);
        });
    }
}
