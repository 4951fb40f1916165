"""Writes the tables of the page on conformance from the study `quic-conformance`.

    jostle study run quic-conformance --json > conformance.json
    python tools/results/record_conformance.py conformance.json

Linux is there by the points that are kept of it, unless it ran as well. Writes `conformance.inc`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

TARGET = Path(__file__).parents[2] / "docs" / "results" / "data" / "conformance.inc"
BUFFERS = ("0.5 BDP", "1 BDP", "3 BDP", "5 BDP")
CONTROLLERS = {"cubic": "Cubic", "reno": "Reno", "bbr": "BBR"}
RTTS = ("10", "50")
TABLES = {
    "conformance to TCP of Linux 6.1": [
        (f"{title}, {rtt} ms: {said}", f"{kind}-{name}-{rtt}")
        for name, title in CONTROLLERS.items()
        for rtt in RTTS
        for said, kind in (
            ("TCP, simulator", "sim"),
            ("TCP, Linux to itself", "linux"),
            ("QUIC, simulator", "quic-sim"),
            ("QUIC, Linux", "quic-kernel"),
            ("noq's own, simulator", "noq"),
            ("ngtcp2, Linux", "ngtcp2"),
            ("s2n-quic, Linux", "s2n-quic"),
            ("quic-go, Linux", "quic-go"),
            ("TQUIC, Linux", "tquic"),
        )
    ],
    "conformance of two versions, simulator": [
        (f"{said}, {rtt} ms", f"{name}-{rtt}")
        for said, name in (
            ("BBRv3 to BBR", "bbr3-bbr"),
            ("BBRv3 over QUIC to BBRv3 over TCP", "quic-bbr3"),
            ("noq's BBRv3 to jostle's, both over QUIC", "noq-bbr3"),
        )
        for rtt in RTTS
    ],
}
"""Head of each table; rows with what they are called and the numbers' name."""


def main() -> None:
    """Read the document, write the tables."""
    document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    (study,) = (one for one in document["studies"] if one["id"] == "quic-conformance")
    values = {row["id"]: row["ours"] for row in study["numbers"]}
    TARGET.write_text("\n".join(lines(values)) + "\n", "utf-8")


def lines(values: Mapping[str, float | None]) -> Iterator[str]:
    """Write the tables; rows of which nothing was measured are left out."""
    for head, rows in TABLES.items():
        yield f"| {head} | " + " | ".join(BUFFERS) + " |"
        yield "| --- |" + " --- |" * len(BUFFERS)
        for said, name in rows:
            cells = [values.get(f"{name}.{buffer}") for buffer in BUFFERS]
            if any(cell is not None for cell in cells):
                yield f"| {said} | " + " | ".join(map(written, cells)) + " |"
        yield ""


def written(value: float | None) -> str:
    """Write a conformance with two digits."""
    return "–" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
