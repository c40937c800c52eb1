"""Settings of Sphinx for the manual: ``python -m sphinx -W docs build/manual``."""

from __future__ import annotations

import importlib.metadata

project = "partitioner"
author = "the authors of partitioner"
release = importlib.metadata.version("dnn-partitioner")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["build", "_templates"]
html_theme = "furo"
html_title = f"partitioner {release}"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing_outside"]

templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
add_module_names = False
