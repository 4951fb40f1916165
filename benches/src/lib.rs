//! The benches are in `benches/`.
