"""Write the generated pages, and the example of the settings; --check compares."""

import sys
from pathlib import Path

from byok.settings import example
from scripts import (
    endpoints_page,
    errors_page,
    files_page,
    glossary_page,
    preset_lists,
    security_page,
)
from scripts.case_tests import CasesError
from scripts.glossary_page import GlossaryError

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {
    "models.md": preset_lists.models_page,
    "reference/endpoints.md": endpoints_page.page,
    "reference/errors.md": errors_page.page,
    "reference/files.md": files_page.page,
    "reference/glossary.md": glossary_page.page,
    "reference/security.md": security_page.page,
    "../config.example.toml": example,
}


def main() -> int:
    """Write the pages; with --check, report those that are out of date."""
    only_check, is_stale = "--check" in sys.argv, False
    for name, make_page in PAGES.items():
        file, new = (DOCS / name).resolve(), make_page()
        if not only_check:
            file.write_text(new, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != new:
            path = file.relative_to(DOCS.parent)
            print(f"{path} is out of date: run scripts/generate_docs.py")
            is_stale = True
    return int(is_stale)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (CasesError, GlossaryError) as error:
        sys.exit(str(error))
