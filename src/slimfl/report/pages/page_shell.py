"""The shell of every HTML page: one file that needs neither a server nor a network.

A content security policy forbids the page to load anything; scripts may run only on a page that
contains some.
"""

from collections.abc import Iterable
from html import escape
from importlib import resources

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page_shell(
    *,
    kind: str,
    title: str,
    subtitle: str,
    contents: Iterable[tuple[str, str]],
    main: str,
    css: str = "",
    scripts: str = "",
) -> str:
    """A complete page.

    Args:
        kind: The kind of page, shown above the title.
        title: Plain text.
        subtitle: Plain text.
        contents: The key of every section and the HTML of its link.
        main: The sections as HTML.
        css: Styles of this page, after the common ones.
        scripts: Script elements, at the end.
    """
    policy = f"{_POLICY}; script-src 'unsafe-inline'" if scripts else _POLICY
    links = "".join(f'<li><a href="#{escape(key)}">{html}</a></li>' for key, html in contents)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{asset("slimfl.report.pages", "page.css")}{css}</style>
</head>
<body>
<header><p class="kind">{escape(kind)}</p><h1>{escape(title)}</h1>
<p class="subtitle">{escape(subtitle)}</p></header>
<nav aria-label="Contents"><ol>{links}</ol></nav>
<main>
{main}
</main>
{scripts}
</body>
</html>
"""


def section(key: str, title: str, html: str, kind: str = "") -> str:
    """A section under its heading; the title is HTML."""
    name = f' class="{kind}"' if kind else ""
    return (
        f'<section id="{escape(key)}"{name} aria-labelledby="{escape(key)}-title">'
        f'<h2 id="{escape(key)}-title">{title}</h2>{html}</section>'
    )


def asset(package: str, name: str) -> str:
    """The text of a file that is installed beside the code."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
