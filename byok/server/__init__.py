"""The HTTP server: requests of clients in, answers out."""

# Before any module of the server imports aiohttp.
from byok.core.platform import lean_aiohttp as _  # noqa: F401
