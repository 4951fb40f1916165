"""Application measures that are compared between simulator and kernel, with their tolerances.

Bulk flows are judged by throughput. Calls, video, web pages and other applications are judged by
measures that their users notice, over the complete run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from jostle.fidelity.tolerances import Tolerance

if TYPE_CHECKING:
    from jostle.run_spec import FlowSpec

Application = Literal["call", "frames", "film", "pings", "pages", "transfers"]

TITLES: Final[dict[Application, str]] = {
    "call": "a call",
    "frames": "media frames",
    "film": "a film",
    "pings": "pings",
    "pages": "web pages",
    "transfers": "connections that come and go",
}

_OF_SOURCES: Final[dict[str, Application]] = {
    "cbr": "call",
    "media": "frames",
    "video": "film",
    "ping": "pings",
    "web": "pages",
}


def application_of(flow: FlowSpec) -> Application | None:
    """Return the application of a flow; None for bulk data."""
    if flow.get("arrivals") is not None:
        return "transfers"
    return _OF_SOURCES.get(flow["source"]["kind"])


def tolerances_of(flow: FlowSpec) -> tuple[Tolerance, ...]:
    """Return the tolerances of the measures that the application of a flow can have.

    The result is empty for bulk data. CBR traffic has a MOS only with a codec.
    """
    application = application_of(flow)
    if application is None:
        return ()
    source = flow["source"]
    speech = source["kind"] == "cbr" and source.get("voice") is not None
    return tuple(one for one in APPLICATIONS[application] if speech or one.quantity != "mos")


def _near(quantity: str, words: str, *, relative: float = 0.0, absolute: float = 0.0) -> Tolerance:
    """Return a tolerance: a share of the kernel's mean, an amount, or its confidence interval."""
    return Tolerance(
        quantity,
        f"within {words}, or inside the 95 % interval of the kernel's mean",
        relative=relative,
        absolute=absolute,
        or_inside_interval=True,
    )


def _near_time(quantity: str, milliseconds: int) -> Tolerance:
    """Return a tolerance of a tenth or a number of milliseconds."""
    words = f"10 % or {milliseconds} ms"
    return _near(quantity, words, relative=0.1, absolute=milliseconds / 1e3)


APPLICATIONS: Final[dict[Application, tuple[Tolerance, ...]]] = {
    "call": (_near_time("one_way_delay", 1), _near("mos", "0.1", absolute=0.1)),
    "frames": (
        _near_time("frame_delay", 1),
        _near_time("frame_delay_p95", 2),
        _near("late_frames", "2 percentage points", absolute=0.02),
    ),
    "film": (
        _near("bitrate", "5 %", relative=0.05),
        _near_time("startup_delay", 50),
        _near("rebuffering", "2 percentage points", absolute=0.02),
    ),
    "pings": (_near_time("rtt", 1),),
    "pages": (_near_time("page_load_time", 10), _near_time("page_load_time_mean", 10)),
    "transfers": (
        _near_time("group_completion_time", 1),
        _near_time("completion_time_p95", 2),
        _near_time("small_completion_time", 1),
        _near_time("medium_completion_time", 2),
    ),
}
"""Judged quantities with tolerances, by application."""
