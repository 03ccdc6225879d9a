"""What MkDocs calls while it builds the site.

The pages are those of the repository as they are. README.md, CONTRIBUTING.md and
CHANGELOG.md are above the folder of pages; links also lead to code, which the site does
not have.
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
    """Let links lead to pages of the site, and a search find pages for users first."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": 0.5 if uri.startswith(_RARE) else 2}
    return relinked(markdown, uri)


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Show the words around a page in the language of the page."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"
    return context


def on_post_build(config: Any, **_: Any) -> None:
    """Refuse a site that would load something from another host.

    The theme's script names a host from which it would load what draws diagrams, and
    what searches pages that are opened as files. No page has the former; search needs a
    server.
    """
    site = Path(config.site_dir)
    for script in site.rglob("bundle.*.js"):
        text = script.read_text("utf-8")
        script.write_text(_OF_SCRIPT.sub("", text), "utf-8")
    found = {
        f"{page.relative_to(site)}: {url}"
        for page in site.rglob("*.html")
        for url in _LOADED.findall(page.read_text("utf-8"))
    }
    if found:
        raise SystemExit("Loaded from other hosts: " + ", ".join(sorted(found)))


def relinked(markdown: str, uri: str) -> str:
    """Return a page of the site with its links as the site needs them.

    A link to code becomes its text.
    """
    source = {page: name for name, page in ABOVE.items()}.get(uri, f"docs/{uri}")

    def replace(found: re.Match[str]) -> str:
        text, link, part = found[1], found[2], found[3] or ""
        if "://" in link or link.startswith("mailto:"):
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        place = ABOVE.get(target, target.removeprefix("docs/"))
        if place == target:
            return text
        way = posixpath.relpath(place, posixpath.dirname(uri) or ".")
        return f"[{text}]({way}{part})"

    return _LINK.sub(replace, markdown)
