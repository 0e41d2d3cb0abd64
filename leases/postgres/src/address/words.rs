//! The words of an address: those that say how to encrypt, and the others, which the client of the server reads.

use spanlock_lease::NotAnAddress;
use std::collections::HashMap;

/// What says how connections are encrypted.
const OURS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// The words that are ours, and a text without them.
pub(super) struct Split {
    pub(super) ours: HashMap<String, String>,
    pub(super) rest: String,
}

pub(super) fn split(text: &str) -> Result<Split, NotAnAddress> {
    let is_url = ["postgres://", "postgresql://"]
        .iter()
        .any(|begin| text.starts_with(begin));
    let (before, all) = match (is_url, text.split_once('?')) {
        (true, Some((before, query))) => (before, query.split('&').map(parameter).collect()),
        (true, None) => (text, Ok(Vec::new())),
        (false, _) => ("", words(text)),
    };
    let (ours, others): (HashMap<_, _>, Vec<_>) = {
        let (ours, others): (Vec<_>, Vec<_>) = all?
            .into_iter()
            .partition(|(name, _)| OURS.contains(&name.as_str()));
        (ours.into_iter().collect(), others)
    };
    let others = others.into_iter().map(|(name, value)| match is_url {
        true => format!(
            "{name}={}",
            percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC)
        ),
        false => format!(
            "{name}='{}'",
            value.replace('\\', r"\\").replace('\'', r"\'")
        ),
    });
    let others = others.collect::<Vec<_>>();
    let rest = match (is_url, others.is_empty()) {
        (true, true) => before.to_owned(),
        (true, false) => format!("{before}?{}", others.join("&")),
        (false, _) => others.join(" "),
    };
    Ok(Split { ours, rest })
}

/// A part of a URL's query.
fn parameter(text: &str) -> Result<(String, String), NotAnAddress> {
    let decoded = |text| {
        let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
        decoded.map(String::from).map_err(NotAnAddress::new)
    };
    let (name, value) = text.split_once('=').ok_or_else(|| lacks_value(text))?;
    Ok((decoded(name)?, decoded(value)?))
}

fn lacks_value(name: &str) -> NotAnAddress {
    NotAnAddress::new(format_args!("{name}: expected a word with `=`"))
}

/// Words such as `host=a password='b c'`. A backslash takes the next character as it is.
fn words(text: &str) -> Result<Vec<(String, String)>, NotAnAddress> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = match rest.split_once('=') {
            Some((name, after)) if !name.trim_end().contains(char::is_whitespace) => {
                (name.trim_end(), after.trim_start())
            }
            _ => return Err(lacks_value(rest.split_whitespace().next().unwrap_or(rest))),
        };
        let is_quoted = after.starts_with('\'');
        let mut value = String::new();
        let mut characters = after.char_indices().skip(usize::from(is_quoted));
        let end = loop {
            match characters.next() {
                None if is_quoted => {
                    return Err(NotAnAddress::new(format_args!("{name}: a quote is open")));
                }
                None => break after.len(),
                Some((at, '\'')) if is_quoted => break at + 1,
                Some((at, space)) if space.is_whitespace() && !is_quoted => break at,
                Some((_, '\\')) => value.extend(characters.next().map(|(_, next)| next)),
                Some((_, other)) => value.push(other),
            }
        };
        all.push((name.to_owned(), value));
        rest = after[end..].trim_start();
    }
    Ok(all)
}
