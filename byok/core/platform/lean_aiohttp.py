"""Import aiohttp without two things that it would load, and that byok does not use.

- Certificates: aiohttp makes two TLS contexts, and loads the system's certificates into
  each. This takes a tenth of the CPU time of a start, and 2 MB. byok's connections have
  TLS contexts of their own (`upstream/transport.py`); one without would trust nobody.
- The C++ library: it is loaded by the compiled `frozenlist`, which has an equivalent
  written in Python.
"""

import ssl
import sys
from typing import Any


def _read_no_certificates(*_: object) -> None:
    """Replace two methods of TLS contexts during the import."""


# None means "not installed".
sys.modules.setdefault("frozenlist._frozenlist", None)  # type: ignore[arg-type]
_context_class: Any = ssl.SSLContext
_original = _context_class.load_default_certs
_context_class.load_default_certs = _read_no_certificates
_context_class.set_default_verify_paths = _read_no_certificates
try:
    import aiohttp as aiohttp
finally:
    _context_class.load_default_certs = _original
    del _context_class.set_default_verify_paths  # it is inherited
