"""Voice codecs: packet sizes, and parameters of the E-model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CODECS", "Codec"]

_RTP_HEADER_BYTES: Final = 12


@dataclass(frozen=True)
class Codec:
    """A voice codec with a packetisation.

    Attributes
    ----------
    speech_bytes
        Bytes of speech per packet.
    packet_ns
        Duration of that speech.
    extra_ns
        Look-ahead of the codec, and delay of its loss concealment.
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
        """Payload of a datagram: RTP header (RFC 3550 §5.1) and speech."""
        return _RTP_HEADER_BYTES + self.speech_bytes

    @property
    def rate_bps(self) -> int:
        """Rate of these payloads."""
        return 8 * self.payload_bytes * 10**9 // self.packet_ns

    @property
    def delay_ns(self) -> int:
        """Time from speech to the end of its packet."""
        return self.packet_ns + self.extra_ns


_MS: Final = 10**6

# Ie and Bpl: ITU-T G.113, Appendix I, tables of provisional values; packets: RFC 3551 §4.5.
CODECS: Final[dict[str, Codec]] = {
    # Loss concealment of G.711, Appendix I, which adds 3.75 ms.
    "g711": Codec(160, 20 * _MS, 3_750_000, 0.0, 25.1),
    "g711-no-plc": Codec(160, 20 * _MS, 0, 0.0, 4.3),
    # Two frames of 10 ms. Ie and Bpl are the values for G.729A with voice activity detection.
    "g729": Codec(20, 20 * _MS, 5 * _MS, 11.0, 19.0),
    # 6.3 kbit/s, with voice activity detection.
    "g723.1": Codec(24, 30 * _MS, 7_500_000, 15.0, 16.1),
    "gsm-efr": Codec(31, 20 * _MS, 0, 5.0, 10.0),
}
"""Codecs by their names in scenarios."""
