"""Common parts of all pages: templates, scripts and styles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from jostle.report import assets
from jostle.safe_io.terminal_text import escape_markup

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
    """Render a template; text that is not markup is escaped.

    Parameters
    ----------
    room
        Package with the folder `templates`.
    template
        File name of the template.
    scripts
        Files in `static/`, in this order.
    filters
        Additional filters.
    **shown
        Variables of the template, in addition to `version`, `styles`, `scripts`, and `policy`,
        which permits a browser to run these scripts only.
    """
    environment = Environment(
        loader=PackageLoader(room),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_markup,
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
