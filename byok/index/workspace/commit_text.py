"""Cleans commit messages: no links, numbers, trailers or code."""

import re

LONGEST = 600
_LINKS = re.compile(
    r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+|\(?\B#[0-9]+\)?|\b[0-9a-f]{12,64}\b"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRAILER = re.compile(
    r"[A-Za-z][A-Za-z-]*-(?:by|id|to|url|link|change)\s*:"
    r"|(?:fix(?:es)?|close[sd]?|resolve[sd]?|refs?|cc|bug|issue)\s*:?\s*#?\d*\s*$",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?:test plan|subscribers|tasks|differential revision|pull request resolved)\s*:"
    r"|reviewers?\b",
    re.IGNORECASE,
)


def clean_message(message: str) -> str:
    """Return what a commit says: no links, numbers, trailers, code; 600 characters."""
    kept: list[str] = []
    fenced = False
    for line in message[: 20 * LONGEST].split("\n"):
        # Spaces are joined first: the patterns below need not count them.
        text = " ".join(_CONTROL.sub(" ", _LINKS.sub(" ", line)).split())
        if text.startswith("```"):
            fenced = not fenced
        elif fenced or (kept and line.startswith(("    ", "\t", ">", "|", "<"))):
            continue
        elif kept and _END.match(text):
            break
        elif text and not _TRAILER.match(text):
            kept.append(text)
    return "\n".join(kept)[:LONGEST]
