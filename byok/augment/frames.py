"""Frames around what users and strangers wrote, in texts that a model reads.

    <workspace_guidelines>
    ...
    </workspace_guidelines>

Nothing inside closes its frame or hides a character from the reader.
"""

from html import escape as escape_attribute

from byok.escapes import escape
from byok.truncate import truncate_middle

LONGEST = 100_000  # characters of one text
"""More is no guideline any more, and no window holds it."""


def frame(tag: str, text: str, **attributes: str) -> str:
    """Return a text between tags, cut in the middle if it is too long; "" for none."""
    if not text.strip():
        return ""
    lines = truncate_middle(text.strip(), LONGEST).splitlines()
    inner = "\n".join(map(escape, lines)).replace(f"</{tag}", f"<\\/{tag}")
    named = "".join(
        f' {name}="{escape_attribute(escape(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{named}>\n{inner}\n</{tag}>"
