"""The daemon as a process: no key and no token anywhere they do not belong, exits."""

import json
import signal
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from byok.core.daemon.token import rotate_token
from tests.fakes.commands import Cli
from tests.fakes.official import ENVIRON, TOKEN, FakeOfficial, whole
from tests.fakes.program import KEY, configure, serving
from tests.fakes.raw import ask, filled, request
from tests.fakes.upstream import FakeUpstream, Script, answer
from tests.fakes.values import forms


def body(**fields: str) -> bytes:
    return json.dumps({"message": "Hello.", **fields}).encode()


REQUESTS = [
    request(body=body()),
    request(target=b"/chat-stream", body=body()),
    request(target=b"/get-models"),
    request(target=b"/find-missing"),
    request(token=b"Authorization: Bearer KEY"),
    request(token=b"Authorization: Bearer TOKENx"),
    request(token=b"", target=b"/chat?token=TOKEN&key=KEY"),
    request(token=b"Authorization: Bearer TOKEN KEY\x01"),
    request(b"X-Api-Key: KEY\x00"),
    request(b"KEY TOKEN"),
    request(b"X-Api-Key: KEY", b"Authorization: Bearer TOKEN"),
    request(target=b"/no/such/KEY/TOKEN"),
    request(target=b"/no/such/QUOTED?token=TOKEN"),
    request(target=b"/../KEY"),
    request(method=b"TOKEN"),
    request(version=b"HTTP/9.9-KEY"),
    request(host=b"Host: KEY.TOKEN"),
    request(kind=b"Content-Type: KEY; TOKEN"),
    request(b"Expect: KEY"),
    request(b"Origin: http://KEY"),
    request(body=b'{"KEY'),
    request(body=body(model=f"byok:{KEY}:m")),
    request(body=body(model=KEY)),
    request(target=b"/batch-upload", body=body(blobs=KEY)),
    request(target=b"/get-credit-info", body=b"{}"),
    request(b"X-Mode: TOKEN", b"X-Request-Id: KEY", target=b"/get-credit-info"),
]


@pytest.mark.case("B119")
async def test_canary_key_and_token_are_neither_sent_nor_written(
    tmp_path: Path, fake: FakeUpstream, official: FakeOfficial
) -> None:
    home = tmp_path / "home"
    account = f'[routing.official]\nbase_url = "{official.url}"\naccount = "official"\n'
    configure(home, fake.url, account)
    official.expect("/get-credit-info", script=whole(f"bad {TOKEN}".encode(), 401))
    echo = json.dumps({"error": {"message": f"Incorrect key: Bearer {KEY}."}})
    refused = Script([echo.encode()], 401, {"Content-Type": "application/json"})
    midway = Script([b"data: " + echo.encode() + b"\n\n"])
    replies: list[bytes] = []
    async with serving(home, "--upstream", "fake", env=ENVIRON) as program:
        first = program.token_file.read_text().strip()
        tokens = [first, rotate_token(program.token_file)]
        for script in (answer("Hi."), refused, midway):
            fake.play(script)
            for token in reversed(tokens):
                for data in REQUESTS:
                    ready = data.replace(b"KEY", KEY.encode())
                    ready = ready.replace(b"QUOTED", quote(KEY, safe="").encode())
                    reply = await ask(program.port, filled(ready, program.port, token))
                    replies += [reply.body, repr(reply.headers).encode()]
        proc = Path(f"/proc/{program.process.pid}/cmdline")
        command = proc.read_bytes() if proc.exists() else b""
        code, out, err = await program.ended(signal.SIGTERM)
    assert code == 0
    assert {h["Authorization"] for h in fake.headers} == {f"Bearer {KEY}"}
    assert b"Incorrect key: Bearer [redacted]" in b"".join(replies)
    assert {h["authorization"] for h in official.headers} == {f"Bearer {TOKEN}"}
    to_official = b"".join(official.raw)
    to_upstream = b"".join(fake.bodies) + repr(fake.headers).encode()
    assert not any(form in to_upstream for form in forms(TOKEN))
    assert not any(form in to_official for s in (KEY, *tokens) for form in forms(s))
    places = {
        "stdout": out,
        "stderr": err,
        "command line": command,
        "replies": b"\n".join(replies),
        **{
            str(path.relative_to(home)): path.read_bytes()
            for path in home.rglob("*")
            if path.is_file() and path != program.token_file
        },
    }
    assert "state/log/byok.log" in places
    assert b"unknown path" in err
    assert b"Traceback" not in err
    found = [
        (place, form)
        for secret in (KEY, TOKEN, *tokens)
        for form in forms(secret)
        for place, content in places.items()
        if form in content
    ]
    assert found == []


async def test_canary_home_is_private(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", "--upstream", "demo") as program:
        modes: dict[str, int] = {}
        for path in (program.home, *program.home.rglob("*")):
            with suppress(FileNotFoundError):  # files are replaced while byok runs
                modes[str(path.relative_to(program.home))] = path.stat().st_mode & 0o077
    assert {"state/token", "state/daemon.lock", "state/log/byok.log"} <= set(modes)
    assert set(modes.values()) == {0}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[server]\nprot = 1\n", "Did you mean port?"),
        (f'[upstreams.fake]\nbase_url = "ftp://{KEY}/v1"\n', "upstreams.fake.base_url"),
        (f'{KEY} = "x', "not valid TOML"),
        (f'[upstreams.fake]\napi_key = "{KEY}"\n', "upstreams.fake.api_key"),
    ],
    ids=["unknown key", "scheme", "no TOML", "key in the settings"],
)
@pytest.mark.case("B97", "B58")
def test_invalid_settings_exit_with_78_and_show_no_value(
    cli: Cli, clean_environment: Path, config: str, words: str
) -> None:
    clean_environment.mkdir(mode=0o700)
    (clean_environment / "config.toml").write_text(config)
    done = cli("serve")
    assert (done.code, done.out) == (78, "")
    assert words in done.err
    assert KEY not in done.err
