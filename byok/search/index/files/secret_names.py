"""Names of files that hold keys or private data: never indexed, never searched.

The list is fixed. No file of a repository can lift it, only the user's own settings
(`context.allow_secret`), and not even these for version control. Case is ignored.
Source files such as `secrets.py` or `token.ts` are indexed: only texts in them that
look like keys are masked.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from byok.search.index.files.gitignore import Patterns

NEVER = frozenset({".git", ".hg", ".svn"})
_SECRET_FOLDERS = NEVER | {
    *(".ssh", ".gnupg", ".password-store", ".env", ".envs"),
    *(".aws", ".azure", ".kube", ".gcloud", ".oci", ".aliyun", ".chef"),
    *(".terraform", ".vscode-server", ".vscode-server-insiders", ".cursor-server"),
}
_SECRET_PAIRS = frozenset(
    {
        ".docker/config.json",
        ".config/gcloud",
        ".config/gh",
        ".config/op",
        *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
        # byok's own, where a copy of a home folder is indexed
        *(".config/byok", "state/byok", "application support/byok"),
        *("state/token", "byok/token", "byok/vault.json", "data/vault.json"),
    }
)
_SECRET_NAMES = frozenset(
    {
        *(".netrc", "_netrc", ".netrc.gpg", ".authinfo", ".authinfo.gpg"),
        *(".pypirc", ".npmrc", ".git-credentials", ".sentryclirc", ".terraformrc"),
        *("rclone.conf", "nuget.config", "local.properties", ".flaskenv"),
        *(".openai", ".anthropic", ".smbcredentials"),
        *(".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".databrickscfg"),
        *(".htpasswd", "htpasswd", ".htdigest", "passwords.txt", "passwords.csv"),
        *(".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto", "kaggle.json"),
        *("kubeconfig", "kubeconfig.yml", "kubeconfig.yaml", "credentials"),
        *("wp-config.php", "local.settings.json", "secring.gpg", "cookies.txt"),
        *("sftp-config.json", ".ftpconfig", ".remote-sync.json", "sitemanager.xml"),
        *(".xauthority", ".iceauthority", ".augment-guidelines"),
        *("owner-secret", "dashboard-token", "metrics-token"),  # byok's own
    }
)
_SECRET_EXTENSIONS = frozenset(
    {
        *("pem", "key", "pfx", "p12", "pkcs12", "p8", "pkcs8", "jks", "jceks", "bks"),
        *("keystore", "crt", "cer", "der", "ppk", "keytab", "agekey", "ovpn", "rdp"),
        *("kdb", "kdbx", "psafe3", "keychain", "keychain-db", "kubeconfig"),
        *("tfstate", "tfvars", "htpasswd", "har"),
        *("db", "db3", "db-wal", "db-shm", "db-journal"),
    }
)
_BACKUP_EXTENSIONS = frozenset(
    {"bak", "backup", "old", "orig", "save", "swp", "tmp", "copy"}
)
_CONFIG_EXTENSIONS = frozenset({"json", "yml", "yaml", "toml"})
# `auth.json` has tokens at the root (of Composer) and in the folders of some tools, but
# `locales/en/auth.json` has texts.
_AUTH_FILE = "auth.json"
_AUTH_FOLDERS = frozenset({"", "composer", "containers", "com.vercel.cli", "opencode"})
_EXAMPLE = r"(?:example|sample|template|dist)"
_SECRET_PATTERN = re.compile(
    rf"""
    \.(?:env(?:rc)?|dev\.vars)  (?![._-](?:.*[._-])?{_EXAMPLE}$|\.d\.ts$)  (?:[._-].*)?
    | (?!(?:.*[._-])?{_EXAMPLE}\.env$)  .*\.env
    | env\.(?:local|dev|development|test|staging|prod|production)(?:\.local)?
    | id_(?:rsa|dsa|ecdsa|ed25519).*
    | .*_(?:rsa|dsa|ecdsa|ed25519)
    | ssh_host_[a-z0-9]+_key(?:\.pub)?
    | (?:.*[_-])?credentials?[^.]*\.(?:json|ya?ml|toml|ini|xml|csv|txt)
    | credentials.*\.json
    | (?:aws|azure|gcloud|gcp|google|s3|smb|git|docker|db|service)[_-]?credentials?
    | service[_-]?account.*\.json | .*firebase-adminsdk.*\.json
    | (?:.*[_-])?accesskeys\.csv
    | secrets?\.(?:ini|properties|txt|conf|cfg|xml|enc)
    | \.(?:.*[_-])?(?:pass|passwd|passwords?|secrets?|tokens?|credentials?|keys?)
      (?:\.txt)?
    | (?:.*[_-])?(?:api|access|secret)[_-]?keys?(?:\.txt)?
    | .*\.tfstate\.(?:\d+\.)?(?:backup|lock\.info|json)
    | .*\.tfvars\.json
    | .*\.sqlite[^.]*
    | \.[a-z0-9]+_history
    | wg\d+\.conf
    """,
    re.VERBOSE | re.DOTALL,
)

# Letters of other scripts that look like Latin ones in these names.
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0475\u04bb\u0501\u051b\u051d"
    "\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u0261\u2010\u2013\u2014\u2212",
    "abekmhopctyxsijvhdqwaeikvoptuxig----",
)
_INVISIBLE = frozenset({"Cf", "Cc", "Mn", "Zs"})


def is_secret(
    path: str,
    allowed: tuple[str, ...] = (),
    *,
    is_dir: bool = False,
) -> bool:
    """Tell whether a relative path is private, or in a private folder.

    `allowed` has patterns as in .gitignore.
    """
    path = path.casefold()
    names = path.split("/")
    if not NEVER.isdisjoint(names):
        return True
    normalised = ["", *map(normalise_name, names)]
    name_depth = len(names)
    is_private_path = any(
        is_private(parent, name, is_dir=is_dir or depth < name_depth)
        for depth, (parent, name) in enumerate(pairwise(normalised), 1)
    )
    return is_private_path and not _is_allowed(path, allowed, is_dir)


def is_private(parent: str, name: str, *, is_dir: bool) -> bool:
    """Tell whether a name is private, given only its parent; both are normalised."""
    if name in _SECRET_FOLDERS or f"{parent}/{name}" in _SECRET_PAIRS:
        return True
    if name == _AUTH_FILE:
        return not is_dir and (parent in _AUTH_FOLDERS or parent.startswith("."))
    return not is_dir and _is_private_file(name)


def normalise_name(name: str) -> str:
    """Return a casefolded name in the letters that it looks like, without spaces."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name).casefold().translate(_LOOK_ALIKES)
        name = "".join(c for c in name if unicodedata.category(c) not in _INVISIBLE)
    return name.replace(" ", "") if " " in name else name


@lru_cache(maxsize=4096)
def _is_private_file(name: str) -> bool:
    name = name.rstrip(" .~")  # Windows drops spaces and dots, editors add `~`
    stem, _, extension = name.rpartition(".")
    while extension in _BACKUP_EXTENSIONS and stem:
        name = stem
        stem, _, extension = name.rpartition(".")
    if name in _SECRET_NAMES or (extension in _SECRET_EXTENSIONS and stem != name):
        return True
    if extension in _CONFIG_EXTENSIONS and "secret" in name:
        return True
    return _SECRET_PATTERN.fullmatch(name) is not None


def _is_allowed(path: str, allowed: tuple[str, ...], is_dir: bool) -> bool:
    """Tell whether the user's patterns match the path or one of its folders.

    A folder is also allowed if a pattern continues below it (`.aws/config`).
    """
    if not allowed:
        return False
    patterns = _compile(allowed)
    end = len(path)
    while end > 0:
        if patterns.verdict(path[:end], is_dir=is_dir or end < len(path)):
            return True
        end = path.rfind("/", 0, end)
    return is_dir and any(
        glob.casefold().lstrip("/").startswith(path + "/") for glob in allowed
    )


@lru_cache(maxsize=16)
def _compile(allowed: tuple[str, ...]) -> Patterns:
    return Patterns([glob.casefold() for glob in allowed])
