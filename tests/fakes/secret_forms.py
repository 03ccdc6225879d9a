"""How a secret may be written."""

import base64
from urllib.parse import quote


def forms(secret: str) -> set[bytes]:
    """List how a secret may be written."""
    encoded = base64.b64encode(secret.encode()).rstrip(b"=")
    return {secret.encode(), quote(secret, safe="").encode(), encoded}
