"""What every page is made with: its template, and the scripts and styles that it brings along."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from jostle.printable import printable_markup
from jostle.report import assets

__all__ = ["rendered"]


def rendered(
    room: str,
    template: str,
    /,
    *,
    scripts: Sequence[str] = assets.SCRIPTS,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **shown: Any,
) -> str:
    """Fill a template in; whatever is no markup is made safe to show.

    Parameters
    ----------
    room
        Package whose folder `templates` it is in.
    template
        Its file.
    scripts
        Files in `static/`, in this order.
    filters
        Filters of its own.
    **shown
        What it shows, by name. Beside it the template has `version`, `styles`, `scripts`, and
        `policy`, under which a browser runs these scripts alone.
    """
    environment = Environment(
        loader=PackageLoader(room),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable_markup,
        trim_blocks=True,
    )
    environment.filters.update(filters or {})
    return environment.get_template(template).render(
        version=metadata.version("jostle"),
        policy=assets.policy(scripts),
        styles=assets.styles(),
        scripts=assets.scripts(scripts),
        **shown,
    )
