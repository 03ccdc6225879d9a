"""Hooks that MkDocs calls while it builds the site.

The pages are those of the repository. README.md, CONTRIBUTING.md and CHANGELOG.md are
above the folder of pages, and are added; links to code, which the site does not have,
become plain text.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Pages of the site that are above `docs/`.
ABOVE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_RARE = ("reference/", "changelog")
_LOADED = re.compile(
    r'<(?:script|img|iframe|link rel="?stylesheet)[^>]*?"?(https?://[^" >]+)'
)
_OF_SCRIPT = re.compile(r"https://(?:unpkg|api\.github)\.com[^\"`]*")
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are above `docs/`."""
    from mkdocs.structure.files import File  # only `scripts/docs` installs it

    for name, page in ABOVE.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adapt the links of a page to the site, and rank pages for users first."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": 0.5 if uri.startswith(_RARE) else 2}
    return relink(markdown, uri)


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Set the theme's language to that of the page."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"
    return context


def on_post_build(config: Any, **_: Any) -> None:
    """Check that the site loads nothing from other hosts.

    The theme's script would load code for diagrams, and for a search in pages that are
    opened as files, from another host. No page has diagrams, and search needs a server,
    so these addresses are removed first.
    """
    site = Path(config.site_dir)
    for script in site.rglob("bundle.*.js"):
        text = script.read_text("utf-8")
        script.write_text(_OF_SCRIPT.sub("", text), "utf-8")
    loaded = {
        f"{page.relative_to(site)}: {url}"
        for page in site.rglob("*.html")
        for url in _LOADED.findall(page.read_text("utf-8"))
    }
    if loaded:
        raise SystemExit("Loaded from other hosts: " + ", ".join(sorted(loaded)))


def relink(markdown: str, uri: str) -> str:
    """Return a page with its links adapted to the site; links to code become text."""
    source = {page: name for name, page in ABOVE.items()}.get(uri, f"docs/{uri}")

    def replace(match: re.Match[str]) -> str:
        text, link, anchor = match[1], match[2], match[3] or ""
        if "://" in link or link.startswith("mailto:"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        page = ABOVE.get(target, target.removeprefix("docs/"))
        if page == target:
            return text
        path = posixpath.relpath(page, posixpath.dirname(uri) or ".")
        return f"[{text}]({path}{anchor})"

    return _LINK.sub(replace, markdown)
