//! `nodeproof data get`, end to end. What servers can do wrong is tested beside the code.

#![cfg(feature = "download")]
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use assert_cmd::Command;

use crate::common::{Fixture, Run, json};

/// A server on this machine that does the same with every connection, whose request it has read.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(mut answer: impl FnMut(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = Arc::clone(&server.requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                requests.lock().unwrap().push(request(&stream));
                answer(&mut stream);
            }
        });
        server
    }

    /// One that sends these bytes for every file.
    fn of(bytes: Vec<u8>) -> Self {
        Self::new(move |stream| send(stream, bytes.len(), &bytes))
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

/// Promises `length` bytes and sends these.
fn send(stream: &mut TcpStream, length: usize, bytes: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.write_all(&[head.as_bytes(), bytes].concat());
}

fn command(fixture: &Fixture, line: &str) -> Command {
    let mut command = fixture.command();
    command.args(["data", "get"]).args(line.split_whitespace()).env("NODEPROOF_CACHE", fixture.path("cache"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "nodeproof_mirror"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
}

fn run(mut command: Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Asserts that the run failed, saying all these words, and that nothing is in the cache.
#[track_caller]
fn has_nothing(fixture: &Fixture, run: &Run, words: &[&str]) {
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    words.iter().for_each(|words| assert!(run.stderr.contains(words), "{words}\n{}", run.stderr));
    assert_eq!(files(&fixture.path("cache")), [""; 0]);
}

#[test]
fn what_is_not_the_data_set_is_refused() {
    let fixture = Fixture::new();
    let server = Server::of(fs::read(fixture.path("graph.npz")).unwrap());
    let refused = run(command(&fixture, &format!("cora_ml --mirror {}", server.url())));
    has_nothing(&fixture, &refused, &["is not the data set cora_ml", "0fb26926546a", "nothing of it was kept"]);
    assert_eq!(server.requests(), ["/data/cora_ml.npz"]);
    // The folder is the user's, and so is what is in it.
    fixture.write("cora_ml.npz", "my own");
    let refused = run(command(&fixture, &format!("cora_ml --out . --mirror {}", server.url())));
    has_nothing(&fixture, &refused, &["move it away"]);
    assert_eq!((fixture.read("cora_ml.npz").as_str(), server.requests().len()), ("my own", 1));
}

#[test]
fn without_a_server_the_way_by_hand_is_shown() {
    let fixture = Fixture::new();
    // Nothing listens on the first port.
    let failed = run(command(&fixture, "pubmed --mirror http://127.0.0.1:1"));
    let cache = fixture.path("cache").display().to_string();
    let words =
        ["trying again in 1 s", "cannot download pubmed", "http://127.0.0.1:1/pubmed.npz", &cache, "git hash-object"];
    has_nothing(&fixture, &failed, &words);
}

#[test]
fn the_mirror_and_the_proxy_can_be_set_in_the_environment() {
    let fixture = Fixture::new();
    let server = Server::of(Vec::new());
    let mut asked = command(&fixture, "citeseer");
    asked.env("NODEPROOF_MIRROR", server.url());
    assert_eq!((run(asked).code, server.requests()), (2, vec!["/data/citeseer.npz".to_owned()]));
    // A proxy that lets nobody through.
    let proxy = Server::new(|stream| drop(stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")));
    let mut asked = command(&fixture, "citeseer --mirror http://nowhere.invalid/data");
    let address = format!("http://{}", proxy.address);
    asked.env("HTTP_PROXY", &address).env("HTTPS_PROXY", &address);
    assert_eq!(run(asked).code, 2);
    assert!(proxy.requests()[0].contains("nowhere.invalid"), "{:?}", proxy.requests());
}

#[test]
fn bad_arguments_are_refused() {
    let fixture = Fixture::new();
    for (line, words) in [
        ("", "<NAME>"),
        ("cora", "possible values: cora_ml, citeseer, pubmed"),
        ("cora_ml --mirror /srv/data", "URL of a folder"),
    ] {
        has_nothing(&fixture, &run(command(&fixture, line)), &[words]);
    }
    // A file where the folder should be.
    let refused = run(command(&fixture, "cora_ml --out graph.npz --mirror http://127.0.0.1:1"));
    has_nothing(&fixture, &refused, &["cannot", "graph.npz"]);
}

#[test]
#[cfg(unix)]
fn an_interrupted_download_leaves_nothing() {
    let fixture = Fixture::new();
    let (sent, half_sent) = mpsc::channel();
    let server = Server::new(move |stream| {
        send(stream, 1000, &[0; 500]);
        sent.send(()).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_nodeproof"))
        .args(["data", "get", "cora_ml", "--mirror", &server.url()])
        .env("NODEPROOF_CACHE", fixture.path("cache"))
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
    assert_eq!(files(&fixture.path("cache")), [""; 0]);
}

/// The authors' file, where the folder `NODEPROOF_DATASETS` has it.
#[test]
fn cora_ml_is_known_by_its_checksum() {
    let fixture = Fixture::new();
    let folder = std::env::var_os("NODEPROOF_DATASETS").unwrap_or_default();
    let Ok(bytes) = fs::read(Path::new(&folder).join("cora_ml.npz")) else {
        println!("skipped: NODEPROOF_DATASETS names no folder with cora_ml.npz");
        return;
    };
    let server = Server::of(bytes.clone());
    let line = format!("cora_ml --mirror {}", server.url());
    let text = run(command(&fixture, &line)).succeeded().stdout;
    let path = fixture.path("cache/cora_ml.npz").display().to_string();
    for words in ["downloaded", &path, &format!("nodeproof data info {path} --binarise\n")] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(fs::read(&path).unwrap() == bytes);
    // What is there is not asked for again.
    assert!(run(command(&fixture, &line)).succeeded().stdout.contains("there already"));
    assert_eq!(run(command(&fixture, &format!("{line} --quiet"))).succeeded().stdout, "");
    let got = json(&run(command(&fixture, &format!("{line} --json"))).succeeded().stdout)[0].clone();
    assert_eq!((&got["name"], &got["file"], &got["downloaded"]), (&"cora_ml".into(), &path.into(), &false.into()));
    assert_eq!(got["flags"], json(r#"["--binarise"]"#));
    assert_eq!(server.requests().len(), 1);
}
