"""Imports aiohttp without what it would load, and nobody would use.

- Certificates: aiohttp makes two TLS contexts, and reads those of the system into each,
  a tenth of the CPU time of a start, and 2 MB. byok gives its connections contexts of
  its own (`upstream/transport.py`). One without would trust no certificate.
- The library of C++: it comes with a list of callbacks, which has a twin in Python.
"""

import ssl
import sys
from typing import Any


def _read_no_certificates(*_: object) -> None:
    """Take the place of two methods of contexts."""


# None means "not installed".
sys.modules.setdefault("frozenlist._frozenlist", None)  # type: ignore[arg-type]
_contexts: Any = ssl.SSLContext
_usual = _contexts.load_default_certs
_contexts.load_default_certs = _read_no_certificates
_contexts.set_default_verify_paths = _read_no_certificates
try:
    import aiohttp as aiohttp
finally:
    _contexts.load_default_certs = _usual
    del _contexts.set_default_verify_paths  # it is inherited
