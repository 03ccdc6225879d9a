"""The owner's secret, with which daemon and commands prove themselves to each other.

Another program could take the port first and collect tokens and prompts. So a command
requests a proof before it sends anything else: an HMAC that only a holder of the secret
can compute. It covers the port, so that it cannot be relayed from another daemon. The
settings of clients hold only the clients' token, so whoever steals that can neither
impersonate the daemon nor control it.

The secret itself is never sent. Commands send a token derived from it, which is valid
for one daemon process, and useless for a program that takes the port afterwards.
"""

import hmac
import http.client
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson

from byok.core.daemon.instance import Instance
from byok.core.errors import BadRequest

if TYPE_CHECKING:
    from byok.core.chat import Json

PATH = "/health/challenge"
MAX_BODY_BYTES = 1024
_TIMEOUT = 3.0  # seconds
_NONCE_CHARS = range(16, 129)
_MARK = "byok_owner_"  # byok/core/redact.py recognises it


def derive_owner_token(secret: str, port: int, instance: str) -> str:
    """Return the token that byok's commands send to one daemon process."""
    return _MARK + _mac(secret, f"byok owner\n{port}\n{instance}")


def compute_proof(secret: str, nonce: str, port: int, instance: str) -> str:
    """Return the HMAC-SHA256 (hex) of nonce, port and instance under the secret."""
    return _mac(secret, f"byok {PATH}\n{nonce}\n{port}\n{instance}")


def _mac(secret: str, message: str) -> str:
    return hmac.new(secret.encode(), message.encode(), "sha256").hexdigest()


def answer_challenge(body: "Json", secret: str, port: int, instance: str) -> "Json":
    """Answer a challenge `{"nonce": 16 to 128 ASCII characters}`.

    Raises:
        BadRequest: 422, the nonce is missing or has another form.
    """
    nonce = body.get("nonce")
    if (
        not isinstance(nonce, str)
        or len(nonce) not in _NONCE_CHARS
        or not (nonce.isascii() and nonce.isprintable())
    ):
        raise BadRequest(
            "A challenge needs a nonce of 16 to 128 ASCII characters.",
            code="bad_field",
            status=422,
        )
    return {"instance": instance, "proof": compute_proof(secret, nonce, port, instance)}


def is_serving(daemon: Instance) -> bool:
    """Tell whether a daemon of any version seems to answer at its port; no proof."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def verify_daemon(daemon: Instance, secret: str, host: str = "127.0.0.1") -> bool:
    """Request the proof of a daemon; False if it is wrong or nobody answers.

    `host` is a loopback address.
    """
    nonce = secrets.token_hex(16)
    connection = http.client.HTTPConnection(host, daemon.port, timeout=_TIMEOUT)
    try:
        body = orjson.dumps({"nonce": nonce})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", PATH, body=body, headers=headers)
        reply = orjson.loads(connection.getresponse().read(MAX_BODY_BYTES))
        proof = reply["proof"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False
    finally:
        connection.close()
    expected = compute_proof(secret, nonce, daemon.port, daemon.instance)
    return isinstance(proof, str) and hmac.compare_digest(
        proof.encode("utf-8", "replace"), expected.encode()
    )
