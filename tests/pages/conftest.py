"""Headless Chromium over the DevTools pipe (tests are skipped without it), and a strict parser of pages."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-extensions --remote-debugging-pipe"


@dataclass
class Visit:
    """Events while a page was open."""

    messages: list[str] = field(default_factory=list)  # console messages, errors, policy violations
    requests: list[str] = field(default_factory=list)  # requested URLs, including the page's own file


class Browser:
    """One page of a browser: open a file, run a script in it, press keys, take a picture."""

    def __init__(self, program: str, folder: Path) -> None:
        commands, replies = os.pipe(), os.pipe()
        shell = f'exec "$0" {OPTIONS} --user-data-dir="$1" about:blank 3<&{commands[0]} 4>&{replies[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, program, str(folder)], pass_fds=(commands[0], replies[1]), stderr=subprocess.DEVNULL
        )
        os.close(commands[0])
        os.close(replies[1])
        self._writing, self._reading = os.fdopen(commands[1], "wb"), os.fdopen(replies[0], "rb")
        self._ids, self._buffer = itertools.count(1), b""
        self._session = ""
        self.visit = Visit()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._ids)
        request = {"id": number, "method": method, "params": parameters}
        self._writing.write(
            json.dumps(request | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        self._writing.flush()
        while True:
            message = self._receive()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        """The next message; requests and console messages are recorded in `visit`."""
        while b"\0" not in self._buffer:
            more = os.read(self._reading.fileno(), 1 << 20)
            assert more, "the browser has exited"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.visit.requests.append(message["params"]["request"]["url"])
            case "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.visit.messages.append(json.dumps(message["params"]))
        return message

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False) -> Visit:
        """Load a page and wait until it is drawn."""
        self.visit = Visit()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._receive().get("method") != "Page.loadEventFired":
            pass
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.visit

    def evaluate(self, script: str) -> Any:
        """The result of a script; promises are awaited."""
        response = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return response["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, ord(key[0].upper()))
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def save_screenshot(self, path: Path, whole: bool = True) -> None:
        """Write the page as PNG."""
        response = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(response["data"]))

    def close(self) -> None:
        """Stop the browser."""
        self._writing.close()
        self._reading.close()
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium here")
    opened = Browser(program, tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails on anything that could run, load or link outside."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._raw = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        values = {name: value or "" for name, value in attributes}
        self.elements.append((tag, values))
        assert not [name for name in values if name.startswith("on") or name in ("style", "action", "formaction")], (
            values
        )
        assert values.get("href", "#").startswith("#"), values
        assert values.get("src", "data:image/svg+xml;base64,").startswith("data:image/svg+xml;base64,"), tag
        self._raw = tag if tag in ("style", "script") else self._raw

    def handle_endtag(self, tag: str) -> None:
        self._raw = "" if tag == self._raw else self._raw

    def handle_data(self, data: str) -> None:
        self.text += "" if self._raw else data

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of each element with this tag."""
        return [attributes for name, attributes in self.elements if name == tag]

    def check(self, scripts: int = 1) -> None:
        """Assert what must hold for every page."""
        ids = [values["id"] for _, values in self.elements if "id" in values]
        assert len(ids) == len(set(ids))
        assert {link["href"].removeprefix("#") for link in self.all("a")} <= set(ids)
        assert {values["aria-labelledby"] for _, values in self.elements if "aria-labelledby" in values} <= set(ids)
        assert len(self.all("script")) == scripts and len(self.all("h1")) == 1
        assert all(image.get("alt") for image in self.all("img"))
        assert all(cell.get("scope") for cell in self.all("th"))
        assert "default-src 'none'" in next(meta["content"] for meta in self.all("meta") if "http-equiv" in meta)
        levels = [int(tag[1]) for tag, _ in self.elements if tag in ("h1", "h2", "h3", "h4")]
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


ALLOWED = set(
    "a article b bdi body br caption circle code details div dl dt dd figcaption figure footer h1 h2 h3 h4 head header "
    "html img input kbd label li line main mark meta nav option output p polyline pre rect script section select small "
    "span strong style summary sup svg table tbody td text th thead title tr ul".split()
)


@pytest.fixture(scope="session")
def parsed() -> type[Page]:
    return Page
