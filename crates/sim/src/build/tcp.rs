//! What all TCP connections of a flow have in common, worked out once.

use std::sync::Arc;

use jostle_control::{Controller, EcnFeedback};
use jostle_record::{FlowSpec, FlowStreams, Linux, ReceiverSpec, RunSpec};
use jostle_tcp::{Options, Receiver, Sender};
use jostle_units::{Span, Stream, mss_of};

use super::receivers::conduct;
use super::recipe::Recipe;
use crate::Error;
use crate::connection::Connection;
use crate::source::Application;

/// How TCP connections of a flow are made.
pub(crate) struct TcpPlan {
    flow: String,
    streams: FlowStreams,
    recipe: Arc<Recipe>,
    /// But for the offset of timestamps, which each connection draws.
    options: Options,
    /// What the first packet of whoever asks takes to the sender.
    way_back: Span,
    /// The path's base RTT.
    rtt: Span,
    receive_window_bytes: u64,
    initial_receive_window_bytes: u64,
    autotuned: bool,
    /// Absent: it is Linux's.
    receiver: Option<ReceiverSpec>,
    linux: Linux,
}

impl TcpPlan {
    pub(super) fn of(spec: &FlowSpec, recipe: Arc<Recipe>, run: &RunSpec) -> Result<Self, Error> {
        let mss_bytes =
            u16::try_from(mss_of(spec.mtu_bytes)).map_err(|e| Error::unbuildable(&spec.name, e))?;
        let way_back = way_back(spec, run);
        Ok(Self {
            flow: spec.name.clone(),
            streams: FlowStreams::of(run.seed, &spec.name),
            recipe,
            options: Options {
                pacing: spec.pacing,
                ecn: spec.ecn,
                initial_window: spec.initial_window_packets,
                timestamp_offset: 0,
                initial_pacing: spec.initial_pacing,
                short_path_bursts: spec.linux == Linux::V6_1,
                peer: spec.peer,
                mss_bytes,
            },
            way_back,
            rtt: propagation(&spec.path, run) + way_back,
            receive_window_bytes: spec.receive_window_bytes,
            initial_receive_window_bytes: spec.initial_receive_window_bytes,
            autotuned: spec.receive_window_autotuning,
            receiver: spec.receiver.clone(),
            linux: spec.linux,
        })
    }

    /// The only connection of a flow that is a single one.
    pub(super) fn only(
        &self,
        application: Application,
        python: impl FnOnce(Stream) -> Result<Box<dyn Controller>, Error>,
    ) -> Result<Connection, Error> {
        self.connection(self.streams, application, python)
    }

    /// The `number`-th connection of a flow that is many, with a controller of the registry.
    pub(super) fn nth(&self, number: u32, application: Application) -> Result<Connection, Error> {
        let none = |_| Err(Error::unbuildable(&self.flow, "nobody makes its controller"));
        self.connection(self.streams.of_connection(number), application, none)
    }

    fn connection(
        &self,
        streams: FlowStreams,
        application: Application,
        python: impl FnOnce(Stream) -> Result<Box<dyn Controller>, Error>,
    ) -> Result<Connection, Error> {
        let timestamp_offset = streams.stream("timestamps").bits() as u32;
        let options = Options { timestamp_offset, ..self.options };
        let controller = self.recipe.make(streams, python)?;
        // In Linux a receiver echoes marks as its own controller needs it: both ends have the same.
        let feedback = match (options.ecn, controller.needs_ecn()) {
            (false, _) => EcnFeedback::None,
            (true, EcnFeedback::None) => EcnFeedback::Classic,
            (true, needed) => needed,
        };
        let receiver =
            Receiver::new(options.mss_bytes, self.receive_window_bytes, self.rtt, feedback)
                .offering(self.initial_receive_window_bytes);
        let receiver = if self.autotuned { receiver.autotuned() } else { receiver };
        let receiver = match self.linux {
            Linux::V4_15 => receiver.uncompressed(),
            Linux::V6_1 => receiver,
        };
        let source = application.source(streams).asked_over(self.way_back);
        let limits = (self.receive_window_bytes, options.mss_bytes);
        let other = |it: &ReceiverSpec| conduct(it, (&self.flow, streams), self.rtt, limits);
        let conduct = self.receiver.as_ref().map(other).transpose()?;
        let sender = Sender::new(options, controller);
        Ok(Connection::new(sender, receiver, source).conducted(conduct))
    }
}

/// What propagation over some links takes, as the run begins.
fn propagation(links: &[u32], run: &RunSpec) -> Span {
    let ns = |&link: &u32| run.links[link as usize].delay.steps[0].delay_ns;
    Span::from_ns(links.iter().map(ns).sum())
}

/// What propagation from the receiver to the sender takes.
pub(super) fn way_back(spec: &FlowSpec, run: &RunSpec) -> Span {
    propagation(&spec.reverse_path, run) + Span::from_ns(spec.access_delay_ns)
}
