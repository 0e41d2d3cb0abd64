//! Connections: too many, of other clients, that are gone, and when the server stops.

use super::*;

/// A server that may have few files open, and so few connections.
#[test]
fn too_many_connections_do_not_end_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    a_store(&path);
    let leases = Leases::new();
    let server = Process::start_by(
        Command::new("sh").args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""]),
        &path,
    );
    let many: Vec<_> = (0..80)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    // It greets whom it serves, until it can serve no more.
    let mut greeting = [0; 8];
    (&many[0]).read_exact(&mut greeting).unwrap();
    let waits = &many[79];
    waits
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert!((&*waits).read_exact(&mut greeting).is_err());
    drop(many);
    let token = leases.token(0..1, Mode::Exclusive);
    let file = FencedFile::connect(server.address, "a").unwrap();
    file.enter(&token).unwrap().write_at(&[1], 0).unwrap();
}

/// A client of another make, which does not look at the mode itself.
#[test]
fn a_shared_lease_does_not_write() {
    with_server(|address| {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&greeting).unwrap();
        let mut ask = |mode: u8| {
            let mut request = vec![2, mode, 1, 0];
            request.extend(1_u32.to_le_bytes());
            for number in [1_u64, 0, 1] {
                request.extend(number.to_le_bytes());
            }
            request.extend(b"ax");
            stream.write_all(&request).unwrap();
            let mut answer = [0; 24];
            stream.read_exact(&mut answer).unwrap();
            let text = u64::from_le_bytes(answer[16..].try_into().unwrap());
            let mut why = vec![0; text as usize];
            if answer[0] == 2 {
                stream.read_exact(&mut why).unwrap();
            }
            answer[0]
        };
        assert_eq!((ask(0), ask(1)), (2, 0));
    });
}

#[test]
fn what_nobody_understands_ends_the_connection() {
    with_server(|address| {
        for wrong in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"SLFS\x02\0\0\0",
            b"SLFS\x01\0\0\0\x09\0\0\0",
            b"SLFS",
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut answer = Vec::new();
            // The connection may be cut off at each of these steps.
            let _ = stream
                .write_all(wrong)
                .and_then(|()| stream.write_all(&[7; 64]));
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() <= 8, "{answer:?}");
        }
        let leases = Leases::new();
        let token = leases.token(0..1, Mode::Exclusive);
        let file = FencedFile::connect(address, "a").unwrap();
        file.enter(&token).unwrap();
    });
}

/// The state of the server's side of a connection to this port, and its timer, as Linux lists them.
fn of_the_server(address: SocketAddr) -> Vec<String> {
    let listed = fs::read_to_string("/proc/self/net/tcp").expect("Linux has it");
    let own = format!("0100007F:{:04X}", address.port());
    let lines = listed
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let connected = lines.filter(|words| words[1] == own && words[3] == "01");
    connected.map(|words| words[5].to_owned()).collect()
}

#[test]
fn who_is_gone_without_a_word_will_be_found() {
    with_server(|address| {
        let file = FencedFile::connect(address, "file").unwrap();
        assert_eq!(file.size().unwrap(), 0);
        // 01 is that of data which was sent, 02 that of a connection that is idle.
        let timer = loop {
            match &of_the_server(address)[..] {
                [timer] if timer.starts_with("01:") => thread::yield_now(),
                [timer] => break timer.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert!(timer.starts_with("02:"), "{timer}");
    });
}

#[test]
fn a_server_that_stops_answers_what_it_has_got() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    a_store(&path);
    let nothing = || "nothing happens".to_owned();
    watched(
        HANG,
        || (),
        |()| nothing(),
        || {
            let (store, _) = Store::open(Mapped::open(&path).unwrap(), Options::default()).unwrap();
            let files = FencedFiles::new(store).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let token = Leases::new().token(.., Mode::Exclusive);
            let connect = || FencedFile::connect(address, "file").unwrap();
            let (done, asked) = (AtomicU64::new(0), AtomicU64::new(0));
            let works = || {
                let file = connect();
                let extent = file.enter(&token).unwrap();
                loop {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    match extent.write_at(&number.to_le_bytes(), 8 * number) {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(Error::Io(_)) => break,
                        Err(other) => panic!("{other}"),
                    };
                }
            };
            thread::scope(|scope| {
                let serving = scope.spawn(|| files.serve_tcp(&listener));
                let beside = scope.spawn(|| files.serve_tcp(&listener));
                let (idle, writes) = (connect(), scope.spawn(works));
                while done.load(Ordering::Relaxed) < 20 {
                    thread::yield_now();
                }
                files.stop().unwrap();
                serving.join().unwrap().unwrap();
                beside.join().unwrap().unwrap();
                writes.join().unwrap();
                assert!(matches!(idle.size(), Err(Error::Io(_))));
                assert!(TcpStream::connect(address).is_err());
                assert!(matches!(files.serve_tcp(&listener), Ok(())));
            });
            files.close().unwrap();
            // It was closed in order.
            let (_, recovered) =
                Store::open(Mapped::open(&path).unwrap(), Options::default()).unwrap();
            assert!(recovered.findings.is_empty(), "{:?}", recovered.findings);
        },
    );
}
