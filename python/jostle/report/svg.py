"""Parts of drawings that take their colours from the page."""

from __future__ import annotations

from html import escape

from jostle.safe_io.terminal_text import escape_control_characters

__all__ = ["text"]

_LETTER = 6.4


def text(at: tuple[float, float], words: str, anchor: str, kind: str, room: float) -> str:
    """Write words in the room that they have, cut short with the whole as a tooltip."""
    most = max(8, int(room / _LETTER))
    shown = words if len(words) <= most else words[: most - 1] + "…"
    title = "" if shown == words else f"<title>{escape(escape_control_characters(words))}</title>"
    return (
        f'<text x="{at[0]:g}" y="{at[1]:g}" text-anchor="{anchor}" class="{kind}">'
        f"{title}{escape(escape_control_characters(shown))}</text>"
    )
