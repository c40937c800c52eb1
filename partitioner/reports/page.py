"""The page of a report: one HTML file that loads nothing and runs no script but its own two."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bokeh.models import UIElement

ASSETS = files("partitioner.reports") / "assets"
POLICY = (
    "default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def page(figures: Mapping[str, UIElement], **texts: Any) -> str:
    """Return the page with its figures, by the id of the element that each is drawn in.

    All texts are escaped by the template. A policy in the page allows its two scripts, by their hashes, and
    no request; so not even markup that got into the page could run anything.
    """
    from jinja2 import Environment

    scripts = [_library(), _asset("page.js")]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    html: str = environment.from_string(_asset("page.html")).render(
        policy=POLICY.format(hashes=" ".join(map(_source, scripts))),
        style=_asset("page.css"),
        scripts=scripts,
        figures=_data([_item(model, place) for place, model in figures.items()]),
        **texts,
    )
    return html


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _library() -> str:
    """Return bokeh's script."""
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="error").js_raw)


def _source(script: str) -> str:
    """Return the hash of a script as a source of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _item(model: UIElement, place: str) -> Any:
    from bokeh.embed import json_item

    return json_item(model, place)


def _data(value: Sequence[Any]) -> str:
    """Return JSON that can stand in an element of a script: without ``<``, which could end it."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
