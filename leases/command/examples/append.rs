//! Appends a line to a file that machines share: `spanlock-lease run --resource log -- append FILE LINE`.
//!
//! Each line begins with the fence of who wrote it. Whoever was overtaken while he stood still is refused.

use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let fence: u64 = env::var("SPANLOCK_FENCE")?.parse()?;
    let mut arguments = env::args().skip(1);
    let (Some(file), Some(line)) = (arguments.next(), arguments.next()) else {
        return Err("expected a file and a line".into());
    };
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(file)?;
    // Between those who are here at this moment. The fence is for those who come from the past.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let fences = text
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
    match fences.max() {
        Some(seen) if fence < seen => Err(format!("too late: fence {seen} has written").into()),
        _ => Ok(writeln!(file, "{fence} {line}")?),
    }
}
