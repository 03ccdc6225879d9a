"""python -m byok."""

import sys

if __name__ == "__main__":
    try:
        from byok.cli import main
    except ImportError as error:
        if (error.name or "").startswith("byok"):
            raise
        sys.exit(
            f"byok cannot run with {sys.executable}: {error}. It needs Python 3.11 or "
            "newer, and its packages. In a clone, scripts/setup run brings them; then "
            "run .venv/bin/byok"
        )
    main()
