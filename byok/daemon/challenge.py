"""Prove that the process on the port is the daemon of this user.

Another program could take the port first and collect tokens and prompts. So a process
asks for a proof before it sends the token: an HMAC that only a holder of the token can
compute. It covers the port, so that it cannot be relayed from another daemon.
"""

import hmac
import http.client
import secrets
from typing import TYPE_CHECKING

import orjson

from byok.daemon.instance import Instance
from byok.errors import BadRequest

if TYPE_CHECKING:
    from byok.chat import Json

PATH = "/health/challenge"
MAX_BODY = 1024
_SECONDS = 3.0
_NONCE_CHARS = range(16, 129)


def compute_proof(token: str, nonce: str, port: int, instance: str) -> str:
    """Return the HMAC-SHA256 (hex) of nonce, port and instance under the token."""
    message = f"byok {PATH}\n{nonce}\n{port}\n{instance}"
    return hmac.new(token.encode(), message.encode(), "sha256").hexdigest()


def answer_challenge(body: "Json", token: str, port: int, instance: str) -> "Json":
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
    return {"instance": instance, "proof": compute_proof(token, nonce, port, instance)}


def verify_daemon(daemon: Instance, token: str, host: str = "127.0.0.1") -> bool:
    """Ask the daemon for the proof; False if it is wrong or nobody answers.

    `host` is a loopback address.
    """
    nonce = secrets.token_hex(16)
    connection = http.client.HTTPConnection(host, daemon.port, timeout=_SECONDS)
    try:
        body = orjson.dumps({"nonce": nonce})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", PATH, body=body, headers=headers)
        reply = orjson.loads(connection.getresponse().read(MAX_BODY))
        given = reply["proof"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False
    finally:
        connection.close()
    expected = compute_proof(token, nonce, daemon.port, daemon.instance)
    return isinstance(given, str) and hmac.compare_digest(
        given.encode("utf-8", "replace"), expected.encode()
    )
