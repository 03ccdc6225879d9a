"""Keep secrets out of everything that is written down."""

import base64
import re
from urllib.parse import quote

MARK = "[redacted]"

# Shapes of well-known secrets. A match is replaced whole.
PATTERNS = re.compile(
    r"""
      \bsk-[A-Za-z0-9_\-]{16,}                       # OpenAI, Anthropic, OpenRouter
    | \bAIza[0-9A-Za-z_\-]{30,}                      # Google
    | \bgh[pousr]_[A-Za-z0-9]{20,}                   # GitHub
    | \bgithub_pat_[A-Za-z0-9_]{20,}                 # GitHub
    | \bhf_[A-Za-z0-9]{20,}                          # Hugging Face
    | \bgsk_[A-Za-z0-9]{20,}                         # Groq
    | \bxai-[A-Za-z0-9]{20,}                         # xAI
    | \bxox[abprs]-[A-Za-z0-9\-]{10,}                # Slack
    | \bAKIA[0-9A-Z]{16}\b                           # AWS
    | (?<![\w\-])eyJ[\w\-]{8,4096}\.[\w\-]{8,8192}\.[\w\-]{8,2048}  # JWT
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)                 # user and password in a URL
    | (?<=[Bb]asic[ ])[A-Za-z0-9+/=]{8,}             # HTTP basic credentials
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
# A secret behind a telling name: the name stays, the value goes.
_NAMED = re.compile(
    r"((?:bearer\s+|[?&\"']?(?:api[_-]?key|access[_-]?token|token|secret|password|key)"
    r"[\"']?\s*[=:]\s*[\"']?))(?=[^\s\"'&,;]{8})([A-Za-z0-9_\-.~+/=%]{8,})",
    re.IGNORECASE,
)
# Some of these words are in every match; looking for them is far cheaper.
HINTS = (
    "sk-", "AIza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "hf_", "gsk_",
    "xai-", "xox", "AKIA", "eyJ", "://", "asic ", "-----BEGIN ",
)  # fmt: skip
_NAMES = ("bearer", "key", "token", "secret", "password")
_SHORTEST = 8


class Redactor:
    """Removes known secrets, their usual encodings, and whatever looks like one."""

    def __init__(self) -> None:
        self._forms: list[str] = []

    def add(self, secret: str) -> None:
        """Remember a live secret; anything under eight characters is ignored."""
        if len(secret) < _SHORTEST:
            return
        raw = secret.encode()
        encoded = base64.b64encode(raw).decode()
        in_json = secret.replace("\\", "\\\\").replace('"', '\\"')
        forms = {
            secret,
            quote(secret),
            quote(secret, safe=""),
            encoded,
            encoded.rstrip("="),
            base64.urlsafe_b64encode(raw).decode().rstrip("="),
            in_json,
            in_json.replace("/", "\\/"),
        }
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        if any(hint in text for hint in HINTS):
            text = PATTERNS.sub(MARK, text)
        folded = text.casefold()
        if any(name in folded for name in _NAMES):
            text = _NAMED.sub(rf"\1{MARK}", text)
        return text
