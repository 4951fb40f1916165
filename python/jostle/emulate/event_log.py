"""Log file of every drop and mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

    from jostle._core import Emulation

__all__ = ["frame"]

# Common protocols with their names.
_PROTOCOLS: Final = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}


def frame(emulation: Emulation, directions: Sequence[tuple[str, Sequence[str]]]) -> pl.DataFrame:
    """Return one row per drop or mark, in order of time.

    Parameters
    ----------
    emulation
        Result of the engine, including events.
    directions
        Names of both directions and of their links, forward first.

    Returns
    -------
    polars.DataFrame
        `time_s` (of the link, since the start), `direction`, `link`, `event` (`drop` or `mark`),
        `reason`, `size_bytes`, `protocol`, `source`, `source_port`, `destination`,
        `destination_port`; the last five are null if the packet is not IP.
    """
    import polars as pl

    if emulation.events is None:
        raise ValueError("the emulation kept no events")
    links = {
        "way": [number for number, (_, links) in enumerate(directions) for _ in links],
        "hop": [hop for _, links in directions for hop in range(len(links))],
        "direction": [name for name, links in directions for _ in links],
        "link": [link for _, links in directions for link in links],
    }
    protocol = pl.col("protocol")
    return (
        pl.DataFrame(emulation.events)
        .rename({"direction": "way", "link": "hop"})
        .join(
            pl.DataFrame(links, schema_overrides={"way": pl.UInt32, "hop": pl.UInt32}),
            on=["way", "hop"],
            how="left",
            maintain_order="left",
        )
        .join(_flows(emulation), on="flow", how="left", maintain_order="left")
        .select(
            "time_s",
            "direction",
            "link",
            pl.when(pl.col("marked") == 1)
            .then(pl.lit("mark"))
            .otherwise(pl.lit("drop"))
            .alias("event"),
            pl.col("reason").replace_strict(
                dict(enumerate(emulation.reasons)), return_dtype=pl.String
            ),
            "size_bytes",
            protocol.replace_strict(
                _PROTOCOLS, default=protocol.cast(pl.String), return_dtype=pl.String
            ),
            "source",
            "source_port",
            "destination",
            "destination_port",
        )
    )


def _flows(emulation: Emulation) -> pl.DataFrame:
    import polars as pl

    schema = {
        "protocol": pl.UInt8,
        "source": pl.String,
        "source_port": pl.UInt16,
        "destination": pl.String,
        "destination_port": pl.UInt16,
    }
    return pl.DataFrame(emulation.flows, schema=schema, orient="row").with_row_index("flow")
