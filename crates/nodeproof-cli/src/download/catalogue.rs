//! The standard data sets: what they are called, where they lie, and how they are recognised.

use std::fmt;
use std::str::FromStr;

use ureq::http::Uri;

use super::Checksum;

/// The data sets of the paper, as its authors published them in the repository danielzuegner/robust-gcn.
const STANDARD: [(&str, &str); 3] = [
    ("cora_ml", "0fb26926546a6b51cb784b44dc8f89b1a0b04891"),
    ("citeseer", "c15e551e8afc96ec2f856d0d0bdc68b95ee0c27d"),
    ("pubmed", "0735ab74ee845ee26da2db763294d42646058534"),
];
/// Longest name of a data set that can have been meant.
const LONGEST_NAME: usize = 100;

/// A graph that can be downloaded: one of the paper's by its `name`, or any other by `name=checksum`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataSet {
    pub(crate) name: String,
    pub(crate) checksum: Checksum,
}

impl DataSet {
    /// The name of its file.
    pub(crate) fn file(&self) -> String {
        format!("{}.npz", self.name)
    }
}

impl FromStr for DataSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let standard = |name| STANDARD.iter().find(|(standard, _)| *standard == name).map(|(_, checksum)| *checksum);
        let (name, checksum) = match text.split_once('=') {
            None => (text, standard(text).ok_or_else(|| unknown(text))?),
            Some((name, _)) if standard(name).is_some() => {
                return Err(format!("the checksum of {name} is known; give the name alone, or the file another name"));
            }
            Some((name, checksum)) => (name, checksum),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.chars().all(plain) {
            return Err(format!("`{name}` cannot name a file; give letters, digits, `_`, `-` and `.`, without .npz"));
        }
        Ok(Self { name: name.to_owned(), checksum: checksum.parse()? })
    }
}

fn unknown(text: &str) -> String {
    let names = STANDARD.map(|(name, _)| name).join(", ");
    format!("`{text}` is not a standard data set; give one of {names}, or NAME=CHECKSUM for another file of --mirror")
}

/// The URL under which files of data sets lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror(String);

impl Mirror {
    /// The folder of the authors' repository.
    pub(crate) const AUTHORS: &str = "https://raw.githubusercontent.com/danielzuegner/robust-gcn/master/data";

    /// Where the file of `data_set` lies.
    pub(crate) fn url(&self, data_set: &DataSet) -> String {
        format!("{}/{}", self.0, data_set.file())
    }
}

impl FromStr for Mirror {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |uri: &Uri| {
            let served = matches!(uri.scheme_str(), Some("http" | "https"));
            // Messages show URLs, and must not show passwords.
            let open = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
            served && open && uri.query().is_none()
        };
        match text.trim().parse::<Uri>() {
            Ok(uri) if fits(&uri) => Ok(Self(text.trim().trim_end_matches('/').to_owned())),
            _ => Err(format!("give the http(s) URL of a folder, without password or query, such as {}", Self::AUTHORS)),
        }
    }
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn standard_data_sets_go_by_their_names() {
        let authors: Mirror = Mirror::AUTHORS.parse().unwrap();
        for (name, checksum) in STANDARD {
            let data_set: DataSet = name.parse().unwrap();
            assert_eq!((data_set.name.as_str(), data_set.checksum.to_string().as_str()), (name, checksum));
            assert_eq!(authors.url(&data_set), format!("{}/{name}.npz", Mirror::AUTHORS));
        }
    }

    #[test]
    fn others_need_a_checksum() {
        let sum = Checksum::of(b"x");
        assert_eq!(
            format!("my-graph_2.0={sum}").parse(),
            Ok(DataSet { name: "my-graph_2.0".to_owned(), checksum: sum })
        );
        let problem = |text: &str| text.parse::<DataSet>().unwrap_err();
        assert!(problem("cora").contains("one of cora_ml, citeseer, pubmed, or NAME=CHECKSUM"));
        assert!(problem("cora=12").contains("40 digits"));
        assert!(problem(&format!("cora_ml={sum}")).contains("is known"));
        for name in ["", "..", ".hidden", "a/b", "..\\a", "a b", "é", &"a".repeat(101)] {
            assert!(problem(&format!("{name}={sum}")).contains("cannot name a file"), "{name}");
        }
    }

    #[test]
    fn mirrors_are_urls_of_folders() {
        let data_set: DataSet = "pubmed".parse().unwrap();
        for text in ["http://localhost:8000", "http://localhost:8000/", " http://localhost:8000// "] {
            assert_eq!(text.parse::<Mirror>().unwrap().url(&data_set), "http://localhost:8000/pubmed.npz");
        }
        for bad in ["", "/srv/data", "localhost:8000", "ftp://a/b", "file:///srv", "http://me:secret@a/", "http://a/?b"]
        {
            assert!(bad.parse::<Mirror>().unwrap_err().contains("URL of a folder"), "{bad}");
        }
    }
}
