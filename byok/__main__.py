"""python -m byok."""

from byok.cli import main

if __name__ == "__main__":
    main()
