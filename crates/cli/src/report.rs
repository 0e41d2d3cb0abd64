//! `spanlock report`.

use crate::failure::{At, Failure};
use crate::output::print_lines;
use clap::Args;
use spanlock_report::page::figures::{figures, picture};
use spanlock_report::page::findings::Findings;
use spanlock_report::page::input::Input;
use spanlock_report::page::render::html;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Report {
    /// Output of `spanlock bench` and `spanlock sim` with `--format json`.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page: one file, which needs no network and no scripts. Without any of these options, the findings are
    /// written as lines of JSON.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The throughput of each range lock in the first panel of the largest machine, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// What was measured as tables in Markdown, with where it comes from.
    #[arg(long, value_name = "FILE")]
    tables: Option<PathBuf>,
}

pub(crate) fn run(command: &Report) -> Result<(), Failure> {
    let mut input = Input::default();
    for path in &command.files {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).at(path)?;
        let added = input.add(&name, &text);
        added.map_err(|broken| Failure::Input(broken.to_string()))?;
    }
    let findings = Findings::of(&input);
    if let Some(path) = &command.html {
        write(path, &html(&input, &findings))?;
    }
    if let Some(path) = &command.picture {
        let none =
            "the files: the default range lock met no other one, so there is nothing to draw";
        let picture = picture(&input).ok_or_else(|| Failure::Input(none.to_owned()))?;
        write(path, &picture)?;
    }
    if let Some(path) = &command.tables {
        write(path, &figures(&input))?;
    }
    let outputs = [&command.html, &command.picture, &command.tables];
    match outputs.iter().all(|output| output.is_none()) {
        true => print_lines(findings.lines()),
        false => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::File(path.display().to_string(), error))
}
