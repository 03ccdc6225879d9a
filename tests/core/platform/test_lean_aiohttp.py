"""What the server has although aiohttp was imported without it, and what not."""

import ssl
import subprocess
import sys

import pytest

import byok.core.platform.lean_aiohttp  # noqa: F401
from tests.fakes.patience import START

LOADED = "import byok.server.app; print(open('/proc/self/maps').read())"


def test_a_context_that_is_made_later_knows_the_certificates_of_the_system() -> None:
    later = ssl.create_default_context()
    system = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    super(ssl.SSLContext, system).set_default_verify_paths()
    assert later.cert_store_stats() == system.cert_store_stats()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists them")
def test_the_library_of_cpp_is_not_in_memory() -> None:
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=START, check=True
    )
    assert "libstdc++" not in done.stdout
