//! Random numbers that come from a seed, where rustls asks for some.
//!
//! rustls takes its provider of cryptography as something that is there for ever, and so without a
//! state. What a session draws is lent to the thread for as long as it works.

use std::cell::RefCell;

use jostle_units::Stream;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret,
    SupportedKxGroup, ring,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

thread_local! {
    static LENT: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// Draws from `random` in all that `act` does.
pub(super) fn with<T>(random: &mut Stream, act: impl FnOnce() -> T) -> T {
    let before = LENT.replace(Some(random.clone()));
    let done = act();
    if let Some(after) = LENT.replace(before) {
        *random = after;
    }
    done
}

/// ring's cryptography, with random numbers and ephemeral keys of a [`Stream`].
pub(super) fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.secure_random = &Lent;
    for group in &mut provider.kx_groups {
        if group.name() == NamedGroup::X25519 {
            *group = &X25519;
        }
    }
    provider
}

#[derive(Debug)]
struct Lent;

impl SecureRandom for Lent {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        LENT.with_borrow_mut(|lent| {
            let random = lent.as_mut().ok_or(GetRandomFailed)?;
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
            }
            Ok(())
        })
    }
}

/// X25519 (RFC 7748), which ring does with random numbers of the operating system alone.
#[derive(Debug)]
struct X25519;

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut private = [0; 32];
        Lent.fill(&mut private)?;
        Ok(Box::new(Exchange { private, public: x25519(private, X25519_BASEPOINT_BYTES) }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Exchange {
    private: [u8; 32],
    public: [u8; 32],
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = peer.try_into().map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let shared = x25519(self.private, peer);
        // RFC 8446 §7.4.2: "implementations MUST check whether the computed Diffie-Hellman shared
        // secret is the all-zero value and abort if so".
        if shared == [0; 32] {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&shared[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_the_streams_alone() {
        let draw = |random: &mut Stream| {
            with(random, || {
                let mut bytes = [0; 12];
                Lent.fill(&mut bytes).unwrap();
                bytes
            })
        };
        let mut random = Stream::new(1, "tls");
        let (one, two) = (draw(&mut random), draw(&mut random));
        assert_ne!(one, two);
        assert_eq!(one, draw(&mut Stream::new(1, "tls")));
        assert!(Lent.fill(&mut [0; 4]).is_err());
    }

    /// RFC 7748 §6.1.
    #[test]
    fn both_sides_find_the_same_secret() {
        let mut random = Stream::new(2, "tls");
        let [a, b] = [(); 2].map(|()| with(&mut random, || X25519.start().unwrap()));
        let (a_public, b_public) = (a.pub_key().to_vec(), b.pub_key().to_vec());
        let (at_a, at_b) = (a.complete(&b_public).unwrap(), b.complete(&a_public).unwrap());
        assert_eq!(at_a.secret_bytes(), at_b.secret_bytes());
        let c = with(&mut random, || X25519.start().unwrap());
        assert!(c.complete(&[0; 32]).is_err());
    }
}
