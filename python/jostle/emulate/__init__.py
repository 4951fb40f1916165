"""Execution of programs behind emulated links, in real time.

>>> from jostle import emulate
>>> links = emulate.load("link.toml")  # doctest: +SKIP
>>> emulate.emulate(links, ["ping", "-c", "3", "100.64.0.1"]).valid  # doctest: +SKIP
True
"""

from jostle.emulate.emulation import Options, emulate
from jostle.emulate.link_file import LinkFile, load
from jostle.emulate.summary import EmulationSummary, lines

__all__ = ["EmulationSummary", "LinkFile", "Options", "emulate", "lines", "load"]
