//! Where a cluster is.

use spanlock_lease::NotAnAddress;
use spanlock_lease_tls::{Checks, Files};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use tokio_rustls::rustls::ClientConfig;

/// The members of a cluster, who asks them, and how connections are encrypted.
///
/// ```
/// use spanlock_lease_etcd::Config;
///
/// let one: Config = "etcd://10.0.0.1".parse()?;
/// let three: Config = "etcd://user:secret@10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379".parse()?;
/// let encrypted: Config = "https://a.example,b.example".parse()?;
/// let socket: Config = "etcd:///run/etcd/client:0".parse()?;
/// # let _ = (one, three, encrypted, socket);
/// # Ok::<(), spanlock_lease_etcd::NotAnAddress>(())
/// ```
///
/// In a user's name and password, what has a meaning here is written as `%` and two digits, as in URLs. Without a port
/// it is 2379.
///
/// `https` encrypts, and checks certificates and their names. `https://HOST?cacert=FILE&cert=FILE&key=FILE` says which
/// ones are trusted, and which one the client shows. Without `cacert`, those that the system trusts are. Connections by
/// a socket of this machine are never encrypted.
#[derive(Clone)]
pub struct Config {
    pub(crate) members: Vec<Member>,
    pub(crate) user: Option<User>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
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

/// What each address looks like.
const EXPECTED: &str = "expected etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…], the same with https://, or etcd:///SOCKET";

/// The server's own port.
const PORT: u16 = 2379;

impl Config {
    /// Connections are encrypted, with the certificates that `tls` trusts and shows, whatever the address says.
    #[must_use]
    pub fn with_tls(mut self, mut tls: ClientConfig) -> Self {
        // The server demands that the protocol is named.
        tls.alpn_protocols = vec![b"h2".to_vec()];
        self.tls = Some(Arc::new(tls));
        self
    }
}

impl FromStr for Config {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| NotAnAddress::new(EXPECTED))?;
        let (rest, files) = match (scheme, rest.rsplit_once('?')) {
            ("https", Some((rest, query))) => (rest, Some(files(query)?)),
            ("https", None) => (rest, Some(Files::default())),
            ("etcd", _) => (rest, None),
            _ => return Err(NotAnAddress::new(EXPECTED)),
        };
        let (user, members) = match rest.rsplit_once('@') {
            Some((user, members)) if !rest.starts_with('/') => (Some(user), members),
            _ => (None, rest),
        };
        let user = user.map(|user| {
            let told = user.split_once(':').and_then(|(name, password)| {
                let (name, password) = (decoded(name)?, decoded(password)?);
                Some(User { name, password })
            });
            told.ok_or_else(|| NotAnAddress::new("before the @: expected USER:PASSWORD"))
        });
        let members: Result<_, _> = members.split(',').map(member).collect();
        let config = Self {
            members: members?,
            user: user.transpose()?,
            tls: None,
        };
        match files {
            None => Ok(config),
            Some(files) => {
                let tls = spanlock_lease_tls::client(&files, Checks::AuthorityAndName);
                Ok(config.with_tls(tls.map_err(NotAnAddress::new)?))
            }
        }
    }
}

/// What the query of a URL says of certificates.
fn files(query: &str) -> Result<Files, NotAnAddress> {
    let mut files = Files::default();
    for word in query.split('&') {
        let (name, file) = word.split_once('=').unwrap_or((word, ""));
        let place = match name {
            "cacert" => &mut files.trusted,
            "cert" => &mut files.certificate,
            "key" => &mut files.key,
            _ => {
                return Err(NotAnAddress::new(format_args!(
                    "{name}: expected cacert=FILE, cert=FILE or key=FILE"
                )));
            }
        };
        *place = decoded(file).map(PathBuf::from);
    }
    match files.certificate.is_some() == files.key.is_some() {
        true => Ok(files),
        false => Err(NotAnAddress::new(
            "cert and key: one is of no use without the other",
        )),
    }
}

fn member(text: &str) -> Result<Member, NotAnAddress> {
    if text.starts_with('/') {
        return Ok(Member::Unix(text.into()));
    }
    let wrong = || NotAnAddress::new(format_args!("the member {text:?}: {EXPECTED}"));
    // The colons of an address between brackets belong to it.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (text, PORT),
    };
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match host.is_empty() || host.contains(['/', '[', ']']) {
        true => Err(wrong()),
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
    use super::{Config, Member, decoded, encoded};

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
        assert!(members("https://a,b").expect("it is one").len() == 2);
        for (wrong, why) in [
            ("", "expected etcd://"),
            ("a", "expected etcd://"),
            ("http://a", "expected etcd://"),
            ("etcd://", "the member \"\""),
            ("etcd://a,", "the member \"\""),
            ("etcd://a:b", "the member \"a:b\""),
            ("etcd://secret@a", "before the @"),
            ("etcd://m%:secret@a", "before the @"),
            ("etcd://a/b", "the member \"a/b\""),
            ("https://me:secret@a?cacert=/nowhere", "/nowhere: "),
            ("https://a?certificate=b", "certificate: expected cacert="),
            ("https://a?cert=b", "cert and key"),
        ] {
            let said = members(wrong).expect_err(wrong).to_string();
            assert!(
                said.contains(why) && !said.contains("secret"),
                "{wrong}: {said}"
            );
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
