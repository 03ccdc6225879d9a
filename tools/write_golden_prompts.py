"""Write tests/core/prompts/golden/ anew: `python -m tools.write_golden_prompts`.

Each file is the system message that byok sends upstream on one of the occasions in
tests/fakes/occasions.py. Read the difference before you commit it.
"""

import argparse
import sys
from pathlib import Path

from tests.fakes.occasions import OCCASIONS

GOLDEN = Path(__file__).parent.parent / "tests" / "core" / "prompts" / "golden"
_END = ".txt"


def main(argv: list[str]) -> int:
    """Write the files, remove those without an occasion, and report changes."""
    parser = argparse.ArgumentParser(prog="python -m tools.write_golden_prompts")
    parser.add_argument("--folder", type=Path, default=GOLDEN)
    folder: Path = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    texts = {f"{occasion.name}{_END}": occasion.golden() for occasion in OCCASIONS}
    changed = [name for name, text in texts.items() if _write(folder / name, text)]
    obsolete = [path for path in folder.glob(f"*{_END}") if path.name not in texts]
    for path in obsolete:
        path.unlink()
    print(f"{len(texts)} prompts, {len(changed)} changed, {len(obsolete)} removed")
    for name in changed:
        print(f"  {name}")
    return 0


def _write(path: Path, text: str) -> bool:
    content = text.encode("utf-8")
    if path.exists() and path.read_bytes() == content:
        return False
    path.write_bytes(content)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
