"""Codecs of speech: what their packets are, and what the E-model has to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CODECS", "Codec"]

_RTP_HEADER_BYTES: Final = 12


@dataclass(frozen=True)
class Codec:
    """A codec, as it is sent.

    Attributes
    ----------
    speech_bytes
        Speech in a packet.
    packet_ns
        Length of that speech.
    extra_ns
        What the codec looks ahead or holds back beside it.
    equipment_impairment, loss_robustness
        Ie and Bpl (ITU-T G.113, Appendix I).
    """

    speech_bytes: int
    packet_ns: int
    extra_ns: int
    equipment_impairment: float
    loss_robustness: float

    @property
    def payload_bytes(self) -> int:
        """Payload of a datagram: RTP's header (RFC 3550, section 5.1) and the speech."""
        return _RTP_HEADER_BYTES + self.speech_bytes

    @property
    def rate_bps(self) -> int:
        """Rate of such payloads."""
        return 8 * self.payload_bytes * 10**9 // self.packet_ns

    @property
    def delay_ns(self) -> int:
        """Time from speech to the end of its packet."""
        return self.packet_ns + self.extra_ns


_MS: Final = 10**6

# Ie and Bpl: ITU-T G.113, Appendix I, tables of provisional values; packets: RFC 3551, section 4.5.
CODECS: Final[dict[str, Codec]] = {
    # Losses are concealed as G.711, Appendix I does, 3.75 ms later.
    "g711": Codec(160, 20 * _MS, 3_750_000, 0.0, 25.1),
    "g711-no-plc": Codec(160, 20 * _MS, 0, 0.0, 4.3),
    # Two frames of 10 ms; the values are those of G.729A with voice activity detection.
    "g729": Codec(20, 20 * _MS, 5 * _MS, 11.0, 19.0),
    # 6.3 kbit/s, with voice activity detection.
    "g723.1": Codec(24, 30 * _MS, 7_500_000, 15.0, 16.1),
    "gsm-efr": Codec(31, 20 * _MS, 0, 5.0, 10.0),
}
"""By their names in scenarios."""
