//! A layer between a transport and a controller.

use alloc::boxed::Box;

use jostle_units::{Rate, Span, Time};

use crate::peer_cache::PeerCacheContext;
use crate::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnFeedback, EcnMarks,
    EstablishedEvent, HostExtension, LostPacket, QuickStartRate, RawAckSample, RecoveryState,
    SendEvent, StateObserver, TcpExtension, controller_methods,
};

/// Defines a method of [`ControllerLayer`] that calls the same method of the inner controller.
macro_rules! layer_method {
    ($name:ident (&mut self $(, $argument:ident: $type:ty)*) $($answer:tt)*) => {
        #[doc = concat!("Calls [`CongestionController::", stringify!($name), "`] of `inner`.")]
        #[inline]
        fn $name(&mut self, inner: &mut dyn CongestionController $(, $argument: $type)*) $($answer)* {
            inner.$name($($argument),*)
        }
    };
    ($name:ident (&self $(, $argument:ident: $type:ty)*) $($answer:tt)*) => {
        #[doc = concat!("Calls [`CongestionController::", stringify!($name), "`] of `inner`.")]
        #[inline]
        fn $name(&self, inner: &dyn CongestionController $(, $argument: $type)*) $($answer)* {
            inner.$name($($argument),*)
        }
    };
}

/// Defines a method of [`CongestionController`] for [`LayeredController`].
macro_rules! layered_method {
    ($name:ident (&mut $me:ident $(, $argument:ident: $type:ty)*) $($answer:tt)*) => {
        #[inline]
        fn $name(&mut $me $(, $argument: $type)*) $($answer)* {
            $me.layer.$name($me.inner.as_mut() $(, $argument)*)
        }
    };
    ($name:ident (&$me:ident $(, $argument:ident: $type:ty)*) $($answer:tt)*) => {
        #[inline]
        fn $name(&$me $(, $argument: $type)*) $($answer)* {
            $me.layer.$name($me.inner.as_ref() $(, $argument)*)
        }
    };
}

macro_rules! define_layer {
    (
        required {
            $($(#[$about:meta])* fn $name:ident $arguments:tt $(-> $answer:ty)?;)+
        }
        provided {
            $($(#[$more:meta])* fn $with:ident $taken:tt $(-> $given:ty)? $default:block)+
        }
    ) => {
        /// Intercepts the calls of a transport to the controller `inner`. Each method forwards its
        /// call by default.
        pub trait ControllerLayer: Send {
            /// Called when the connection opens.
            fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>);

            /// Called when the connection closes.
            fn on_connection_close(&mut self, inner: &dyn CongestionController, occasion: &mut PeerCacheContext<'_>);

            /// Returns [`TcpExtension::ignores_receive_window`] of the layer.
            fn overrides_receive_window(&self) -> bool {
                false
            }

            $(layer_method! { $name $arguments $(-> $answer)? })+
            $(layer_method! { $with $taken $(-> $given)? })+
        }

        impl<L: ControllerLayer> CongestionController for LayeredController<L> {
            $(layered_method! { $name $arguments $(-> $answer)? })+
            $(layered_method! { $with $taken $(-> $given)? })+

            fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
                Some(self)
            }

            fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
                Some(self)
            }

            fn host_extension(&mut self) -> Option<&mut dyn HostExtension> {
                Some(self)
            }
        }
    };
}
controller_methods!(define_layer);

/// A controller with a layer between it and the transport.
pub struct LayeredController<L> {
    layer: L,
    inner: Box<dyn CongestionController>,
}

impl<L: ControllerLayer> LayeredController<L> {
    /// Creates a controller from `layer` and the controller `inner`.
    pub fn new(layer: L, inner: Box<dyn CongestionController>) -> Self {
        Self { layer, inner }
    }
}

impl<L: ControllerLayer> TcpExtension for LayeredController<L> {
    fn quick_start_request(&self) -> QuickStartRate {
        self.inner.tcp_extension().map_or(QuickStartRate::NONE, TcpExtension::quick_start_request)
    }

    fn ignores_receive_window(&self) -> bool {
        self.layer.overrides_receive_window()
            || self.inner.tcp_extension().is_some_and(TcpExtension::ignores_receive_window)
    }

    fn wants_ack_events(&self) -> bool {
        self.inner.tcp_extension().is_some_and(TcpExtension::wants_ack_events)
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        if let Some(inner) = self.inner.tcp_extension_mut() {
            inner.on_ack_event(now, slow_path);
        }
    }
}

impl<L: ControllerLayer> HostExtension for LayeredController<L> {
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>) {
        self.layer.on_connection_open(occasion);
        if let Some(inner) = self.inner.host_extension() {
            inner.on_connection_open(occasion);
        }
    }

    fn on_connection_close(&mut self, occasion: &mut PeerCacheContext<'_>) {
        self.layer.on_connection_close(self.inner.as_ref(), occasion);
        if let Some(inner) = self.inner.host_extension() {
            inner.on_connection_close(occasion);
        }
    }
}

#[cfg(test)]
mod tests;
