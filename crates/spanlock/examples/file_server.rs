//! A file server on tokio: each request locks the bytes that it reads or writes, and a shutdown cancels those that
//! wait.
//!
//! ```text
//!   request   copy 0..4096 to 8192.. ----> lock both ranges ----> read, write ----> release
//!   request   read 1024..2048        ----> shares them with other readers
//!   shutdown  -----------------------------> the owner's waits end; what is held is finished
//! ```
//!
//! A request keeps its ranges while the file system works for it on another thread, so it holds them over an `.await`.
//! Requests that overlap wait for each other, and all others run side by side. The server gives each connection an
//! owner. When it shuts down it cancels the owners: who waits is refused, and who has its ranges ends its work.
//!
//! `cargo run --release --example file_server`

#[cfg(unix)]
fn main() {
    unix::serve();
}

#[cfg(not(unix))]
fn main() {
    println!("it reads and writes files by position, as Unix does");
}

#[cfg(unix)]
mod unix {
    use spanlock::range::raw::Mode::{Exclusive, Shared};
    use spanlock::range::{Owner, RangeLock, Refusal};
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;
    use std::{env, io, process};
    use tokio::task::{JoinSet, spawn_blocking};

    const BLOCK: u64 = 512;
    const BLOCKS: u64 = 64;
    const CONNECTIONS: u64 = 16;

    /// A file whose bytes are locked before they are used.
    struct Served {
        file: File,
        bytes: RangeLock,
        copied: AtomicU64,
        checked: AtomicU64,
    }

    /// What a request comes to.
    enum Failed {
        Refused(Refusal),
        Io(io::Error),
    }

    impl From<Refusal> for Failed {
        fn from(refusal: Refusal) -> Self {
            Self::Refused(refusal)
        }
    }

    impl From<io::Error> for Failed {
        fn from(error: io::Error) -> Self {
            Self::Io(error)
        }
    }

    /// Work for a thread that may block.
    async fn on_file<R: Send + 'static>(
        served: &Arc<Served>,
        work: impl FnOnce(&File) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let served = Arc::clone(served);
        let work = spawn_blocking(move || work(&served.file));
        work.await.expect("the work does not panic")
    }

    /// Copies a block to another place: both are locked together.
    async fn copy(served: &Arc<Served>, owner: &Owner, from: u64, to: u64) -> Result<(), Failed> {
        let bytes = |block: u64| block * BLOCK..(block + 1) * BLOCK;
        let wishes = [(bytes(from), Shared), (bytes(to), Exclusive)];
        let held = served.bytes.by(owner).lock_many_async(wishes).await?;
        on_file(served, move |file| {
            let mut block = [0; BLOCK as usize];
            file.read_exact_at(&mut block, from * BLOCK)?;
            file.write_all_at(&block, to * BLOCK)
        })
        .await?;
        drop(held);
        served.copied.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Checks that a block is what one write has left: all its bytes are the same.
    async fn check(served: &Arc<Served>, owner: &Owner, block: u64) -> Result<(), Failed> {
        let start = block * BLOCK;
        let held = served
            .bytes
            .by(owner)
            .read_async(start..start + BLOCK)
            .await?;
        let block = on_file(served, move |file| {
            let mut block = [0; BLOCK as usize];
            file.read_exact_at(&mut block, start).map(|()| block)
        })
        .await?;
        drop(held);
        assert!(
            block.iter().all(|&byte| byte == block[0]),
            "a write was seen in part"
        );
        served.checked.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Serves a connection until it is shut down.
    async fn connection(served: Arc<Served>, owner: Owner, number: u64) -> Result<(), Failed> {
        let mut turn = number;
        loop {
            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [from, to] = [turn >> 20, turn >> 40].map(|random| random % BLOCKS);
            copy(&served, &owner, from, to).await?;
            check(&served, &owner, from).await?;
            if owner.is_cancelled() {
                return Ok(());
            }
        }
    }

    #[tokio::main(worker_threads = 2)]
    pub async fn serve() {
        let path = env::temp_dir().join(format!("spanlock-file-server-{}", process::id()));
        let made = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        let file = made.expect("a file in the folder for such files");
        fs::remove_file(&path).expect("just made");
        for block in 0..BLOCKS {
            let fill = [u8::try_from(block).expect("there are few"); BLOCK as usize];
            file.write_all_at(&fill, block * BLOCK)
                .expect("there is room");
        }
        let served = Arc::new(Served {
            file,
            bytes: RangeLock::new(),
            copied: AtomicU64::new(0),
            checked: AtomicU64::new(0),
        });
        let owners: Vec<_> = (0..CONNECTIONS).map(|_| Owner::new()).collect();
        let mut connections = JoinSet::new();
        for (number, owner) in (0..).zip(&owners) {
            connections.spawn(connection(Arc::clone(&served), owner.clone(), number));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        owners.iter().for_each(Owner::cancel);
        let mut cancelled = 0;
        while let Some(ended) = connections.join_next().await {
            match ended.expect("no connection panics") {
                Ok(()) => {}
                Err(Failed::Refused(Refusal::Cancelled)) => cancelled += 1,
                Err(Failed::Refused(refusal)) => panic!("{refusal}"),
                Err(Failed::Io(error)) => panic!("{error}"),
            }
        }
        assert!(served.bytes.try_write(..).is_some(), "nothing stays behind");
        let (copied, checked) = (served.copied.load(Relaxed), served.checked.load(Relaxed));
        println!(
            "{copied} blocks copied, {checked} checked; {cancelled} of {CONNECTIONS} waited at the end"
        );
    }
}
