"""The vendor of the demo, which runs in the terminal of the user."""

import json
import socket
import struct
import time
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from byok.cli.demo_vendor import LARGE, Vendor, selling
from tests.fakes.patience import PATIENCE

BODY = json.dumps({"model": LARGE, "messages": [{"role": "user", "content": "Hi."}]})


def test_a_client_that_leaves_in_an_answer_writes_nothing_on_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    vendor = Vendor(time.time)
    with selling(vendor):
        url = f"{vendor.url}/chat/completions"
        port = urlsplit(url).port
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
            head = f"POST /v1 HTTP/1.1\r\nContent-Length: {len(BODY)}\r\n\r\n"
            sock.sendall(f"{head}{BODY}".encode())
            assert sock.recv(64)
            linger = struct.pack("ii", 1, 0)  # it is reset, not closed
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        with urlopen(url, BODY.encode(), PATIENCE) as answer:  # takes as long
            assert answer.read().endswith(b"data: [DONE]\n\n")
    assert capfd.readouterr() == ("", "")
