//! Passwords that are not in the address, where `libpq` looks for them.

use spanlock_lease::NotAnAddress;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// By the environment, or by the file of passwords.
pub(super) fn find(config: &Config) -> Result<Option<String>, NotAnAddress> {
    if let Ok(password) = env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let usual = || Some(env::home_dir()?.join(".pgpass"));
    let Some(file) = env::var_os("PGPASSFILE").map(PathBuf::from).or_else(usual) else {
        return Ok(None);
    };
    let Ok(known) = fs::metadata(&file) else {
        return Ok(None);
    };
    let unusable = |why: &dyn std::fmt::Display| {
        NotAnAddress::new(format_args!(
            "the file of passwords {}: {why}",
            file.display()
        ))
    };
    if known.mode() & 0o077 != 0 {
        return Err(unusable(
            &"others may read it, so it is not used: chmod 600",
        ));
    }
    let text = fs::read_to_string(&file).map_err(|error| unusable(&error))?;
    Ok(of_first_host(config, &text))
}

/// The password for the first server of several.
fn of_first_host(config: &Config, text: &str) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // Of the server's usual folders, `libpq` says this.
        Some(Host::Unix(path)) if is_usual(path) => "localhost".to_owned(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config.get_hostaddrs().first()?.to_string(),
    };
    let port = config.get_ports().first().unwrap_or(&5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let asked = [&host, &port, config.get_dbname().unwrap_or(user), user];
    let matching = |line: &str| {
        let [at @ .., password] = <[String; 5]>::try_from(fields(line)).ok()?;
        let fits = |(field, asked): (&String, &&str)| field == "*" || field == asked;
        at.iter().zip(&asked).all(fits).then_some(password)
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(matching).next()
}

fn is_usual(folder: &Path) -> bool {
    ["/run/postgresql", "/var/run/postgresql", "/tmp"]
        .map(Path::new)
        .contains(&folder)
}

/// Between colons. A backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(next) = characters.next() {
        let field = fields.last_mut().expect("there is one at least");
        match next {
            ':' => fields.push(String::new()),
            '\\' => field.extend(characters.next()),
            other => field.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::of_first_host;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# localhost:*:*:app:no\nb:*:*:*:of b\na:5433:*:app:port\na:*:x:app:of\\:x\n*:*:*:app:rest\nlocalhost:*:*:*:socket";
        let password = |address: &str| of_first_host(&address.parse().expect("words"), text);
        for (address, expected) in [
            ("host=b user=me", Some("of b")),
            ("host=a user=app port=5433 dbname=x", Some("port")),
            ("host=a user=app dbname=x", Some("of:x")),
            ("host=a user=app", Some("rest")),
            ("host=/run/postgresql user=other", Some("socket")),
            ("host=/elsewhere user=other", None),
        ] {
            assert_eq!(password(address).as_deref(), expected, "{address}");
        }
    }
}
