"""End the service workers that another program left behind at byok's address.

Whoever had the port before byok, such as a web server in development or another user
of the machine, may have given the browser a service worker. The browser keeps it for
that address, and lets it answer in byok's place: with a page that looks like byok's,
even while byok runs. But it also asks the address for newer versions of the worker's
script. That request is answered with a script that ends the worker, and lets its pages
load again from byok. byok has no service worker of its own.
"""

from aiohttp.web import BaseRequest, Response

from byok.server.http.reply import COMMON

_END = b"""\
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil((async () => {
  const pages = await clients.matchAll({ type: "window" });
  await registration.unregister();
  for (const page of pages) page.navigate(page.url);
})()));
"""


def asks_for_worker(request: BaseRequest) -> bool:
    """Tell whether a browser asks for the script of a service worker."""
    return request.method == "GET" and request.headers.get("Service-Worker") == "script"


def end_worker() -> Response:
    """Answer with a script that ends the worker; the path does not matter."""
    return Response(
        body=_END,
        headers={**COMMON, "Content-Type": "text/javascript; charset=utf-8"},
    )
