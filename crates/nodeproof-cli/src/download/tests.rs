//! Downloads from a server that misbehaves.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;

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

/// Sends a little at a time, longer than the time that is waited for the next bytes.
fn slow(bytes: &[u8]) -> Answer {
    let (head, bytes) = (head("200 OK", &format!("Content-Length: {}\r\n", bytes.len())), bytes.to_owned());
    Box::new(move |stream| {
        for piece in [head.as_slice()].into_iter().chain(bytes.chunks(bytes.len().div_ceil(20))) {
            let _ = stream.write_all(piece);
            thread::sleep(WAIT / 10);
        }
    })
}

/// Sends half of the bytes and then nothing until the client has had enough.
fn stalled(bytes: &[u8]) -> Answer {
    let mut half = half(bytes);
    Box::new(move |stream| {
        half(stream);
        let _ = stream.read(&mut [0]);
    })
}

const BYTES: &[u8] =
    b"A data set, which is not really one, but the bytes of which have a checksum like those of any other.";
const WAIT: Duration = Duration::from_secs(1);

/// A folder, and a data set of which only the checksum is known.
struct Fixture {
    folder: TempDir,
    data_set: DataSet,
    notes: RefCell<Vec<String>>,
}

impl Fixture {
    fn new() -> Self {
        let data_set = DataSet { name: "papers", checksum: checksum(BYTES).leak() };
        Self { folder: tempfile::tempdir().unwrap(), data_set, notes: RefCell::default() }
    }

    fn get_into(&self, server: &Server, folder: &Path, is_cache: bool) -> Result<bool, String> {
        let mirror = format!("http://{}/data", server.address);
        let mut getter = Getter::new(&mirror, folder, is_cache);
        (getter.timeout, getter.pauses) = (WAIT, [Duration::from_millis(10); 2]);
        let observe = |event: Event| {
            if let Event::Note(note) = event {
                self.notes.borrow_mut().push(note);
            }
        };
        getter.get(self.data_set, &observe).map_err(|error| error.to_string())
    }

    /// Gets the data set into a cache that does not exist at first.
    fn get(&self, server: &Server) -> Result<bool, String> {
        self.get_into(server, &self.cache(), true)
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Asserts that the data set is in the cache, and nothing else.
    #[track_caller]
    fn has_data_set(&self) {
        assert_eq!(fs::read_dir(self.cache()).unwrap().count(), 1);
        assert_eq!(fs::read(self.cache().join("papers.npz")).unwrap(), BYTES);
    }

    /// Asserts that it failed, saying all these words, and that nothing is in the cache.
    #[track_caller]
    fn has_nothing(&self, got: Result<bool, String>, words: &[&str]) {
        let problem = got.unwrap_err();
        words.iter().for_each(|words| assert!(problem.contains(words), "{words}\n{problem}"));
        assert_eq!(fs::read_dir(self.cache()).unwrap().count(), 0);
    }
}

#[test]
fn a_download_is_put_into_the_cache_and_not_repeated() {
    let fixture = Fixture::new();
    let server = Server::new(vec![whole(BYTES)]);
    assert_eq!(fixture.get(&server), Ok(true));
    fixture.has_data_set();
    assert_eq!(fixture.get(&server), Ok(false));
    assert_eq!(server.requests(), ["/data/papers.npz"]);
}

#[test]
fn a_damaged_file_is_replaced_in_the_cache_only() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.cache()).unwrap();
    let (server, path) = (Server::new(vec![whole(BYTES)]), fixture.cache().join("papers.npz"));
    for damaged in [&BYTES[1..], b""] {
        fs::write(&path, damaged).unwrap();
        let problem = fixture.get_into(&server, &fixture.cache(), false).unwrap_err();
        assert!(problem.contains("move it away"), "{problem}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
        assert_eq!(fixture.get(&server), Ok(true));
        fixture.has_data_set();
        assert!(fixture.notes.take()[0].contains("will be replaced"));
    }
    assert_eq!(server.requests().len(), 2);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(fixture.get(&server).unwrap_err().contains("it is not a file"));
}

#[test]
fn a_file_that_ends_early_is_asked_for_again() {
    let fixture = Fixture::new();
    let server = Server::new(vec![half(BYTES), chunked(BYTES, ""), chunked(BYTES, "0\r\n\r\n")]);
    assert_eq!(fixture.get(&server), Ok(true));
    fixture.has_data_set();
    let notes = fixture.notes.take();
    assert!(notes.len() == 2 && notes[0].contains("trying again in 0.01 s"), "{notes:?}");
}

#[test]
fn a_file_that_always_ends_early_is_given_up() {
    let fixture = Fixture::new();
    let server = Server::new(vec![half(BYTES)]);
    let words = ["cannot download papers", "attempt 3 of 3", "by other means", "git hash-object"];
    fixture.has_nothing(fixture.get(&server), &words);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_tampered_file_is_refused() {
    let fixture = Fixture::new();
    let mut tampered = BYTES.to_owned();
    tampered[40] ^= 1;
    let server = Server::new(vec![whole(&tampered)]);
    let sums = [fixture.data_set.checksum, &checksum(&tampered)];
    fixture.has_nothing(fixture.get(&server), &[sums[0], sums[1], "nothing of it was kept", "another --mirror"]);
    assert_eq!(server.requests().len(), 1, "a lie is not asked for twice");
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let fixture = Fixture::new();
    let endless: Answer = Box::new(|stream| {
        let _ = stream.write_all(&head("200 OK", ""));
        while stream.write_all(&[0; 1 << 16]).is_ok() {}
    });
    let server = Server::new(vec![sized(64_000_001, b""), endless]);
    for requests in [1, 2] {
        fixture.has_nothing(fixture.get(&server), &["larger than 64 MB"]);
        assert_eq!(server.requests().len(), requests);
    }
}

#[test]
fn a_slow_server_is_waited_for_and_a_stalled_one_is_not() {
    let fixture = Fixture::new();
    assert_eq!(fixture.get(&Server::new(vec![slow(BYTES)])), Ok(true));
    fixture.has_data_set();
    fs::remove_file(fixture.cache().join("papers.npz")).unwrap();
    fixture.has_nothing(fixture.get(&Server::new(vec![stalled(BYTES)])), &["nothing came for 1 s"]);
    // Not even an answer.
    let silent: Answer = Box::new(|stream| drop(stream.read(&mut [0])));
    fixture.has_nothing(fixture.get(&Server::new(vec![silent])), &["nothing came for 1 s"]);
}

#[test]
fn redirects_are_followed_but_not_in_circles() {
    let fixture = Fixture::new();
    let circle = Server::new(vec![redirect("/data/papers.npz")]);
    fixture.has_nothing(fixture.get(&circle), &["too many redirects"]);
    let server = Server::new(vec![redirect("/elsewhere/p.npz"), whole(BYTES)]);
    assert_eq!(fixture.get(&server), Ok(true));
    fixture.has_data_set();
    assert_eq!(server.requests(), ["/data/papers.npz", "/elsewhere/p.npz"]);
}

#[test]
fn a_server_in_trouble_is_asked_again_and_one_without_the_file_is_not() {
    let fixture = Fixture::new();
    let server = Server::new(vec![status("404 Not Found")]);
    fixture.has_nothing(fixture.get(&server), &["the server answers 404", "--mirror"]);
    assert_eq!(server.requests().len(), 1);
    let answers = vec![status("500 Internal Server Error"), status("429 Too Many Requests"), whole(BYTES)];
    assert_eq!(fixture.get(&Server::new(answers)), Ok(true));
    fixture.has_data_set();
    assert!(fixture.notes.take()[0].contains("the server answers 500; trying again"));
}

#[test]
fn checksums_are_those_of_git() {
    // `git hash-object` of an empty file, and of `printf 'what is up, doc?'` (Pro Git, chapter 10.2).
    assert_eq!(checksum(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_eq!(checksum(b"what is up, doc?"), "bd9dbf5aae1a3862dd1526723246b20206e5fc37");
}

#[test]
fn the_data_sets_are_those_of_the_paper() {
    let names = nodeproof_lab::reproduce::paper::DATA_SETS.map(|data| data.stem);
    assert_eq!(DATA_SETS.map(|data_set| data_set.name), names);
}

#[test]
fn mirrors_are_urls_of_folders() {
    for text in ["http://localhost:8000", "http://localhost:8000/", " http://localhost:8000// "] {
        assert_eq!(mirror(text).unwrap(), "http://localhost:8000");
    }
    for bad in ["", "/srv/data", "localhost:8000", "ftp://a/b", "file:///srv", "http://me:secret@a/", "http://a/?b"] {
        assert!(mirror(bad).unwrap_err().contains("URL of a folder"), "{bad}");
    }
    assert_eq!(mirror(AUTHORS).unwrap(), AUTHORS);
}

/// The folder with these variables, in the home `/me`.
fn folder(variables: &[(&str, &str)]) -> Option<PathBuf> {
    let value = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
    folder_among(value, Some("/me".into()))
}

#[test]
fn the_cache_is_where_the_user_says() {
    assert_eq!(folder(&[("NODEPROOF_CACHE", "here"), ("XDG_CACHE_HOME", "/cache")]), Some("here".into()));
    assert_eq!(folder_among(|_| None, None), None);
}

#[test]
#[cfg(all(unix, not(target_os = "macos")))]
fn else_it_is_where_the_system_says() {
    let empty = ("NODEPROOF_CACHE", "");
    assert_eq!(folder(&[empty, ("XDG_CACHE_HOME", "/cache")]), Some("/cache/nodeproof".into()));
    assert_eq!(folder(&[("XDG_CACHE_HOME", "relative")]), Some("/me/.cache/nodeproof".into()));
    assert_eq!(folder(&[]), Some("/me/.cache/nodeproof".into()));
}
