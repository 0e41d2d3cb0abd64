//! How the engines of leases encrypt: whom they trust and who they are, from files of certificates.

mod heard;

pub use heard::Heard;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is looked at in the certificate of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checks {
    /// Nothing: who is in between can read along.
    Nothing,
    /// Who has signed it.
    Authority,
    /// Who has signed it, and that it has the name by which the server was reached.
    #[default]
    AuthorityAndName,
}

/// Files in PEM.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Certificates that are trusted, and no others. Without it, those that the system trusts.
    pub trusted: Option<PathBuf>,
    /// The client's own certificate, and those that lead from it to one that the server trusts.
    pub certificate: Option<PathBuf>,
    /// The key of that.
    pub key: Option<PathBuf>,
}

/// A file that cannot be used, and why.
#[derive(Debug)]
pub struct Unusable {
    file: PathBuf,
    why: String,
}

impl Unusable {
    fn new(file: &Path, why: impl fmt::Display) -> Self {
        let (file, why) = (file.to_owned(), why.to_string());
        Self { file, why }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for Unusable {}

/// How connections are encrypted.
///
/// # Errors
/// When a file cannot be used, or the system trusts nobody.
pub fn client(files: &Files, checks: Checks) -> Result<ClientConfig, Unusable> {
    let provider = Arc::new(ring::default_provider());
    let by_name = match checks {
        Checks::Nothing => None,
        Checks::Authority | Checks::AuthorityAndName => {
            let at = files
                .trusted
                .as_deref()
                .unwrap_or(Path::new("the system's certificates"));
            let roots = Arc::new(trusted(files.trusted.as_deref())?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
            Some(verifier.build().map_err(|error| Unusable::new(at, error))?)
        }
    };
    let verifier = Arc::new(Verifier {
        by_name,
        checks,
        provider: Arc::clone(&provider),
    });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has what these versions need")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let (Some(certificate), Some(key)) = (&files.certificate, &files.key) else {
        return Ok(config.with_no_client_auth());
    };
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| Unusable::new(key, error))?;
    let shown = config.with_client_auth_cert(certificates(certificate)?, own);
    shown.map_err(|error| Unusable::new(certificate, error))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let all: Vec<_> = all.map_err(|error| Unusable::new(file, error))?;
    match all.is_empty() {
        true => Err(Unusable::new(file, "there is no certificate in it")),
        false => Ok(all),
    }
}

fn trusted(file: Option<&Path>) -> Result<RootCertStore, Unusable> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                let added = roots.add(certificate);
                added.map_err(|error| Unusable::new(file, error))?;
            }
        }
        None => {
            // Systems have some that nobody can read any more.
            let found = rustls_native_certs::load_native_certs().certs;
            roots.add_parsable_certificates(found);
        }
    }
    Ok(roots)
}

/// Looks at as much as it is told to.
#[derive(Debug)]
struct Verifier {
    by_name: Option<Arc<WebPkiServerVerifier>>,
    checks: Checks,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(by_name) = &self.by_name else {
            return Ok(ServerCertVerified::assertion());
        };
        use CertificateError::{NotValidForName, NotValidForNameContext};
        match by_name.verify_server_cert(certificate, between, name, status, now) {
            // The name is what is looked at last.
            Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
                if self.checks == Checks::Authority =>
            {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}
