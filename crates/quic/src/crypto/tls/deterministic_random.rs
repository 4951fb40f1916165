//! Seeded random numbers for rustls.
//!
//! rustls requires a `'static` crypto provider, which therefore has no state. The random stream of
//! a session is stored in a thread-local variable while the session runs.

use std::cell::RefCell;

use jostle_units::RandomStream;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret,
    SupportedKxGroup, ring,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

thread_local! {
    static SESSION_RANDOM: RefCell<Option<RandomStream>> = const { RefCell::new(None) };
}

/// Runs `act` with `random` as the source of all random numbers.
pub(super) fn with<T>(random: &mut RandomStream, act: impl FnOnce() -> T) -> T {
    let before = SESSION_RANDOM.replace(Some(random.clone()));
    let done = act();
    if let Some(after) = SESSION_RANDOM.replace(before) {
        *random = after;
    }
    done
}

/// Returns ring's crypto provider with random numbers and ephemeral keys from a [`RandomStream`].
pub(super) fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.secure_random = &SharedRandom;
    for group in &mut provider.kx_groups {
        if group.name() == NamedGroup::X25519 {
            *group = &X25519;
        }
    }
    provider
}

#[derive(Debug)]
struct SharedRandom;

impl SecureRandom for SharedRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        SESSION_RANDOM.with_borrow_mut(|random| {
            let random = random.as_mut().ok_or(GetRandomFailed)?;
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
            }
            Ok(())
        })
    }
}

/// X25519 (RFC 7748). ring supports it only with random numbers of the operating system.
#[derive(Debug)]
struct X25519;

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut private = [0; 32];
        SharedRandom.fill(&mut private)?;
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
        let draw = |random: &mut RandomStream| {
            with(random, || {
                let mut bytes = [0; 12];
                SharedRandom.fill(&mut bytes).unwrap();
                bytes
            })
        };
        let mut random = RandomStream::new(1, "tls");
        let (one, two) = (draw(&mut random), draw(&mut random));
        assert_ne!(one, two);
        assert_eq!(one, draw(&mut RandomStream::new(1, "tls")));
        assert!(SharedRandom.fill(&mut [0; 4]).is_err());
    }

    /// RFC 7748 §6.1.
    #[test]
    fn both_sides_find_the_same_secret() {
        let mut random = RandomStream::new(2, "tls");
        let [a, b] = [(); 2].map(|()| with(&mut random, || X25519.start().unwrap()));
        let (a_public, b_public) = (a.pub_key().to_vec(), b.pub_key().to_vec());
        let (at_a, at_b) = (a.complete(&b_public).unwrap(), b.complete(&a_public).unwrap());
        assert_eq!(at_a.secret_bytes(), at_b.secret_bytes());
        let c = with(&mut random, || X25519.start().unwrap());
        assert!(c.complete(&[0; 32]).is_err());
    }
}
