//! `nodeproof data get`, end to end, against a server that misbehaves.

#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(feature = "download")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use assert_cmd::Command;
use common::{Fixture, Run, json};
use sha1::{Digest, Sha1};

/// What a server does with one connection, whose request it has read.
type Answer = Box<dyn FnMut(&mut TcpStream) + Send>;

/// A server on this machine that gives its answers in turn, and then the last again and again.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(mut answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = Arc::clone(&server.requests);
        thread::spawn(move || {
            for (i, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                requests.lock().unwrap().push(request(&stream));
                let last = answers.len() - 1;
                answers[i.min(last)](&mut stream);
            }
        });
        server
    }

    fn url(&self) -> String {
        format!("http://{}/data", self.address)
    }

    /// The paths that were asked for.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads a request, and says for what.
fn request(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn head(status: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}\r\n").into_bytes()
}

/// Answers with these bytes, then closes the connection. Whether the client listens to the end is its own affair.
fn raw(bytes: Vec<u8>) -> Answer {
    Box::new(move |stream| drop(stream.write_all(&bytes)))
}

/// Promises `length` bytes and sends these.
fn sized(length: usize, bytes: &[u8]) -> Answer {
    raw([&head("200 OK", &format!("Content-Length: {length}\r\n")), bytes].concat())
}

fn whole(bytes: &[u8]) -> Answer {
    sized(bytes.len(), bytes)
}

fn half(bytes: &[u8]) -> Answer {
    sized(bytes.len(), &bytes[..bytes.len() / 2])
}

/// Sends two chunks, and the end mark if there is to be one.
fn chunked(bytes: &[u8], end: &str) -> Answer {
    let mut text = head("200 OK", "Transfer-Encoding: chunked\r\n");
    for chunk in [&bytes[..9], &bytes[9..]] {
        text.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        text.extend(chunk);
        text.extend(b"\r\n");
    }
    text.extend(end.as_bytes());
    raw(text)
}

fn status(status: &str) -> Answer {
    raw(head(status, "Content-Length: 0\r\n"))
}

fn redirect(place: &str) -> Answer {
    raw(head("302 Found", &format!("Location: {place}\r\nContent-Length: 0\r\n")))
}

/// Sends half of the bytes and then nothing until the client has had enough; `sent` is told when half is sent.
fn stalled(bytes: &[u8], sent: Option<mpsc::Sender<()>>) -> Answer {
    let mut half = half(bytes);
    Box::new(move |stream| {
        half(stream);
        sent.iter().for_each(|sent| sent.send(()).unwrap());
        let _ = stream.read(&mut [0]);
    })
}

/// Sends a little at a time, for two and a half seconds.
fn slow(bytes: &[u8]) -> Answer {
    let (head, bytes) = (head("200 OK", &format!("Content-Length: {}\r\n", bytes.len())), bytes.to_owned());
    Box::new(move |stream| {
        let pieces = bytes.chunks(bytes.len().div_ceil(25));
        for piece in [head.as_slice()].into_iter().chain(pieces) {
            let _ = stream.write_all(piece);
            thread::sleep(Duration::from_millis(100));
        }
    })
}

/// A folder with a cache and a graph that the server has.
struct Place {
    fixture: Fixture,
    bytes: Vec<u8>,
}

impl Place {
    fn new() -> Self {
        let fixture = Fixture::new();
        let bytes = fs::read(fixture.path("graph.npz")).unwrap();
        Self { fixture, bytes }
    }

    /// The graph as an argument.
    fn data_set(&self) -> String {
        format!("papers={}", checksum(&self.bytes))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.fixture.command();
        command.args(["data", "get"]).args(line.split_whitespace()).env("NODEPROOF_CACHE", self.fixture.path("cache"));
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "nodeproof_mirror"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        command
    }

    fn run(&self, line: &str) -> Run {
        let output = self.command(line).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Asks `server` for the graph, with these further arguments.
    fn get(&self, server: &Server, more: &str) -> Run {
        self.run(&format!("{} --mirror {} {more}", self.data_set(), server.url()))
    }

    /// Asserts that the graph is in the cache, and nothing else.
    #[track_caller]
    fn has_graph(&self) {
        assert_eq!(files(&self.fixture.path("cache")), ["papers.npz"]);
        assert!(fs::read(self.fixture.path("cache/papers.npz")).unwrap() == self.bytes);
    }

    /// Asserts that the run failed, saying all these words, and that nothing is in the cache.
    #[track_caller]
    fn has_nothing(&self, run: &Run, words: &[&str]) {
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        words.iter().for_each(|words| assert!(run.stderr.contains(words), "{words}\n{}", run.stderr));
        assert_eq!(files(&self.fixture.path("cache")), [""; 0]);
    }
}

fn checksum(bytes: &[u8]) -> String {
    let sum = Sha1::new().chain_update(format!("blob {}\0", bytes.len())).chain_update(bytes).finalize();
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_download_is_put_into_the_cache_and_not_repeated() {
    let place = Place::new();
    let server = Server::new(vec![whole(&place.bytes)]);
    let text = place.get(&server, "").succeeded().stdout;
    let path = place.fixture.path("cache/papers.npz").display().to_string();
    for words in ["papers", "downloaded", &path, &format!("nodeproof data info {path}\n")] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    place.has_graph();
    let text = place.get(&server, "").succeeded().stdout;
    assert!(text.contains("there already"), "{text}");
    place.get(&server, "--offline").succeeded();
    assert_eq!(place.get(&server, "--quiet").succeeded().stdout, "");
    assert_eq!(server.requests(), ["/data/papers.npz"], "one request for all");
    let text = place.get(&server, "--json").succeeded().stdout;
    let got = &json(&text)[0];
    assert_eq!((&got["name"], &got["file"], &got["downloaded"]), (&"papers".into(), &path.into(), &false.into()));
    assert_eq!((&got["checksum"], &got["flags"]), (&checksum(&place.bytes).into(), &json("[]")));
}

#[test]
fn flags_that_a_graph_needs_are_part_of_the_advice() {
    let place = Place::new();
    common::graph_npz(&place.fixture.path("counts.npz"), [1.0, 3.0, 0.5]);
    let bytes = fs::read(place.fixture.path("counts.npz")).unwrap();
    let server = Server::new(vec![whole(&bytes)]);
    let run = place.run(&format!("counts={} --mirror {}", checksum(&bytes), server.url()));
    assert!(run.succeeded().stdout.contains("counts.npz --binarise\n"));
}

#[test]
fn several_data_sets_and_a_folder_of_choice() {
    let place = Place::new();
    let server = Server::new(vec![whole(&place.bytes)]);
    let again = format!("again={}", checksum(&place.bytes));
    place.get(&server, &format!("{again} --out new/folder")).succeeded();
    let mut there = files(&place.fixture.path("new/folder"));
    there.sort();
    assert_eq!(there, ["again.npz", "papers.npz"]);
    assert!(!place.fixture.exists("cache"));
    // The folder is the user's, and so is what lies in it.
    place.fixture.write("papers.npz", "my own");
    let run = place.get(&server, "--out .");
    assert!(run.code == 2 && run.stderr.contains("move it away"), "{}", run.stderr);
    assert_eq!((place.fixture.read("papers.npz").as_str(), server.requests().len()), ("my own", 2));
}

#[test]
fn a_damaged_file_in_the_cache_is_replaced() {
    let place = Place::new();
    fs::create_dir(place.fixture.path("cache")).unwrap();
    let server = Server::new(vec![whole(&place.bytes)]);
    let mut tampered = place.bytes.clone();
    tampered[40] ^= 1;
    for damaged in [tampered.as_slice(), &place.bytes[..100], b""] {
        place.fixture.write("cache/papers.npz", damaged);
        let run = place.get(&server, "--offline");
        assert!(run.code == 2 && run.stderr.contains("--offline"), "{}", run.stderr);
        let run = place.get(&server, "");
        assert!(run.code == 0 && run.stderr.contains("will be replaced"), "{}", run.stderr);
        place.has_graph();
    }
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_file_that_ends_early_is_asked_for_again() {
    let place = Place::new();
    let bytes = &place.bytes;
    let server = Server::new(vec![half(bytes), chunked(bytes, ""), chunked(bytes, "0\r\n\r\n")]);
    let run = place.get(&server, "");
    assert_eq!((run.code, server.requests().len()), (0, 3), "{}", run.stderr);
    assert!(run.stderr.contains("trying again in 1 s") && run.stderr.contains("trying again in 2 s"), "{}", run.stderr);
    place.has_graph();
}

#[test]
fn a_file_that_always_ends_early_is_given_up() {
    let place = Place::new();
    let server = Server::new(vec![half(&place.bytes)]);
    let run = place.get(&server, "--retries 1");
    place.has_nothing(&run, &["cannot download papers", "attempt 2 of 2", "by other means"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_tampered_file_is_refused() {
    let place = Place::new();
    let mut tampered = place.bytes.clone();
    tampered[40] ^= 1;
    let server = Server::new(vec![whole(&tampered)]);
    let run = place.get(&server, "");
    let (right, wrong) = (checksum(&place.bytes), checksum(&tampered));
    place.has_nothing(&run, &[&right, &wrong, &server.url(), "nothing of it was kept", "another --mirror"]);
    assert_eq!(server.requests().len(), 1, "a lie is not asked for twice");
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let place = Place::new();
    let endless: Answer = Box::new(|stream| {
        let _ = stream.write_all(&head("200 OK", ""));
        while stream.write_all(&[0; 1 << 16]).is_ok() {}
    });
    let server = Server::new(vec![sized(64_000_001, b""), endless]);
    for requests in [1, 2] {
        let run = place.get(&server, "");
        place.has_nothing(&run, &["larger than 64 MB"]);
        assert_eq!(server.requests().len(), requests);
    }
}

#[test]
fn a_slow_server_is_waited_for() {
    let place = Place::new();
    let server = Server::new(vec![slow(&place.bytes)]);
    assert_eq!(place.get(&server, "--timeout 2").code, 0);
    place.has_graph();
}

#[test]
fn a_stalled_server_is_not() {
    let place = Place::new();
    let server = Server::new(vec![stalled(&place.bytes, None)]);
    let run = place.get(&server, "--timeout 0.5 --retries 0");
    place.has_nothing(&run, &["nothing came for 0.5 s", "by other means"]);
    // Not even an answer.
    let server = Server::new(vec![Box::new(|stream| drop(stream.read(&mut [0])))]);
    let run = place.get(&server, "--timeout 0.5 --retries 0");
    place.has_nothing(&run, &["nothing came for 0.5 s"]);
}

#[test]
fn without_a_server_the_way_by_hand_is_shown() {
    let place = Place::new();
    let path = place.fixture.path("cache/papers.npz").display().to_string();
    // Nothing listens on the first port.
    for (more, words) in [("--retries 0", "cannot download papers"), ("--offline", "--offline: papers is not in")] {
        let run = place.run(&format!("{} --mirror http://127.0.0.1:1 {more}", place.data_set()));
        let checksum = checksum(&place.bytes);
        place.has_nothing(&run, &[words, "http://127.0.0.1:1/papers.npz", &path, &checksum, "git hash-object"]);
    }
    // Whoever follows the advice is served.
    fs::create_dir_all(place.fixture.path("cache")).unwrap();
    place.fixture.write("cache/papers.npz", &place.bytes);
    place.run(&format!("{} --offline", place.data_set())).succeeded();
}

#[test]
fn redirects_are_followed() {
    let place = Place::new();
    let server = Server::new(vec![redirect("/elsewhere/p.npz"), whole(&place.bytes)]);
    place.get(&server, "").succeeded();
    place.has_graph();
    assert_eq!(server.requests(), ["/data/papers.npz", "/elsewhere/p.npz"]);
}

#[test]
fn redirects_in_circles_are_not() {
    let place = Place::new();
    let server = Server::new(vec![redirect("/data/papers.npz")]);
    place.has_nothing(&place.get(&server, ""), &["too many redirects"]);
}

#[test]
fn what_is_not_there_is_not_asked_for_again() {
    let place = Place::new();
    let server = Server::new(vec![status("404 Not Found")]);
    place.has_nothing(&place.get(&server, ""), &["the server answers 404", "--mirror"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    let place = Place::new();
    let answers = vec![status("500 Internal Server Error"), status("429 Too Many Requests"), whole(&place.bytes)];
    let server = Server::new(answers);
    let run = place.get(&server, "");
    assert!(run.code == 0 && run.stderr.contains("the server answers 500; trying again"), "{}", run.stderr);
    place.has_graph();
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn the_mirror_and_the_proxy_can_be_set_in_the_environment() {
    let place = Place::new();
    let server = Server::new(vec![whole(&place.bytes)]);
    let code = |command: &mut Command| command.output().unwrap().status.code();
    assert_eq!(code(place.command(&place.data_set()).env("NODEPROOF_MIRROR", server.url())), Some(0));
    place.has_graph();
    // A proxy that lets nobody through.
    let proxy = Server::new(vec![status("403 Forbidden")]);
    let line = format!("{} --mirror http://nowhere.invalid/data --out other --retries 0", place.data_set());
    let address = format!("http://{}", proxy.address);
    assert_eq!(code(place.command(&line).env("HTTP_PROXY", &address).env("HTTPS_PROXY", &address)), Some(2));
    assert!(proxy.requests()[0].contains("nowhere.invalid"), "{:?}", proxy.requests());
}

#[test]
fn bad_arguments_are_refused() {
    let place = Place::new();
    for (line, words) in [
        ("", "<NAME>"),
        ("cora", "one of cora_ml, citeseer, pubmed"),
        ("../cora=0000000000000000000000000000000000000000", "cannot name a file"),
        ("papers=12", "git hash-object"),
        ("cora_ml --mirror /srv/data", "URL of a folder"),
        ("cora_ml --timeout 0", "number of seconds"),
        ("cora_ml --retries often", "--retries"),
    ] {
        place.has_nothing(&place.run(line), &[words]);
    }
    // A file where the folder should be.
    let run = place.run(&format!("{} --out graph.npz --mirror http://127.0.0.1:1", place.data_set()));
    place.has_nothing(&run, &["cannot", "graph.npz"]);
}

#[test]
#[cfg(unix)]
fn an_interrupted_download_leaves_nothing() {
    let place = Place::new();
    let (sent, half_sent) = mpsc::channel();
    let server = Server::new(vec![stalled(&place.bytes, Some(sent))]);
    let arguments = ["data", "get", &place.data_set(), "--mirror", &server.url(), "--timeout", "120"];
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_nodeproof"))
        .args(arguments)
        .env("NODEPROOF_CACHE", place.fixture.path("cache"))
        .env("NO_PROXY", "*")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    half_sent.recv_timeout(Duration::from_secs(60)).unwrap();
    std::process::Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{stderr}");
    assert!(stderr.contains("interrupted; run the same command again"), "{stderr}");
    assert_eq!(files(&place.fixture.path("cache")), [""; 0]);
}

/// The authors' file by its name, where the folder `NODEPROOF_DATASETS` has it.
#[test]
fn cora_ml_is_known_by_its_checksum() {
    let place = Place::new();
    let folder = std::env::var_os("NODEPROOF_DATASETS").unwrap_or_default();
    let Ok(bytes) = fs::read(Path::new(&folder).join("cora_ml.npz")) else {
        println!("skipped: NODEPROOF_DATASETS names no folder with cora_ml.npz");
        return;
    };
    let server = Server::new(vec![whole(&bytes)]);
    let text = place.run(&format!("cora_ml --mirror {}", server.url())).succeeded().stdout;
    assert!(text.contains("cora_ml.npz --binarise\n"), "{text}");
    assert!(fs::read(place.fixture.path("cache/cora_ml.npz")).unwrap() == bytes);
}
