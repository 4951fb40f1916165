//! Adapter between the congestion state and the stack's `Controller` trait.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::congestion::SharedCongestionState;

/// The stack does not pace if cwnd exceeds 2³² bytes. The congestion state paces instead.
const UNPACED_WINDOW: u64 = 1 << 40;

/// Adapter that passes the stack's events to the congestion state and returns its cwnd. If one of
/// the stack's own controllers is in use, the congestion state only observes.
pub(crate) struct NoqController {
    congestion: Arc<SharedCongestionState>,
    stack: Option<Box<dyn Controller>>,
}

impl fmt::Debug for NoqController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shim").field("stack", &self.stack).finish_non_exhaustive()
    }
}

impl Controller for NoqController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        if let Some(stack) = &mut self.stack {
            stack.on_sent(now, bytes, last);
        }
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, packet: u64) {
        let mut congestion = self.congestion.lock();
        let time = congestion.clock.time(now);
        congestion.on_sent(time, bytes, packet);
        if let Some(stack) = &mut self.stack {
            stack.on_packet_sent(now, bytes, packet);
        }
    }

    fn on_cwnd_limited(&mut self) {
        self.congestion.lock().on_blocked();
        if let Some(stack) = &mut self.stack {
            stack.on_cwnd_limited();
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        packet: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.congestion.lock().on_acked(packet);
        if let Some(stack) = &mut self.stack {
            stack.on_ack(now, sent, bytes, packet, app_limited, rtt);
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        if let Some(stack) = &mut self.stack {
            stack.on_end_acks(now, in_flight, app_limited, largest);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest: u64,
    ) {
        if !is_ecn {
            self.congestion.lock().on_losses(persistent);
        }
        if let Some(stack) = &mut self.stack {
            stack.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes, largest);
        }
    }

    fn on_packet_lost(&mut self, bytes: u16, packet: u64, now: Instant) {
        let mut congestion = self.congestion.lock();
        let time = congestion.clock.time(now);
        congestion.on_packet_lost(time, bytes, packet);
        if let Some(stack) = &mut self.stack {
            stack.on_packet_lost(bytes, packet, now);
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.congestion.lock().on_spurious();
        if let Some(stack) = &mut self.stack {
            stack.on_spurious_congestion_event();
        }
    }

    fn on_mtu_update(&mut self, bytes: u16) {
        self.congestion.lock().on_datagram_size(bytes);
        if let Some(stack) = &mut self.stack {
            stack.on_mtu_update(bytes);
        }
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration) {
        if let Some(stack) = &mut self.stack {
            stack.on_ack_frequency_update(threshold, max_ack_delay);
        }
    }

    fn window(&self) -> u64 {
        match &self.stack {
            Some(stack) => stack.window(),
            None => self.congestion.lock().window_bytes(),
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        if let Some(stack) = &self.stack {
            return stack.metrics();
        }
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = UNPACED_WINDOW;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // Called only for connection migration, which is not used here.
        let stack = self.stack.as_ref().map(|stack| stack.clone_box());
        Box::new(Self { congestion: Arc::clone(&self.congestion), stack })
    }

    fn initial_window(&self) -> u64 {
        match &self.stack {
            Some(stack) => stack.initial_window(),
            None => UNPACED_WINDOW,
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Factory of the adapter for a connection.
pub(crate) struct NoqControllerFactory {
    pub congestion: Arc<SharedCongestionState>,
    /// The stack's own controller, if it is in use.
    pub stack: Option<Arc<dyn ControllerFactory + Send + Sync>>,
}

impl ControllerFactory for NoqControllerFactory {
    fn build(self: Arc<Self>, now: Instant, datagram_bytes: u16) -> Box<dyn Controller> {
        let stack = self.stack.as_ref().map(|stack| Arc::clone(stack).build(now, datagram_bytes));
        Box::new(NoqController { congestion: Arc::clone(&self.congestion), stack })
    }
}
