//! Files that an endpoint writes next to its samples: secrets for decryption, and its qlog.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use jostle_quic::QuicEndpoint;

use crate::HostError;

/// Output files, which are created when there is something to write.
pub(crate) struct OutputFiles {
    samples: PathBuf,
    log: Option<BufWriter<File>>,
    text: String,
}

impl OutputFiles {
    /// Sets the file of samples next to which the files are created.
    pub(crate) fn beside(samples: &Path) -> Self {
        Self { samples: samples.to_owned(), log: None, text: String::new() }
    }

    /// Writes the secrets and log records since the last call.
    pub(crate) fn take(&mut self, end: &mut QuicEndpoint) -> Result<(), HostError> {
        if let Some(secrets) = end.take_secrets() {
            let mut file = self.open("keys")?;
            file.write_all(secrets.as_bytes())
                .map_err(HostError::system("cannot write secrets"))?;
        }
        self.text.clear();
        end.take_log(&mut self.text);
        if self.text.is_empty() {
            return Ok(());
        }
        let mut log = match self.log.take() {
            Some(log) => log,
            None => BufWriter::new(self.open("sqlog")?),
        };
        log.write_all(self.text.as_bytes()).map_err(HostError::system("cannot write a log"))?;
        self.log = Some(log);
        Ok(())
    }

    /// Writes all buffered data.
    pub(crate) fn finish(mut self, end: &mut QuicEndpoint) -> Result<(), HostError> {
        self.take(end)?;
        self.log
            .map_or(Ok(()), |mut log| log.flush())
            .map_err(HostError::system("cannot write a log"))
    }

    fn open(&self, kind: &str) -> Result<File, HostError> {
        // `0.sender` becomes `0.sender.sqlog`.
        let mut name = self.samples.clone().into_os_string();
        name.push(".");
        name.push(kind);
        let mut options = File::options();
        options.create(true).append(true);
        options.open(name).map_err(HostError::system("cannot write what the end tells"))
    }
}
