"""Names and TLS certificates of a domain that a test has to itself."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.upstream import FakeUpstream


def resolve_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve every name of the .test domain to this machine, and .invalid to none."""
    real = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **named: Any) -> Any:
        text = host.decode() if isinstance(host, bytes) else str(host)
        if text.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1" if text.endswith(".test") else host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def certificate(folder: Path, name: str, *, days: int = 1) -> Path:
    """Write a certificate that vouches for itself, and its key, into one PEM file.

    It is valid for so many days; where that is less than none, it has expired.
    """
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, *plain))
    return file


@asynccontextmanager
async def secure(file: Path, name: str) -> AsyncIterator[tuple[FakeUpstream, str]]:
    """Serve with a certificate; give the upstream and its address under a name."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(file)
    async with FakeUpstream(tls=tls) as upstream:
        yield upstream, upstream.url.replace("127.0.0.1", name)
