"""Certificates after aiohttp was imported without them."""

import ssl

import byok.core.platform.aiohttp_without_certificates  # noqa: F401


def test_a_context_that_is_made_later_knows_the_certificates_of_the_system() -> None:
    later = ssl.create_default_context()
    system = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    super(ssl.SSLContext, system).set_default_verify_paths()
    assert later.cert_store_stats() == system.cert_store_stats()
