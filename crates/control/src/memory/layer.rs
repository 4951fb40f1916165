//! A layer over a controller.

use jostle_units::{Rate, Span, Time};

use super::host::Occasion;
use crate::controller::{
    AckSample, Congestion, Controller, EcnFeedback, Established, HostExtension, LostPacket, Marks,
    Measurement, Observer, RecoveryOwner, RecoveryState, Sent, TcpExtension, controller_methods,
};
use crate::rate_code::RateCode;

/// A method of [`Layer`], which does what that of [`Controller`] does below it.
macro_rules! layer_method {
    ($name:ident (&mut self $(, $argument:ident: $type:ty)*) $($answer:tt)*) => {
        #[inline]
        fn $name(&mut self, inner: &mut dyn Controller $(, $argument: $type)*) $($answer)* {
            inner.$name($($argument),*)
        }
    };
    ($name:ident (&self $(, $argument:ident: $type:ty)*) $($answer:tt)*) => {
        #[inline]
        fn $name(&self, inner: &dyn Controller $(, $argument: $type)*) $($answer)* {
            inner.$name($($argument),*)
        }
    };
}

/// A method of [`Controller`] on [`Layered`].
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
        /// What a layer does with all that its transport says and asks, on its way to the controller
        /// `inner`: it passes it on, as long as it does not have a method of its own for it.
        pub(crate) trait Layer: Send {
            /// The connection opens.
            fn open(&mut self, occasion: &mut Occasion<'_>);

            /// The connection closes.
            fn close(&mut self, inner: &dyn Controller, occasion: &mut Occasion<'_>);

            /// See [`TcpExtension::overrides_receive_window`].
            fn overrides_receive_window(&self) -> bool {
                false
            }

            $(layer_method! { $name $arguments $(-> $answer)? })+
            $(layer_method! { $with $taken $(-> $given)? })+
        }

        impl<L: Layer> Controller for Layered<L> {
            $(layered_method! { $name $arguments $(-> $answer)? })+
            $(layered_method! { $with $taken $(-> $given)? })+

            fn tcp(&self) -> Option<&dyn TcpExtension> {
                Some(self)
            }

            fn tcp_mut(&mut self) -> Option<&mut dyn TcpExtension> {
                Some(self)
            }

            fn host(&mut self) -> Option<&mut dyn HostExtension> {
                Some(self)
            }
        }
    };
}
controller_methods!(define_layer);

/// A controller under a layer.
pub(crate) struct Layered<L> {
    layer: L,
    inner: Box<dyn Controller>,
}

impl<L: Layer> Layered<L> {
    pub(crate) fn new(layer: L, inner: Box<dyn Controller>) -> Self {
        Self { layer, inner }
    }
}

impl<L: Layer> TcpExtension for Layered<L> {
    fn rate_request(&self) -> RateCode {
        self.inner.tcp().map_or(RateCode::NONE, TcpExtension::rate_request)
    }

    fn overrides_receive_window(&self) -> bool {
        self.layer.overrides_receive_window()
            || self.inner.tcp().is_some_and(TcpExtension::overrides_receive_window)
    }

    fn hears_headers(&self) -> bool {
        self.inner.tcp().is_some_and(TcpExtension::hears_headers)
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        if let Some(inner) = self.inner.tcp_mut() {
            inner.on_ack_event(now, slow_path);
        }
    }
}

impl<L: Layer> HostExtension for Layered<L> {
    fn on_open(&mut self, occasion: &mut Occasion<'_>) {
        self.layer.open(occasion);
        if let Some(inner) = self.inner.host() {
            inner.on_open(occasion);
        }
    }

    fn on_close(&mut self, occasion: &mut Occasion<'_>) {
        self.layer.close(self.inner.as_ref(), occasion);
        if let Some(inner) = self.inner.host() {
            inner.on_close(occasion);
        }
    }
}

#[cfg(test)]
mod tests;
