//! The data sets of the paper: downloaded, checked, and put in place whole or not at all.
//!
//! A file is in memory until its checksum is known to be right, so nothing unchecked is ever on the disk.

#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use nodeproof::files::{Destination, replace};
use sha1::{Digest, Sha1};
use ureq::http::Uri;
use ureq::{Agent, Error, Timeout};

/// The folder of the authors' repository.
pub(crate) const AUTHORS: &str = "https://raw.githubusercontent.com/danielzuegner/robust-gcn/master/data";
/// Most bytes of a file that are downloaded; the data sets have a few million.
const MOST_BYTES: u64 = 64_000_000;
/// Longest time to wait for a connection, and for the next bytes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pauses between attempts, where the next one may succeed.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// A data set of the paper, as its authors published it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataSet {
    pub(crate) name: &'static str,
    /// What `git hash-object` prints: the SHA-1 of `blob`, the file's size and the file. Another file that has it too would
    /// be a second preimage, which nobody can make.
    pub(crate) checksum: &'static str,
}

const DATA_SETS: [DataSet; 3] = [
    DataSet { name: "cora_ml", checksum: "0fb26926546a6b51cb784b44dc8f89b1a0b04891" },
    DataSet { name: "citeseer", checksum: "c15e551e8afc96ec2f856d0d0bdc68b95ee0c27d" },
    DataSet { name: "pubmed", checksum: "0735ab74ee845ee26da2db763294d42646058534" },
];

impl ValueEnum for DataSet {
    fn value_variants<'a>() -> &'a [Self] {
        &DATA_SETS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name))
    }
}

fn checksum(bytes: &[u8]) -> String {
    let sum = Sha1::new().chain_update(format!("blob {}\0", bytes.len())).chain_update(bytes).finalize();
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses the URL of a folder.
pub(crate) fn mirror(text: &str) -> Result<String, String> {
    let fits = |uri: &Uri| {
        let served = matches!(uri.scheme_str(), Some("http" | "https"));
        // Messages show URLs, and must not show passwords.
        let open = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        served && open && uri.query().is_none()
    };
    match text.trim().parse::<Uri>() {
        Ok(uri) if fits(&uri) => Ok(text.trim().trim_end_matches('/').to_owned()),
        _ => Err(format!("give the http(s) URL of a folder, without password or query, such as {AUTHORS}")),
    }
}

/// The folder for downloads: `NODEPROOF_CACHE`, or `nodeproof` in the folder that the system has for such files.
///
/// # Errors
/// If the system has none.
pub(crate) fn cache_folder() -> anyhow::Result<PathBuf> {
    folder_among(|name| env::var_os(name), env::home_dir()).ok_or_else(|| {
        anyhow!("there is no home directory to keep downloads in; give a folder with --out, or as NODEPROOF_CACHE")
    })
}

fn folder_among(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = home.filter(|home| !home.as_os_str().is_empty());
    let system = || {
        if cfg!(windows) {
            path("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            Some(home?.join("Library/Caches"))
        } else {
            // The specification wants relative paths ignored.
            path("XDG_CACHE_HOME").filter(|cache| cache.is_absolute()).or_else(|| Some(home?.join(".cache")))
        }
    };
    path("NODEPROOF_CACHE").or_else(|| Some(system()?.join("nodeproof")))
}

/// Progress while a data set is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event<'e> {
    /// The file is asked for.
    Asking(&'e str),
    /// So many bytes have come, of so many if that is known.
    Received(u64, Option<u64>),
    /// Something that the user should know.
    Note(String),
}

/// Why an attempt failed, and whether the next one may succeed.
struct Failure {
    why: String,
    may_pass: bool,
}

/// Gets data sets; follows redirects, and goes through the proxy that `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` names.
pub(crate) struct Getter<'a> {
    mirror: &'a str,
    folder: &'a Path,
    /// Whether the folder is the cache, in which a file that is not the right one is replaced.
    is_cache: bool,
    timeout: Duration,
    pauses: [Duration; 2],
}

impl<'a> Getter<'a> {
    /// Gets data sets from `mirror` into `folder`.
    pub(crate) fn new(mirror: &'a str, folder: &'a Path, is_cache: bool) -> Self {
        Self { mirror, folder, is_cache, timeout: TIMEOUT, pauses: PAUSES }
    }

    /// Where the data set is downloaded from.
    pub(crate) fn url(&self, data_set: DataSet) -> String {
        format!("{}/{}.npz", self.mirror, data_set.name)
    }

    /// Where it is put.
    pub(crate) fn path(&self, data_set: DataSet) -> PathBuf {
        self.folder.join(format!("{}.npz", data_set.name))
    }

    /// Downloads `data_set` unless it is there; says whether it was downloaded.
    ///
    /// # Errors
    /// If it is not there and cannot be downloaded, or not be written.
    pub(crate) fn get(&self, data_set: DataSet, observe: &dyn Fn(Event)) -> anyhow::Result<bool> {
        let DataSet { name, checksum: expected } = data_set;
        let (url, path) = (self.url(data_set), self.path(data_set));
        if self.is_there(data_set, &path, observe)? {
            return Ok(false);
        }
        fs::create_dir_all(self.folder).map_err(|error| {
            anyhow!("cannot make {}: {error}; give a folder where you may write with --out", self.folder.display())
        })?;
        let destination = Destination::File(path);
        destination.check_writable()?;
        let bytes = self.fetch_patiently(name, &url, observe).map_err(|why| {
            anyhow!(
                "cannot download {name}: {why}; you can get {url} by other means and put it into {}: nodeproof takes it if \
                 `git hash-object` of it is {expected}",
                self.folder.display()
            )
        })?;
        let found = checksum(&bytes);
        if found != expected {
            bail!(
                "{url} is not the data set {name}: the checksum of its {} bytes is {found}, not {expected}; nothing of it \
                 was kept. A proxy or mirror may have sent something else: try again, or another --mirror",
                bytes.len()
            );
        }
        replace(&self.path(data_set), |file| file.write_all(&bytes)).map_err(|error| destination.failure(error))?;
        Ok(true)
    }

    /// Whether the file at `path` is the right one.
    fn is_there(&self, data_set: DataSet, path: &Path, observe: &dyn Fn(Event)) -> anyhow::Result<bool> {
        let DataSet { name, checksum } = data_set;
        let found = checksum_at(path);
        let found =
            found.map_err(|error| anyhow!("cannot read {}: {error}; move it out of the way", path.display()))?;
        match found {
            Some(found) if found == checksum => Ok(true),
            Some(_) if !self.is_cache => bail!(
                "{} is there, but is not the data set {name} (its checksum is not {checksum}); move it away, or choose \
                 another folder with --out",
                path.display()
            ),
            Some(_) => {
                observe(Event::Note(format!("{} is damaged or another file, and will be replaced", path.display())));
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// Fetches what is at `url`, and tries again where that may help.
    fn fetch_patiently(&self, name: &str, url: &str, observe: &dyn Fn(Event)) -> Result<Vec<u8>, String> {
        for pause in self.pauses {
            match self.fetch(name, url, observe) {
                Err(Failure { why, may_pass: true }) => {
                    observe(Event::Note(format!("{name}: {why}; trying again in {} s", pause.as_secs_f64())));
                    thread::sleep(pause);
                }
                fetched => return fetched.map_err(|failure| failure.why),
            }
        }
        let last = self.fetch(name, url, observe);
        last.map_err(|failure| format!("{} (attempt {1} of {1})", failure.why, self.pauses.len() + 1))
    }

    /// Fetches what is at `url`.
    fn fetch(&self, name: &str, url: &str, observe: &dyn Fn(Event)) -> Result<Vec<u8>, Failure> {
        observe(Event::Asking(name));
        let mut response = self.agent().get(url).call().map_err(|error| self.failure(error))?;
        let size = response.body().content_length();
        if size.is_some_and(|size| size > MOST_BYTES) {
            return Err(too_large());
        }
        let mut body = response.body_mut().as_reader();
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let count = body.read(&mut buffer).map_err(|error| self.failure(error.into()))?;
            if count == 0 {
                return Ok(bytes);
            }
            bytes.extend(&buffer[..count]);
            if bytes.len() as u64 > MOST_BYTES {
                return Err(too_large());
            }
            observe(Event::Received(bytes.len() as u64, size));
        }
    }

    fn agent(&self) -> Agent {
        let config = Agent::config_builder()
            .user_agent(concat!("nodeproof/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(self.timeout))
            .timeout_connect(Some(self.timeout))
            .timeout_per_read(Some(self.timeout))
            .timeout_per_write(Some(self.timeout));
        // The servers of the tests are on this machine, which no proxy leads to.
        let config = if cfg!(test) { config.proxy(None) } else { config };
        config.build().into()
    }

    /// What `error` means, in words.
    fn failure(&self, error: Error) -> Failure {
        let seconds = self.timeout.as_secs_f64();
        let (why, may_pass) = match error {
            Error::StatusCode(code @ (408 | 429 | 500..)) => (format!("the server answers {code}"), true),
            Error::StatusCode(code) => (format!("the server answers {code}, so --mirror may be wrong"), false),
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => (format!("no connection within {seconds} s"), true),
            Error::Timeout(_) => (format!("nothing came for {seconds} s"), true),
            // Such as a certificate that nobody vouches for.
            Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => (error.to_string(), false),
            Error::Io(_) | Error::HostNotFound | Error::ConnectionFailed | Error::Protocol(_) => {
                (error.to_string(), true)
            }
            _ => (error.to_string(), false),
        };
        Failure { why, may_pass }
    }
}

fn too_large() -> Failure {
    Failure { why: format!("the file is larger than {} MB", MOST_BYTES / 1_000_000), may_pass: false }
}

/// The checksum of the file at `path`, if there is one. Of a file that is too large to be a download, it is that of its first
/// bytes.
fn checksum_at(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(there) if !there.is_file() => return Err(io::Error::other("it is not a file")),
        _ => {}
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(checksum(&bytes)))
}
