"""Crates of the tests with controllers, and where they are compiled."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jostle.controller_crates import build
from jostle.controller_crates.new_crate import new_crate

ROOT = Path(__file__).parents[1]
TWIN = """
#![no_std]

extern crate alloc;

use alloc::boxed::Box;

use jostle_congestion::{AckSample, CongestionEvent};
use jostle_controllers::registry::{ControllerEntry, SlowStartChoice};
use jostle_controllers::{CongestionAvoidance, CongestionWindow, WindowBasedController};
use jostle_registry::{Parameter, RegistryEntry};

pub const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "twin",
        summary: "Reno, from a crate",
        class: "loss",
        based_on: &[],
        source: "RFC 5681",
        parameters: &[Parameter::choice("panics", "never", &["never", "loss"])],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |inputs| {
        let panics = inputs.values.choice("panics") == "loss";
        Box::new(WindowBasedController::new(Twin { panics }, inputs.slow_start))
    },
};

struct Twin {
    panics: bool,
}

impl CongestionAvoidance for Twin {
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> u32 {
        if self.panics {
            panic!("cwnd was {}", window.cwnd);
        }
        (window.cwnd / 2).max(2)
    }
}
"""
"""A crate whose controller is Reno: every series must be that of `reno`."""


@contextmanager
def compiled_below(folder: Path) -> Iterator[None]:
    """Compile crates below a folder, and what they depend on once for all runs of the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "cache_folder", lambda: folder / "kernels")
        # Crates of another folder, whose cache is no longer used.
        patched.setattr(build, "_compiled", {})
        patched.setenv("CARGO_TARGET_DIR", str(ROOT / "target" / "user-crates"))
        yield


def write_crate(folder: Path, source: str | None = None) -> Path:
    """Write the template, or a crate with another source."""
    new_crate(folder)
    if source is not None:
        (folder / "src" / "lib.rs").write_text(textwrap.dedent(source).lstrip(), "utf-8")
    return folder
