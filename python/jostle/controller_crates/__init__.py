"""Controllers of a user's Rust crate: template, source, and compilation for every stack."""
