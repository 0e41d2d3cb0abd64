//! Where a cluster is.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The members of a cluster, and who asks them.
///
/// ```
/// use spanlock_lease_etcd::Config;
///
/// let one: Config = "etcd://10.0.0.1".parse()?;
/// let three: Config = "etcd://user:secret@10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379".parse()?;
/// let socket: Config = "etcd:///run/etcd/client:0".parse()?;
/// # let _ = (one, three, socket);
/// # Ok::<(), spanlock_lease_etcd::NotAnAddress>(())
/// ```
///
/// In a user's name and password, what has a meaning here is written as `%` and two digits, as in URLs. Without a port
/// it is 2379.
#[derive(Clone)]
pub struct Config {
    pub(crate) members: Vec<Member>,
    pub(crate) user: Option<User>,
}

/// How one member is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Member {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
}

/// A text that does not say where a cluster is. The text itself is not repeated, since it may have a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnAddress;

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…], or etcd:///SOCKET")
    }
}

impl Error for NotAnAddress {}

/// The server's own port.
const PORT: u16 = 2379;

impl FromStr for Config {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let rest = text.strip_prefix("etcd://").ok_or(NotAnAddress)?;
        let (user, members) = match rest.rsplit_once('@') {
            Some((user, members)) if !rest.starts_with('/') => (Some(user), members),
            _ => (None, rest),
        };
        let user = user.map(|user| {
            let (name, password) = user.split_once(':').ok_or(NotAnAddress)?;
            let (name, password) = (decoded(name), decoded(password));
            Ok(User {
                name: name.ok_or(NotAnAddress)?,
                password: password.ok_or(NotAnAddress)?,
            })
        });
        let members: Result<_, _> = members.split(',').map(member).collect();
        Ok(Self {
            members: members?,
            user: user.transpose()?,
        })
    }
}

fn member(text: &str) -> Result<Member, NotAnAddress> {
    if text.starts_with('/') {
        return Ok(Member::Unix(text.into()));
    }
    // The colons of an address between brackets belong to it.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().map_err(|_| NotAnAddress)?)
        }
        _ => (text, PORT),
    };
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match host.is_empty() || host.contains(['/', '[', ']']) {
        true => Err(NotAnAddress),
        false => Ok(Member::Tcp {
            host: host.to_owned(),
            port,
        }),
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|user| &user.name);
        f.debug_struct("Config")
            .field("members", &self.members)
            .field("user", &user)
            .finish_non_exhaustive()
    }
}

/// Writes `/` and `%` as `%` and two digits, so that the text is one part of a path.
pub(crate) fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F")
}

/// What was written so, or with other characters written so.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{Config, Member, NotAnAddress, decoded, encoded};

    #[test]
    fn addresses_are_read() {
        let tcp = |host: &str, port| Member::Tcp {
            host: host.to_owned(),
            port,
        };
        let members = |text: &str| text.parse::<Config>().map(|config| config.members);
        assert_eq!(members("etcd://a"), Ok(vec![tcp("a", 2379)]));
        assert_eq!(
            members("etcd://a:1,[::1]:2,[fe80::2]"),
            Ok(vec![tcp("a", 1), tcp("::1", 2), tcp("fe80::2", 2379)])
        );
        assert_eq!(
            members("etcd:///run/a@b:0"),
            Ok(vec![Member::Unix("/run/a@b:0".into())])
        );
        let config: Config = "etcd://me:a%40:%2f@b".parse().unwrap();
        assert_eq!(
            config.user.as_ref().map(|user| user.password.as_str()),
            Some("a@:/")
        );
        assert!(!format!("{config:?}").contains("a@:/"));
        for wrong in [
            "",
            "a",
            "http://a",
            "etcd://",
            "etcd://a,",
            "etcd://a:b",
            "etcd://me@a",
            "etcd://m%:p@a",
            "etcd://a/b",
        ] {
            assert_eq!(members(wrong), Err(NotAnAddress), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_one_part_of_a_path() {
        for name in ["", "volume-7", "a/b%2F", "%", "größe"] {
            let part = encoded(name);
            assert!(!part.contains('/'));
            assert_eq!(decoded(&part).as_deref(), Some(name));
        }
        assert_eq!(decoded("%+1"), None);
    }
}
