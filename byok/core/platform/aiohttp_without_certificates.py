"""Imports aiohttp without the certificates that it would read, and nobody would use.

aiohttp makes two TLS contexts when it is imported, and reads the certificates of the
system into each: a tenth of the CPU time of a start, and 2 MB. byok gives its
connections contexts of its own (`upstream/transport.py`). One without would trust no
certificate.
"""

import ssl
from typing import Any


def _read_no_certificates(*_: object) -> None:
    """Take the place of two methods of contexts."""


_contexts: Any = ssl.SSLContext
_usual = _contexts.load_default_certs
_contexts.load_default_certs = _read_no_certificates
_contexts.set_default_verify_paths = _read_no_certificates
try:
    import aiohttp as aiohttp
finally:
    _contexts.load_default_certs = _usual
    del _contexts.set_default_verify_paths  # it is inherited
