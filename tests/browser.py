"""A headless Chromium for tests, driven over its DevTools protocol."""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

try:
    from websockets.sync.client import ClientConnection, connect
except ImportError:
    WEBSOCKETS = False
else:
    WEBSOCKETS = True

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)  # fmt: skip


def chromium() -> str | None:
    """Where Chromium is, or None."""
    return next(
        (
            p
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (p := shutil.which(name))
        ),
        None,
    )


def missing() -> str:
    """What a test in the browser lacks, as the reason to skip it; empty if nothing."""
    if not WEBSOCKETS:
        return "needs the package websockets"
    return "" if chromium() else "needs chromium"


@dataclass
class Tab:
    """One page, with what it complained about and what it asked the network for."""

    socket: ClientConnection
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _last: int = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command; its result. Events that come meanwhile are noted."""
        self._last += 1
        self.socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def open(self, path: Path, width: int, height: int = 900, phone: bool = False) -> None:
        """Opens a report at a window size and waits until its charts are drawn."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.documentElement?.dataset.ready === 'yes'")
        self.settle()

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"waited {seconds} s for {condition}; {self.complaints}")
            time.sleep(0.05)

    def settle(self) -> None:
        """Waits until bokeh has nothing left to draw."""
        self.wait("Bokeh.documents.every(d => d.is_idle)")
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def click(self, selector: str) -> None:
        """A real click of the mouse in the middle of an element."""
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        x, y = self.run(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(
                str(details.get("exception", {}).get("description") or details["text"])
            )
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "assert",
            "warning",
        ):
            self.complaints.append(" ".join(str(a.get("value")) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextlib.contextmanager
def tab() -> Iterator[Tab]:
    """A page that shares nothing with others but the browser."""
    port, path = _browser()
    with connect(f"ws://127.0.0.1:{port}{path}") as socket:
        browser = Tab(socket)
        own = browser.call("Target.createBrowserContext")
        target = browser.call("Target.createTarget", url="about:blank", **own)["targetId"]
        try:
            with connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=None) as page:
                yield Tab(page)
        finally:
            browser.call("Target.disposeBrowserContext", **own)


@cache
def _browser() -> tuple[str, str]:
    """The one browser of this process, started now; its port and address for debugging."""
    binary = chromium()
    if binary is None:
        raise RuntimeError("chromium is missing")
    home = Path(tempfile.mkdtemp(prefix="ssdlab-browser-"))
    process = subprocess.Popen(
        [binary, *FLAGS, f"--user-data-dir={home}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(_end, process, home)
    port_file = home / "DevToolsActivePort"
    end = time.monotonic() + 30
    while not (port_file.exists() and len(port_file.read_text().splitlines()) == 2):
        if time.monotonic() > end:
            raise TimeoutError("chromium did not start within 30 s")
        time.sleep(0.05)
    port, path = port_file.read_text().splitlines()
    return port, path


def _end(process: subprocess.Popen[bytes], home: Path) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(home, ignore_errors=True)
