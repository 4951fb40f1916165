//! A qlog (JSON text sequence, draft-ietf-quic-qlog-main-schema) of what s2n-quic tells of each
//! connection: it writes none itself.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use s2n_quic::provider::event::events::{
    BbrState, BbrStateChanged, PacingRateUpdated, PacketLost, RecoveryMetrics, SlowStartExited,
};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, Timestamp};

const HEADER: &str = concat!(
    "\x1e{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",",
    "\"serialization_format\":\"application/qlog+json-seq\",\"title\":\"s2n-quic\",",
    "\"trace\":{\"vantage_point\":{\"type\":\"server\"},\"common_fields\":",
    "{\"time_format\":\"relative_to_epoch\"}}}\n",
);

pub struct Logs {
    folder: PathBuf,
}

impl Logs {
    pub fn new(folder: &str) -> Self {
        Self { folder: folder.into() }
    }
}

/// Log of a connection; none if it cannot be written.
pub struct Log {
    file: Option<File>,
    begin: Timestamp,
}

impl Log {
    /// Whole lines are written at once: the server is ended when the run is over.
    fn write(&mut self, meta: &ConnectionMeta, name: &str, data: &str) {
        let time_ms = milliseconds(meta.timestamp.saturating_duration_since(self.begin));
        let line = format!(
            "\x1e{{\"time\":{time_ms},\"name\":\"recovery:{name}\",\"data\":{{{data}}}}}\n"
        );
        let written = self.file.as_mut().map(|file| file.write_all(line.as_bytes()));
        if let Some(Err(error)) = written {
            eprintln!("error: qlog: {error}");
            self.file = None;
        }
    }
}

impl Subscriber for Logs {
    type ConnectionContext = Log;

    fn create_connection_context(&mut self, meta: &ConnectionMeta, _: &ConnectionInfo) -> Log {
        let path = self.folder.join(format!("{}.sqlog", meta.id));
        let created = File::create(path).and_then(|mut file| {
            file.write_all(HEADER.as_bytes())?;
            Ok(file)
        });
        if let Err(error) = &created {
            eprintln!("error: qlog: {error}");
        }
        Log { file: created.ok(), begin: meta.timestamp }
    }

    fn on_recovery_metrics(
        &mut self,
        log: &mut Log,
        meta: &ConnectionMeta,
        event: &RecoveryMetrics,
    ) {
        let data = format!(
            "\"min_rtt\":{},\"smoothed_rtt\":{},\"latest_rtt\":{},\"rtt_variance\":{},\
             \"congestion_window\":{},\"bytes_in_flight\":{}",
            milliseconds(event.min_rtt),
            milliseconds(event.smoothed_rtt),
            milliseconds(event.latest_rtt),
            milliseconds(event.rtt_variance),
            event.congestion_window,
            event.bytes_in_flight,
        );
        log.write(meta, "metrics_updated", &data);
    }

    fn on_pacing_rate_updated(
        &mut self,
        log: &mut Log,
        meta: &ConnectionMeta,
        event: &PacingRateUpdated,
    ) {
        let data = format!("\"pacing_rate\":{}", event.bytes_per_second * 8);
        log.write(meta, "metrics_updated", &data);
    }

    fn on_packet_lost(&mut self, log: &mut Log, meta: &ConnectionMeta, event: &PacketLost) {
        // A probe for the path's MTU carries nothing, and says nothing of congestion.
        if !event.is_mtu_probe {
            log.write(meta, "packet_lost", "\"header\":{\"packet_type\":\"1RTT\"}");
        }
    }

    fn on_slow_start_exited(&mut self, log: &mut Log, meta: &ConnectionMeta, _: &SlowStartExited) {
        log.write(meta, "congestion_state_updated", "\"new\":\"congestion_avoidance\"");
    }

    fn on_bbr_state_changed(
        &mut self,
        log: &mut Log,
        meta: &ConnectionMeta,
        event: &BbrStateChanged,
    ) {
        let state = match event.state {
            BbrState::Startup { .. } => "slow_start",
            BbrState::Drain { .. } => "drain",
            BbrState::ProbeRtt { .. } => "probe_rtt",
            _ => "probe_bw",
        };
        log.write(meta, "congestion_state_updated", &format!("\"new\":\"{state}\""));
    }
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
