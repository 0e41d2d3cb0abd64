//! `spanlock report`.

use crate::failure::{At, Failure};
use crate::output::print;
use clap::Args;
use spanlock_report::page::findings::Findings;
use spanlock_report::page::input::Input;
use spanlock_report::page::render::{html, markdown, picture};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Report {
    /// Output of `spanlock bench` and `spanlock sim` with `--format json`.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page: one file, which needs no network and no scripts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The findings as Markdown; without any of these options, they are printed.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// What the default range lock does beside the best other one, on the largest machine: one chart, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
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
    if let Some(path) = &command.markdown {
        write(path, &markdown(&input, &findings))?;
    }
    if let Some(path) = &command.picture {
        let none =
            "the files: the default range lock met no other one, so there is nothing to draw";
        let picture = picture(&input).ok_or_else(|| Failure::Input(none.to_owned()))?;
        write(path, &picture)?;
    }
    if [&command.html, &command.markdown, &command.picture] == [&None; 3] {
        print(&markdown(&input, &findings))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::File(path.display().to_string(), error))
}
