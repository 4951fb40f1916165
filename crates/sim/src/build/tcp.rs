//! Shared settings of all TCP connections of a flow, computed once.

use std::sync::Arc;

use jostle_congestion::transport::RecoverFlightSize;
use jostle_congestion::{CongestionController, EcnFeedback};
use jostle_run_spec::{
    FlowRandomStreams, FlowSpec, LinuxRelease, Prr, ReaderSpec, ReceiverSpec, RunSpec, SourceSpec,
};
use jostle_tcp::{Receiver, Sender, SenderConfig};
use jostle_units::{RandomStream, Span, mss_of};

use super::controller_factory::ControllerFactory;
use super::host_timers::host_timers;
use super::receivers::receiver_behaviour;
use crate::Error;
use crate::slow_reader::SlowReader;
use crate::tcp_connection::TcpConnection;
use jostle_traffic::ApplicationModel;

/// Unsent data of an application that writes as long as it can; both as in `guest/tcp_flow.py`.
const UNSENT_BYTES: u32 = 2 << 20;
/// Unsent data of an application that stops writing: what it leaves in its send buffer.
const UNSENT_BYTES_AT_STOP: u32 = 128 << 10;

/// Recipe for the TCP connections of a flow.
pub(crate) struct TcpPlan {
    flow: String,
    streams: FlowRandomStreams,
    recipe: Arc<ControllerFactory>,
    /// Sender settings. Each connection draws its own timestamp offset.
    options: SenderConfig,
    /// Propagation delay from the receiver to the sender, by which requests are delayed.
    reverse_delay: Span,
    /// Base RTT of the path.
    rtt: Span,
    receive_window_bytes: u64,
    initial_receive_window_bytes: u64,
    autotuned: bool,
    /// Behaviour of the receiver. `None` for Linux's receiver.
    receiver: Option<ReceiverSpec>,
    /// Slow application at the receiver. `None` for an application that reads at once.
    reader: Option<ReaderSpec>,
    linux: LinuxRelease,
    /// Whether ACKs with AccECN feedback carry its option.
    accecn_option: bool,
}

impl TcpPlan {
    pub(super) fn of(
        spec: &FlowSpec,
        recipe: Arc<ControllerFactory>,
        run: &RunSpec,
    ) -> Result<Self, Error> {
        let mss_bytes =
            u16::try_from(mss_of(spec.mtu_bytes)).map_err(|e| Error::unbuildable(&spec.name, e))?;
        let reverse_delay = run.reverse_propagation(spec);
        let stops = spec.stop_ns.is_some() || matches!(spec.source, SourceSpec::OnOff { .. });
        Ok(Self {
            flow: spec.name.clone(),
            streams: FlowRandomStreams::of(run.seed, &spec.name),
            recipe,
            options: SenderConfig {
                pacing: spec.pacing,
                ecn: spec.ecn,
                initial_window: spec.initial_window_packets,
                timestamp_offset: 0,
                initial_pacing: spec.initial_pacing,
                short_path_bursts: spec.linux == LinuxRelease::V6_1,
                recover_flight_size: match spec.tcp.map(|tcp| tcp.prr) {
                    Some(Prr::Rfc9937) => RecoverFlightSize::Outstanding,
                    Some(Prr::Linux) | None => RecoverFlightSize::PriorCwnd,
                },
                timers: host_timers(spec),
                peer: spec.peer,
                mss_bytes,
                unsent_bytes: if stops { UNSENT_BYTES_AT_STOP } else { UNSENT_BYTES },
                is_server: matches!(spec.source, SourceSpec::Web(_)),
            },
            reverse_delay,
            rtt: run.propagation(&spec.path) + reverse_delay,
            receive_window_bytes: spec.receive_window_bytes,
            initial_receive_window_bytes: spec.initial_receive_window_bytes,
            autotuned: spec.receive_window_autotuning,
            receiver: spec.receiver.clone(),
            reader: spec.reader.clone(),
            linux: spec.linux,
            accecn_option: spec.tcp.is_none_or(|tcp| tcp.accecn_option),
        })
    }

    /// Builds the only connection of a single-connection flow.
    pub(super) fn only(
        &self,
        application: ApplicationModel,
        own: impl FnOnce(RandomStream) -> Result<Box<dyn CongestionController>, Error>,
    ) -> Result<TcpConnection, Error> {
        self.connection(self.streams, application, own)
    }

    /// Builds the `number`-th connection of a multi-connection flow, with a controller of the
    /// registry.
    pub(super) fn nth(
        &self,
        number: u32,
        application: ApplicationModel,
    ) -> Result<TcpConnection, Error> {
        let none = |_| Err(Error::unbuildable(&self.flow, "it has no controller"));
        self.connection(self.streams.of_connection(number), application, none)
    }

    fn connection(
        &self,
        streams: FlowRandomStreams,
        application: ApplicationModel,
        own: impl FnOnce(RandomStream) -> Result<Box<dyn CongestionController>, Error>,
    ) -> Result<TcpConnection, Error> {
        let timestamp_offset = streams.stream("timestamps").bits() as u32;
        let options = SenderConfig { timestamp_offset, ..self.options };
        let controller = self.recipe.make(streams, own)?;
        // In Linux, the receiver's controller determines the ECN feedback. Both ends use the same
        // controller.
        let feedback = match (options.ecn, controller.required_ecn_feedback()) {
            (false, _) => EcnFeedback::None,
            (true, EcnFeedback::None) => EcnFeedback::Classic,
            (true, needed) => needed,
        };
        let receiver =
            Receiver::new(options.mss_bytes, self.receive_window_bytes, self.rtt, feedback)
                .offering(self.initial_receive_window_bytes);
        let receiver = receiver.on_host(options.timers);
        let receiver = if self.autotuned { receiver.autotuned() } else { receiver };
        let receiver = if self.accecn_option { receiver } else { receiver.without_accecn_option() };
        let receiver = match self.linux {
            LinuxRelease::V4_15 => receiver.uncompressed(),
            LinuxRelease::V6_1 => receiver,
        };
        let source = application.source(streams).with_request_delay(self.reverse_delay);
        let limits = (self.receive_window_bytes, options.mss_bytes);
        let behaviour_of =
            |it: &ReceiverSpec| receiver_behaviour(it, (&self.flow, streams), self.rtt, limits);
        let behaviour = self.receiver.as_ref().map(behaviour_of).transpose()?;
        let sender = Sender::new(options, controller);
        let reader = self.reader.as_ref().map(SlowReader::new);
        Ok(TcpConnection::new(sender, receiver, source)
            .with_behaviour(behaviour)
            .with_reader(reader))
    }
}
