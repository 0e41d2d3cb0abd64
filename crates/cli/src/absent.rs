//! Commands that are not built in: who asks for one is told how to have it.

use clap::{Arg, ArgMatches, Command};
use std::ffi::OsString;

/// A command that is not built in.
pub(crate) struct Absent {
    /// Its words.
    words: &'static [&'static str],
    /// The feature that has it.
    feature: &'static str,
}

/// All of them.
pub(crate) const ABSENT: &[Absent] = &[
    #[cfg(not(feature = "async"))]
    absent(&["bench", "async"], "async"),
    #[cfg(not(feature = "bench"))]
    absent(&["bench"], "bench"),
    #[cfg(not(feature = "report"))]
    absent(&["report"], "report"),
    #[cfg(not(feature = "run"))]
    absent(&["run"], "run"),
    #[cfg(not(feature = "sim"))]
    absent(&["sim"], "sim"),
    #[cfg(all(not(feature = "store"), target_os = "linux"))]
    absent(&["store"], "store"),
    #[cfg(not(feature = "bench"))]
    absent(&["vm"], "bench"),
];

#[cfg_attr(
    all(
        feature = "async",
        feature = "bench",
        feature = "report",
        feature = "run",
        feature = "sim",
        feature = "store"
    ),
    allow(dead_code, reason = "all are built in")
)]
const fn absent(words: &'static [&'static str], feature: &'static str) -> Absent {
    Absent { words, feature }
}

/// What they are given: not read.
const GIVEN: &str = "given";

/// Adds them to the command, so that its help names them.
pub(crate) fn with_absent(command: Command, absent: &[Absent]) -> Command {
    absent.iter().fold(command, |command, absent| {
        let about = format!("Not built in: it needs the feature `{}`", absent.feature);
        let given = Arg::new(GIVEN)
            .value_parser(clap::value_parser!(OsString))
            .num_args(..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .hide(true);
        add(command, absent.words, &|name| {
            Command::new(name).about(about.clone()).arg(given.clone())
        })
    })
}

/// Adds one, if what it belongs to is there.
fn add(
    command: Command,
    words: &[&'static str],
    make: &dyn Fn(&'static str) -> Command,
) -> Command {
    match words {
        [name] => command.subcommand(make(name)),
        [first, rest @ ..] if command.find_subcommand(first).is_some() => {
            command.mut_subcommand(first, |command| add(command, rest, make))
        }
        _ => command,
    }
}

/// If one was asked for, how to have it.
pub(crate) fn asked_for(matches: &ArgMatches, absent: &[Absent]) -> Option<String> {
    let asked = |absent: &&Absent| {
        let last = absent.words.iter().try_fold(matches, |matches, word| {
            let (name, matches) = matches.subcommand()?;
            (name == *word).then_some(matches)
        });
        last.is_some()
    };
    let Absent { words, feature } = absent.iter().find(asked)?;
    let words = words.join(" ");
    Some(format!(
        "`{words}` is not built in: cargo run --release --features {feature} -- {words}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Absent, absent, asked_for, with_absent};
    use clap::Command;

    #[test]
    fn who_asks_for_what_is_absent_is_told_the_feature() {
        let all = [absent(&["a", "c"], "one"), absent(&["d"], "two")];
        let command = Command::new("x").subcommand(Command::new("a").subcommand(Command::new("b")));
        let command = with_absent(command, &all);
        let asked = |words: &str| {
            let matches = command.clone().try_get_matches_from(words.split(' '));
            asked_for(&matches.unwrap(), &all)
        };
        let told = asked("x d --some 5 more").unwrap();
        assert!(told.contains("--features two -- d"), "{told}");
        let told = asked("x a c").unwrap();
        assert!(told.contains("`a c` is not built in"), "{told}");
        assert_eq!(
            [asked("x a b"), asked("x a"), asked("x")],
            [None, None, None]
        );
    }

    #[test]
    fn what_belongs_to_an_absent_command_is_absent_with_it() {
        let inner: &[Absent] = &[absent(&["a", "c"], "one")];
        assert_eq!(
            with_absent(Command::new("x"), inner)
                .get_subcommands()
                .count(),
            0
        );
    }
}
