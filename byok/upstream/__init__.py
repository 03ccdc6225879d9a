"""The model APIs that byok talks to."""

import sys

# httpx offers a command line of its own, and importing that costs a tenth of byok's
# start. None here means "not installed", which httpx is prepared for.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
