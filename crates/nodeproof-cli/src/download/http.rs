//! One request over HTTP.

use std::io::{self, Read};
use std::time::Duration;

use ureq::{Agent, Error, Timeout};

use super::{Failure, MOST_BYTES};

const USER_AGENT: &str = concat!("nodeproof/", env!("CARGO_PKG_VERSION"));

/// Fetches files; follows redirects, and goes through the proxy that `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` names.
pub(crate) struct Client {
    agent: Agent,
    timeout: Duration,
}

impl Client {
    /// A client that gives up when it takes longer than `timeout` to connect, or when nothing comes for as long.
    pub(crate) fn new(timeout: Duration) -> Self {
        let agent = Agent::config_builder()
            .user_agent(USER_AGENT)
            .timeout_resolve(Some(timeout))
            .timeout_connect(Some(timeout))
            .timeout_per_read(Some(timeout))
            .timeout_per_write(Some(timeout))
            .build()
            .into();
        Self { agent, timeout }
    }

    /// Fetches what is at `url`; `observe` hears how many bytes have come, and of how many if that is known.
    ///
    /// # Errors
    /// If it cannot be had whole, or is larger than [`MOST_BYTES`].
    pub(crate) fn fetch(&self, url: &str, mut observe: impl FnMut(u64, Option<u64>)) -> Result<Vec<u8>, Failure> {
        let mut response = self.agent.get(url).call().map_err(|error| self.failure(error))?;
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
            observe(bytes.len() as u64, size);
        }
    }

    /// What `error` means, in words, and whether it may pass.
    fn failure(&self, error: Error) -> Failure {
        let seconds = self.timeout.as_secs_f64();
        match error {
            Error::StatusCode(code @ (408 | 429 | 500..)) => Failure::Passing(format!("the server answers {code}")),
            Error::StatusCode(code) => Failure::Lasting(format!("the server answers {code}, so --mirror may be wrong")),
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                Failure::Passing(format!("no connection within {seconds} s"))
            }
            Error::Timeout(_) => Failure::Passing(format!("nothing came for {seconds} s")),
            // Such as a certificate that nobody vouches for.
            Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => Failure::Lasting(error.to_string()),
            Error::Io(error) => Failure::Passing(error.to_string()),
            Error::HostNotFound | Error::ConnectionFailed | Error::ConnectProxyFailed(_) | Error::Protocol(_) => {
                Failure::Passing(error.to_string())
            }
            _ => Failure::Lasting(error.to_string()),
        }
    }
}

fn too_large() -> Failure {
    Failure::Lasting(format!("the file is larger than {} MB", MOST_BYTES / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        let client = Client::new(Duration::from_millis(500));
        for (error, words) in [
            (Error::StatusCode(503), "answers 503"),
            (Error::StatusCode(429), "answers 429"),
            (Error::Timeout(Timeout::Connect), "no connection within 0.5 s"),
            (Error::Timeout(Timeout::PerRead), "nothing came for 0.5 s"),
            (io::Error::from(io::ErrorKind::ConnectionReset).into(), "connection reset"),
            (Error::HostNotFound, "host not found"),
        ] {
            assert!(matches!(client.failure(error), Failure::Passing(text) if text.contains(words)), "{words}");
        }
        for (error, words) in [
            (Error::StatusCode(404), "answers 404"),
            (Error::StatusCode(403), "answers 403"),
            (Error::TooManyRedirects, "too many redirects"),
            (io::Error::new(io::ErrorKind::InvalidData, "bad certificate").into(), "bad certificate"),
        ] {
            assert!(matches!(client.failure(error), Failure::Lasting(text) if text.contains(words)), "{words}");
        }
    }
}
