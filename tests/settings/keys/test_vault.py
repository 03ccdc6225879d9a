"""The encrypted key file; all tests but one derive its key with a cheap scrypt."""

import base64
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from byok.core.errors import ConfigError
from byok.settings.keys import vault as vault_module
from byok.settings.keys.vault import Vault

KEY, OTHER = "sk-canary0123456789", "sk-other0123456789"
ENTRY = "openai@https://api.openai.com"
PHRASE = {"BYOK_VAULT_PASSPHRASE": "correct horse"}
REAL_COST = vault_module._N
needs_modes = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive keys in a millisecond."""
    monkeypatch.setattr(vault_module, "_N", 2**8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A vault that holds KEY."""
    path = tmp_path / "data" / "vault.json"
    Vault(path, PHRASE).set(ENTRY, KEY)
    return path


def refusal(vault: Vault) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        vault.get(ENTRY)
    for secret in (KEY, *PHRASE.values()):
        assert secret not in caught.value.sentence
    return caught.value


def test_vault_keeps_keys_in_a_private_encrypted_file(path: Path) -> None:
    vault = Vault(path, PHRASE)
    assert vault.get(ENTRY) == KEY
    vault.set("groq@https://api.groq.com", OTHER)
    content = path.read_bytes()
    for secret in (KEY, OTHER, "openai", "groq"):
        assert secret.encode() not in content
        assert base64.b64encode(secret.encode()).rstrip(b"=") not in content
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    assert vault.remove(ENTRY) is True
    assert vault.remove(ENTRY) is False
    again = Vault(path, PHRASE)
    assert again.get(ENTRY) is None
    assert again.get("groq@https://api.groq.com") == OTHER


def test_keys_that_are_stored_at_once_are_all_kept(path: Path) -> None:
    """The page and a command may each store one, in a second of key derivation."""
    names = [f"vendor-{number}" for number in range(8)]
    begin = Barrier(len(names))

    def store(name: str) -> None:
        begin.wait()
        Vault(path, PHRASE).set(name, KEY)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(store, names))
    assert all(Vault(path, PHRASE).get(name) == KEY for name in (ENTRY, *names))


def test_vault_writes_have_a_salt_and_a_nonce_of_their_own(path: Path) -> None:
    before = json.loads(path.read_text())
    Vault(path, PHRASE).set(ENTRY, KEY)
    after = json.loads(path.read_text())
    assert all(before[part] != after[part] for part in ("salt", "nonce", "data"))


@pytest.mark.slow
def test_vault_file_is_aes_gcm_under_an_expensive_scrypt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "_N", REAL_COST)
    path = tmp_path / "vault.json"
    Vault(path, PHRASE).set(ENTRY, KEY)
    sealed = {k: base64.b64decode(v) for k, v in json.loads(path.read_text()).items()}
    assert (len(sealed["salt"]), len(sealed["nonce"])) == (16, 12)
    scrypt = Scrypt(salt=sealed["salt"], length=32, n=2**17, r=8, p=1)
    aead = AESGCM(scrypt.derive(b"correct horse"))
    plain = aead.decrypt(sealed["nonce"], sealed["data"], b"byok")
    assert json.loads(plain) == {ENTRY: KEY}


def test_vault_passphrase_that_is_wrong_is_reported(path: Path) -> None:
    vault = Vault(path, {"BYOK_VAULT_PASSPHRASE": "wrong"})
    assert "passphrase is wrong" in str(refusal(vault))


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> dict[str, str]:
    file = folder / "passphrase"
    file.write_bytes(content)
    file.chmod(mode)
    return {"BYOK_VAULT_KEY_FILE": str(file)}


def test_vault_passphrase_may_come_from_a_key_file(path: Path, tmp_path: Path) -> None:
    assert Vault(path, key_file(tmp_path, b"correct horse\n")).get(ENTRY) == KEY


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        (b"", 0o600, "empty"),
        (b"\xff\xfe", 0o600, "cannot be read"),
        pytest.param(b"correct horse", 0o640, "other users", marks=needs_modes),
    ],
)
def test_vault_key_file_without_a_private_passphrase_is_refused(
    path: Path, tmp_path: Path, content: bytes, mode: int, told: str
) -> None:
    assert told in str(refusal(Vault(path, key_file(tmp_path, content, mode))))


@needs_modes
def test_a_vault_that_others_can_read_is_refused(path: Path) -> None:
    path.chmod(0o640)
    for vault in (Vault(path, PHRASE), Vault(path, {})):
        assert "chmod 600" in refusal(vault).hint


@pytest.mark.parametrize(
    "content", ["", "[]", '{"salt": 1, "nonce": 2, "data": 3}', "\0" * 100], ids=repr
)
def test_what_is_no_vault_is_called_damaged(path: Path, content: str) -> None:
    path.write_text(content)
    assert f"{path} is damaged" in str(refusal(Vault(path, PHRASE)))


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [("nonce", "", "is damaged"), ("nonce", "AAAAAAAAAAAAAAAA", "passphrase is wrong")],
)
def test_a_changed_vault_is_not_opened(
    path: Path, part: str, value: str, told: str
) -> None:
    changed = {**json.loads(path.read_text()), part: value}
    path.write_text(json.dumps(changed))
    assert told in str(refusal(Vault(path, PHRASE)))


def test_a_damaged_vault_is_never_overwritten(path: Path) -> None:
    path.write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        Vault(path, PHRASE).set(ENTRY, OTHER)
    assert path.read_text() == "{"
