"""Running programs behind the simulator's links, in real time.

>>> from jostle import emulate
>>> links = emulate.load("link.toml")  # doctest: +SKIP
>>> emulate.emulate(links, ["ping", "-c", "3", "100.64.0.1"]).valid  # doctest: +SKIP
True
"""

from jostle.emulate.emulation import Options, emulate
from jostle.emulate.link_file import LinkFile, load
from jostle.emulate.outcome import Outcome, lines

__all__ = ["LinkFile", "Options", "Outcome", "emulate", "lines", "load"]
