//! Many threads edit one file in place at the same time. Each thread locks the bytes that it edits, and no others.
//!
//! ```text
//!   file       |....|====== A ======|......|=== B ===|........|      A and B are disjoint: both edits run
//!              |...........|========= C ========|.............|      C overlaps both: its edit waits
//! ```
//!
//! `cargo run --release --example edit_file` edits a built-in text. With a path as its argument it edits a copy of that
//! file.
//!
//! An edit replaces each letter of a range by the next letter of the alphabet. Edits of the same bytes give the same
//! result in any order. So the example compares the file with the result of the same edits made one after another.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    match edit_file::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("edit_file: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("edit_file: this example needs positioned reads and writes, as Unix has them");
    ExitCode::FAILURE
}

#[cfg(unix)]
mod edit_file {
    use spanlock::range::RangeLock;
    use std::error::Error;
    use std::fs::{self, File};
    use std::io;
    use std::ops::Range;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::thread;

    const THREADS: usize = 8;
    const EDITS_PER_THREAD: u64 = 2_000;
    const LONGEST_EDIT: u64 = 4_096;

    /// A file, and the lock for its bytes.
    struct SharedFile {
        file: File,
        bytes: RangeLock,
    }

    impl SharedFile {
        /// Reads a range, changes it and writes it back. No other thread edits any of these bytes in the meantime.
        fn edit(&self, range: Range<u64>, change: impl Fn(&mut [u8])) -> io::Result<()> {
            let _held = self.bytes.write(range.clone());
            let mut content = vec![0; length(&range)];
            self.file.read_exact_at(&mut content, range.start)?;
            change(&mut content);
            self.file.write_all_at(&content, range.start)
        }
    }

    fn length(range: &Range<u64>) -> usize {
        usize::try_from(range.end - range.start).expect("an edit fits into memory")
    }

    fn next_letters(content: &mut [u8]) {
        for byte in content {
            *byte = match *byte {
                b'z' => b'a',
                b'Z' => b'A',
                letter if letter.is_ascii_alphabetic() => letter + 1,
                other => other,
            };
        }
    }

    /// The ranges that a thread edits. They are scattered, and some overlap ranges of other threads.
    fn ranges(thread: usize, file_length: u64) -> impl Iterator<Item = Range<u64>> {
        let mut state = thread as u64;
        let mut below = move |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        (0..EDITS_PER_THREAD).map(move |_| {
            let start = below(file_length);
            start..file_length.min(start + 1 + below(LONGEST_EDIT))
        })
    }

    fn edit_by_all_threads(shared: &SharedFile, file_length: u64) -> io::Result<()> {
        thread::scope(|scope| {
            let edit_all = |thread| {
                ranges(thread, file_length).try_for_each(|range| shared.edit(range, next_letters))
            };
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || edit_all(thread)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no thread panics"))
        })
    }

    /// Makes the file to edit; returns its path and its content.
    fn prepare() -> Result<(PathBuf, Vec<u8>), Box<dyn Error>> {
        let mut arguments = std::env::args_os().skip(1);
        let content = match (arguments.next(), arguments.next()) {
            (None, _) => b"The quick brown fox jumps over the lazy dog.\n".repeat(20_000),
            (Some(path), None) => {
                let path = Path::new(&path);
                fs::read(path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?
            }
            _ => return Err("expected at most one argument, the file to edit a copy of".into()),
        };
        if content.is_empty() {
            return Err("the file is empty: there is nothing to edit".into());
        }
        let copy = std::env::temp_dir().join(format!("edit_file-{}", std::process::id()));
        fs::write(&copy, &content)?;
        Ok((copy, content))
    }

    pub(super) fn run() -> Result<(), Box<dyn Error>> {
        let (path, mut expected) = prepare()?;
        let file_length = expected.len() as u64;
        let shared = SharedFile {
            file: File::options().read(true).write(true).open(&path)?,
            bytes: RangeLock::new(),
        };
        let edited = edit_by_all_threads(&shared, file_length);
        let found = fs::read(&path);
        fs::remove_file(&path)?;
        edited?;
        let mut bytes = 0;
        for range in (0..THREADS).flat_map(|thread| ranges(thread, file_length)) {
            bytes += range.end - range.start;
            let start = usize::try_from(range.start)?;
            next_letters(&mut expected[start..start + length(&range)]);
        }
        let edits = THREADS as u64 * EDITS_PER_THREAD;
        println!(
            "{THREADS} threads made {edits} edits, {bytes} bytes in all, in a file of {file_length}"
        );
        if found? != expected {
            return Err("the file differs from the sequential replay".into());
        }
        println!("file equals the sequential replay: yes");
        Ok(())
    }
}
