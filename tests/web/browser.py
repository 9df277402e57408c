"""Chromium by Playwright: opened pages record what must not happen in them."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.built_page import WEB
from tests.waiting import LONG_SECONDS

PATIENCE_MS = 1000 * LONG_SECONDS
_AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
_OPTIONS = (
    *("--no-sandbox", "--disable-background-networking", "--disable-component-update"),
    # WebGL without a GPU
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
    # the page around it is drawn without: a third less processor time
    *("--disable-gpu-compositing", "--disable-gpu-rasterization"),
    # no network but this machine
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)
_READS_BACK = "GPU stall due to ReadPixels"  # how the map gets onto a page that is drawn so
_WATCH_POLICY = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""
_RUN_AXE = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map((rule) =>
    `${rule.id}: ${rule.help}: ${rule.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's Chromium, otherwise the one that Playwright has installed."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_OPTIONS))
        expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


class Visits:
    """Opens pages of a service, each in a browser profile of its own."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self._open = ExitStack()
        self._allowed: list[str] = []
        self._seen: list[str] = []

    def open(self, view: str = "#/", **options: Any) -> Page:
        """Opens a view, such as `#/datasets/ds_1`; `options` are those of a browser context."""
        page = self.profile(**options).new_page()
        page.goto(f"{self._url}/{view}")
        return page

    def profile(self, **options: Any) -> BrowserContext:
        size = {"width": 1280, "height": 800}
        context = self._browser.new_context(**{"viewport": size, **options})
        self._open.callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(_WATCH_POLICY)
        context.on("weberror", lambda error: self._seen.append(f"error: {error.error}"))
        context.on("console", self._note_message)
        context.on("request", lambda request: self._note_request(request.url))
        return context

    def allow(self, *patterns: str) -> None:
        """Console messages that a test expects, such as `status of 409`."""
        self._allowed += patterns

    def close(self) -> None:
        """Asserts that the pages were calm."""
        self._open.close()
        bad = [text for text in self._seen if not any(re.search(p, text) for p in self._allowed)]
        assert not bad, "\n".join(bad)

    def _note_message(self, message: Any) -> None:
        if message.type in ("error", "warning") and _READS_BACK not in message.text:
            self._seen.append(f"{message.type}: {message.text}")

    def _note_request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("blob", "data") and not url.startswith(self._url):
            self._seen.append(f"request to another host: {url}")


def violations(page: Page) -> list[str]:
    """What axe finds wrong with the page as it is now."""
    if not page.evaluate("'axe' in window"):
        # Through the debugger: the page's policy allows no other script.
        page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(_RUN_AXE)
    return found
