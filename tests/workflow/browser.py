"""Headless Chromium, driven over its DevTools protocol through a pair of pipes; no package and no port."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--no-first-run",
)


class NoBrowser(Exception):
    """There is no Chromium here."""


class Browser:
    """A page of a Chromium that reaches no network; keeps the addresses that pages ask for, and the errors of their
    scripts.
    """

    def __init__(self, folder: Path, width: int = 1400, height: int = 1000) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise NoBrowser("needs Chromium, as Debian's package chromium has it")
        command = [
            program,
            *OPTIONS,
            f"--user-data-dir={folder}",
            f"--window-size={width},{height}",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ]
        (heard, self.write), (self.read, said) = os.pipe(), os.pipe()
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (heard, said)]

        def place() -> None:  # the browser reads from 3 and writes to 4
            os.dup2(given[0], 3)
            os.dup2(given[1], 4)

        self.process = subprocess.Popen(
            command,
            preexec_fn=place,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (heard, said, *given):
            os.close(end)
        self.number, self.rest, self.session = 0, b"", None
        self.asked_for: list[str] = []
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.write)
        os.close(self.read)
        self.process.terminate()
        self.process.wait(30)

    def call(self, method: str, **values: Any) -> Any:
        """Call a method of the protocol and return its result, noting the events that come before it."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": values} | (
            {"sessionId": self.session} if self.session else {}
        )
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer)

    def open(self, page: Path) -> None:
        self.call("Page.navigate", url=page.as_uri())
        self.until("document.readyState == 'complete'")

    def run(self, script: str) -> Any:
        """Return the value of an expression, of a promise when it is kept."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (script, answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true, a minute at most."""
        look = f"() => {{ try {{ return Boolean({script}); }} catch {{ return false; }} }}"
        waited = f"""new Promise(done => {{ const began = Date.now(), look = {look};
            (function again() {{
                look() || Date.now() - began > 60000 ? done(look()) : setTimeout(again, 20); }})(); }})"""
        assert self.run(waited), f"waited in vain for {script}"

    def click(self, text: str, where: str = "a, button") -> None:
        """Click the first element that shows a text."""
        self.until(
            f"[...document.querySelectorAll({json.dumps(where)})].find(each => each.innerText.trim() == "
            f"{json.dumps(text)})"
        )
        self.run(
            f"[...document.querySelectorAll({json.dumps(where)})].find(each => each.innerText.trim() == "
            f"{json.dumps(text)}).click()"
        )

    def text(self) -> str:
        return self.run("document.body.innerText")

    def picture(self, path: Path) -> Path:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
        return path

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.read, 1 << 20)
            assert more, "the browser has gone"
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Network.requestWillBeSent":
            self.asked_for.append(event["params"]["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(event["params"]["exceptionDetails"])[:500])
