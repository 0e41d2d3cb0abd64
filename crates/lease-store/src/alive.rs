//! Connections whose other side is gone without a word: its machine has lost its power, or the network is cut.

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// A connection that is idle for so long is asked whether the other side is there.
const IDLE: Duration = Duration::from_secs(30);
/// It is asked again after so long, if there is no answer.
const AGAIN: Duration = Duration::from_secs(10);
const TIMES: u32 = 3;

/// Small requests are sent at once, and the connection fails about a minute after the other side was gone.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    set_tcp_keepidle(stream, IDLE)?;
    set_tcp_keepintvl(stream, AGAIN)?;
    set_tcp_keepcnt(stream, TIMES)?;
    // What was sent and is not acknowledged has no other limit than a quarter of an hour.
    let all = IDLE + AGAIN * TIMES;
    set_tcp_user_timeout(stream, u32::try_from(all.as_millis()).unwrap_or(u32::MAX))?;
    Ok(set_socket_keepalive(stream, true)?)
}
