//! Where a server is, who asks it, and how connections are encrypted.

mod passwords;
mod tls;
mod words;

use spanlock_lease::{NotAnAddress, client_name};
use spanlock_lease_tls::{Checks, Files};
use std::error::Error as _;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use tls::Tls;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What the server sends by itself, until the connection ends. It has to be polled for the client to get answers.
pub(crate) type Messages =
    Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;

type Connecting = Pin<Box<dyn Future<Output = Result<(Client, Messages), Error>> + Send>>;

/// Where a database is, as `libpq` has it: a URL, or words.
///
/// ```
/// use spanlock_lease_postgres::Address;
///
/// let socket: Address = "host=/run/postgresql user=app dbname=app".parse()?;
/// let url: Address = "postgresql://app@db.example:5432/app?sslmode=require".parse()?;
/// # let _ = (socket, url);
/// # Ok::<(), spanlock_lease_postgres::NotAnAddress>(())
/// ```
///
/// | word | |
/// |---|---|
/// | `host`, `hostaddr`, `port`, `user`, `password`, `dbname`, `target_session_attrs`, `connect_timeout`, … | as [`Config`] has them |
/// | `sslmode` | `disable`; `prefer`, which is the default, and `allow`: encrypted if the server can; `require`: encrypted; `verify-ca`: by a certificate that is trusted; `verify-full`: that has the host's name, too |
/// | `sslrootcert` | the file with the certificates that are trusted. Without it, `~/.postgresql/root.crt`, and else those that the system trusts. With it, `require` is `verify-ca`. `system`: those that the system trusts, with `verify-full` and no other mode |
/// | `sslcert`, `sslkey` | the files with the client's own certificate and key, both or none |
///
/// Connections by a socket of this machine are never encrypted.
#[derive(Clone)]
pub struct Address {
    config: Config,
    tls: Arc<dyn Fn(Config) -> Connecting + Send + Sync>,
}

impl From<Config> for Address {
    /// Without encryption, until [`with_tls`](Address::with_tls) says how.
    fn from(config: Config) -> Self {
        let tls = connects_with(NoTls);
        Self { config, tls }
    }
}

impl Address {
    /// Connections are encrypted by `tls`, which a library such as `tokio-postgres-rustls` or `postgres-native-tls`
    /// makes, in place of what the words say. Whether one without encryption will do says the `sslmode` of the
    /// [`Config`].
    #[must_use]
    pub fn with_tls<T>(mut self, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.tls = connects_with(tls);
        self
    }

    /// By which name people see this client, unless the words have an `application_name`. Without either it is
    /// [`client_name`].
    #[must_use]
    pub fn as_client(mut self, name: &str) -> Self {
        if self.config.get_application_name().is_none() {
            self.config.application_name(name);
        }
        self
    }

    /// Without a password in the words, takes it from the environment's `PGPASSWORD`, or from the file that
    /// `PGPASSFILE` names, or `~/.pgpass`.
    ///
    /// # Errors
    /// When the file is there and others may read it.
    pub fn with_password(mut self) -> Result<Self, NotAnAddress> {
        if self.config.get_password().is_none()
            && let Some(password) = passwords::find(&self.config)?
        {
            self.config.password(password);
        }
        Ok(self)
    }

    /// Begins to connect.
    pub(crate) fn connects(&self) -> Connecting {
        let config = self.clone().as_client(&client_name()).config;
        (self.tls)(config)
    }
}

fn connects_with<T>(tls: T) -> Arc<dyn Fn(Config) -> Connecting + Send + Sync>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    Arc::new(move |config| {
        let tls = tls.clone();
        Box::pin(async move {
            let (client, mut connection) = config.connect(tls).await?;
            let messages = move |context: &mut Context<'_>| connection.poll_message(context);
            Ok((client, Box::new(messages) as Messages))
        })
    })
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let words::Split { ours, rest } = words::split(text)?;
        let mut config: Config = rest.parse().map_err(|error: Error| {
            // The cause names the word.
            NotAnAddress::new(
                error
                    .source()
                    .map_or(error.to_string(), ToString::to_string),
            )
        })?;
        let word = |name: &str| ours.get(name).map(String::as_str);
        let usual = std::env::home_dir().map(|home| home.join(".postgresql/root.crt"));
        let files = Files {
            trusted: match word("sslrootcert") {
                Some("system") => None,
                Some(file) => Some(file.into()),
                None => usual.filter(|file| file.exists()),
            },
            certificate: word("sslcert").map(PathBuf::from),
            key: word("sslkey").map(PathBuf::from),
        };
        let is_system = word("sslrootcert") == Some("system");
        let mode = word("sslmode").unwrap_or(if is_system { "verify-full" } else { "prefer" });
        if is_system && mode != "verify-full" {
            return Err(NotAnAddress::new(format_args!(
                "sslmode={mode} with sslrootcert=system: expected verify-full, since anybody has a certificate"
            )));
        }
        for (one, other) in [("sslcert", "sslkey"), ("sslkey", "sslcert")] {
            if word(one).is_some() && word(other).is_none() {
                return Err(NotAnAddress::new(format_args!("{one} without {other}")));
            }
        }
        let of_require = match files.trusted {
            Some(_) => Checks::Authority,
            None => Checks::Nothing,
        };
        let (mode, checks) = match mode {
            "disable" => return Ok(config.ssl_mode(SslMode::Disable).clone().into()),
            "allow" | "prefer" => (SslMode::Prefer, Checks::Nothing),
            "require" => (SslMode::Require, of_require),
            "verify-ca" => (SslMode::Require, Checks::Authority),
            "verify-full" => (SslMode::Require, Checks::AuthorityAndName),
            other => {
                return Err(NotAnAddress::new(format_args!(
                    "sslmode={other}: expected disable, allow, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        config.ssl_mode(mode);
        let tls = spanlock_lease_tls::client(&files, checks).map_err(NotAnAddress::new)?;
        Ok(Self::from(config).with_tls(Tls(MakeRustlsConnect::new(tls))))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Address");
        debug.field("hosts", &self.config.get_hosts());
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn what_is_wrong_is_named_and_no_password_is() {
        for (wrong, why) in [
            ("host=a passwort=secret", "unknown option `passwort`"),
            ("host=a password=secret port=b", "port"),
            (
                "host=a password=secret sslmode=verify",
                "sslmode=verify: expected",
            ),
            (
                "postgres://me:secret@a/b?sslmode=full",
                "sslmode=full: expected",
            ),
            (
                "postgres://me:secret@a/b?sslrootcert=/nowhere&sslmode=verify-ca",
                "/nowhere: ",
            ),
            (
                "host=a password=secret sslrootcert='/no where' sslmode=verify-full",
                "/no where: ",
            ),
            (
                "host=a password=secret sslrootcert=system sslmode=require",
                "sslmode=require with sslrootcert=system: expected verify-full",
            ),
            ("host=a sslcert=/some", "sslcert without sslkey"),
            ("host=a sslmode", "sslmode: expected a word with `=`"),
            ("host='a", "a quote is open"),
        ] {
            let said = wrong.parse::<Address>().expect_err(wrong).to_string();
            assert!(
                said.contains(why) && !said.contains("secret"),
                "{wrong}: {said}"
            );
        }
    }

    #[test]
    fn words_and_urls_are_read() {
        for text in [
            "host=/run/postgresql user=app dbname = app sslmode=disable",
            r"host=a password='a \' b\\' sslmode = 'require'",
            "postgresql://app:a%20b@a,b:5433/app?sslmode=prefer&target_session_attrs=read-write",
            "postgres://a",
        ] {
            let address: Address = text.parse().expect(text);
            assert!(!address.config.get_hosts().is_empty());
        }
        let quoted: Address = r"host=a password='a \' b\\' sslmode=require"
            .parse()
            .expect("words");
        assert_eq!(quoted.config.get_password(), Some(&br"a ' b\"[..]));
    }
}
