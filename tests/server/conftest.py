"""A daemon of its own for each test that gives it no settings, and who asks it."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.dashboard import Page, signed_in
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
async def editor() -> AsyncIterator[Editor]:
    """A client of a daemon with the demo."""
    async with running(upstream="demo") as started:
        yield started


@pytest.fixture
async def page(editor: Editor) -> Page:
    """A session of the dashboard of that daemon."""
    return await signed_in(editor)


@pytest.fixture
async def client(fake: FakeUpstream) -> AsyncIterator[Editor]:
    """A client of a daemon whose upstream plays a script."""
    async with running(settings_for(fake.url)) as started:
        yield started
