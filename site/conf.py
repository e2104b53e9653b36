"""Settings of the documentation site; `site/build` makes it."""

from __future__ import annotations

import os
import re

project = "nodeproof"
author = "the nodeproof developers"
copyright = author
version = release = os.environ["NODEPROOF_VERSION"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
exclude_patterns = ["README.md"]

# Pages are written for GitHub: headings have anchors, tables are wide, `$`x`$` and ```math are mathematics.
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
myst_links_external_new_tab = False
# Lemmas are headings below headings of chapters; some chapters have no other level.
suppress_warnings = ["myst.header"]

nb_execution_mode = "auto" if os.environ.get("NODEPROOF_EXECUTE") != "no" else "off"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_in_temp = True
# Warnings of other packages.
nb_output_stderr = "remove"
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_google_docstring = True

html_theme = "furo"
html_title = f"nodeproof {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["extra"]
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#5ad1a5", "color-brand-content": "#5ad1a5"},
}
# A copy beside the pages, so that they need no network.
mathjax_path = "mathjax.js"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _mathematics(app: object, page: str, source: list[str]) -> None:
    """Turns GitHub's `$`x`$` into the role that Sphinx has for it."""
    source[0] = re.sub(r"\$`([^`]+)`\$", r"{math}`\1`", source[0])


_attributes: dict[str, list[str]] = {}


def _kept(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Keeps what is said of attributes: napoleon takes what stands before a colon for their type."""
    if what in ("attribute", "property", "data"):
        _attributes[name] = list(lines)


def _put_back(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Puts back what is said of attributes."""
    if name in _attributes:
        lines[:] = _attributes.pop(name)


def setup(app: object) -> None:
    app.connect("source-read", _mathematics)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", _kept, priority=400)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", _put_back, priority=600)  # type: ignore[attr-defined]
