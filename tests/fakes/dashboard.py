"""The page of the dashboard, signed in, as far as HTTP goes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.fakes.daemon import Answer, Editor
from tests.fakes.upstream import FakeUpstream

BACKGROUND = {"X-Byok-Background": "1"}


@dataclass
class Page:
    """A session of the dashboard; it asks as the page does."""

    editor: Editor
    token: str
    language: str = "en"

    async def call(self, name: str, body: Any = None) -> Any:
        """Ask for something and return the object; anything but 200 is a failure."""
        answer = await self.raw(name, body)
        assert answer.status == 200, answer.raw
        return answer.json

    async def refused(self, name: str, body: Any = None) -> tuple[int, str]:
        """Ask for something that is refused; return the status and the error's code."""
        answer = await self.raw(name, body)
        return answer.status, answer.json["error"]["code"]

    async def raw(
        self, name: str, body: Any = None, *, background: bool = False
    ) -> Answer:
        """Ask for something and return the answer as it came."""
        async with self.opened(name, body, background=background) as response:
            return Answer(response.status, response.headers, await response.read())

    @asynccontextmanager
    async def opened(
        self, name: str, body: Any = None, *, background: bool = False
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for something and give the answer to read from, such as a stream."""
        url = self.editor.daemon.url
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Origin": url,
            "Sec-Fetch-Site": "same-origin",
            "Accept-Language": self.language,
            **(BACKGROUND if background else {}),
        }
        data = json.dumps({} if body is None else body).encode()
        path = f"{url}/ui/api/{name}"
        async with self.editor.http.post(path, data=data, headers=headers) as response:
            yield response


async def make_code(editor: Editor) -> str:
    """Return a code for one sign-in, as `byok dashboard` gets it."""
    answer = await editor.post("/byok/dashboard-code", {})
    return str(answer.json["code"])


async def signed_in(editor: Editor) -> Page:
    """Open a session of the dashboard."""
    code = await make_code(editor)
    opened = await Page(editor, "").call("sign-in", {"code": code})
    return Page(editor, opened["token"])


def text_for(fake: FakeUpstream) -> str:
    """Return a settings file with comments and a secret."""
    return f"""# mine
[upstreams.fake]  # the only one
base_url = "{fake.url}"
model = "m"
headers = {{ X-Team = "secret-of-the-team" }}

# how it answers
[chat]
temperature = 0.5 # not too wild
"""


def age_confirmation(page: Page) -> None:
    """Let the last code of the only session be older than a change may have."""
    sessions = page.editor.daemon.sessions
    [(name, (begun, used, confirmed))] = sessions.export().items()
    sessions.adopt({name: [begun, used, confirmed - 900]})
