"""The HTTP server: requests of clients in, answers out."""

# Before any module of the server imports aiohttp.
from byok.core.platform import aiohttp_without_certificates as _  # noqa: F401
