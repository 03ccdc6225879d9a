"""Write the lists of presets in docs/models.md."""

import re
import textwrap
from pathlib import Path

from byok.dialects.presets import PRESETS

MODELS = Path(__file__).parent.parent / "docs" / "models.md"
_COLUMNS = 92


def models_page() -> str:
    """Return docs/models.md with a current list of presets."""
    variants = {n for n, p in PRESETS.items() if p.vendor and p.only_by_name}
    without_url = [n for n, p in PRESETS.items() if not p.base_url]
    usual = [n for n in PRESETS if n not in variants and n not in without_url]
    *plans, last = (f"`{n}`" for n in PRESETS if n in variants)
    names = (
        f"Presets: {', '.join(f'`{name}`' for name in usual)}, and "
        f"{', '.join(f'`{name}`' for name in without_url)} with your own `base_url`; "
        f"for other regions and plans {', '.join(plans)} and {last}."
    )
    page = MODELS.read_text("utf-8")
    before, paragraph, after = re.split(
        r"(An upstream is a preset, .*?\n)(?=\n)", page, maxsplit=1, flags=re.DOTALL
    )
    about = paragraph.partition("Presets:")[0].replace("\n", " ")
    filled = textwrap.fill(
        about + names, _COLUMNS, break_long_words=False, break_on_hyphens=False
    )
    return f"{before}{filled}\n{after}"
