"""The settings panel in a browser: its fields, and the button that saves them."""

from playwright.async_api import Locator, Page, expect

from tests.fakes.upstream import FakeUpstream


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


def field(page: Page, name: str) -> Locator:
    """Return the row of a setting."""
    return page.locator(f'[data-name="{name}"]')


def control(page: Page, name: str) -> Locator:
    """Return what a setting is entered by."""
    return field(page, name).locator("input, select, textarea").first


def save_button(page: Page) -> Locator:
    """Return the button that saves."""
    return page.get_by_role("button", name="Save", exact=True)


async def save(page: Page) -> None:
    """Save, and wait until the settings are in force."""
    await save_button(page).click()
    await expect(page.locator(".changes")).to_be_hidden()
    await expect(page.locator("#status")).to_have_text("Saved and in effect.")
