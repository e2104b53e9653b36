//! Where downloads are kept.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::anyhow;

/// The folder for downloads: `NODEPROOF_CACHE`, or `nodeproof` in the folder that the system has for such files.
///
/// # Errors
/// If the system has none.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder with these variables, in the home `/me`.
    fn folder(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let value = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        folder_among(value, Some("/me".into()))
    }

    #[test]
    fn what_the_user_says_comes_first() {
        assert_eq!(folder(&[("NODEPROOF_CACHE", "here"), ("XDG_CACHE_HOME", "/cache")]), Some("here".into()));
        assert_eq!(folder_among(|_| None, None), None);
    }

    #[test]
    #[cfg(all(unix, not(target_os = "macos")))]
    fn then_what_the_system_says() {
        let empty = ("NODEPROOF_CACHE", "");
        assert_eq!(folder(&[empty, ("XDG_CACHE_HOME", "/cache")]), Some("/cache/nodeproof".into()));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "relative")]), Some("/me/.cache/nodeproof".into()));
        assert_eq!(folder(&[]), Some("/me/.cache/nodeproof".into()));
    }
}
