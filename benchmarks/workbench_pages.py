"""What the pages of the workbench do in a browser, measured inside of the page by its own clock."""

import re
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, Request

from benchmarks.workbench_rows import CLUSTERING, DATASET
from temi_client import TemiClient
from tests.waiting import wait_until

STATIC = Path(__file__).parents[1] / "app" / "static" / "assets"
_PATIENCE_MS = 60_000
_PAN_SECONDS = 5
_LIST = re.compile(r"/v1/datasets/[^/]+/images\?")
_THUMBNAIL = re.compile(r"/v1/images/[^/]+/thumbnail")

# From the start of the navigation until a click would meet the link of a dataset.
_NOTE_CLICKABLE = """
(function look() {
  const link = document.querySelector("article.card h3 a");
  const box = link?.getBoundingClientRect();
  const middle = box?.width ? [box.x + box.width / 2, box.y + box.height / 2] : [-1, -1];
  const hit = document.elementFromPoint(...middle);
  if (hit && link.contains(hit)) window.clickableAfter = performance.now();
  else requestAnimationFrame(look);
})();
"""

# One step of the list for each frame, from its first row to its last.
_SCROLL = """async (screens) => {
  const list = document.querySelector("[role=listbox] > :not(.measure)");
  const frame = () => new Promise(requestAnimationFrame);
  let [nodes, frames] = [0, 0];
  const started = performance.now();
  while (list.scrollTop + list.clientHeight < list.scrollHeight - 1) {
    list.scrollTop += screens * list.clientHeight;
    await frame();
    frames += 1;
    nodes = Math.max(nodes, document.querySelectorAll("*").length);
  }
  const seconds = (performance.now() - started) / 1000;
  return { nodes, frames, height: list.scrollHeight, seconds };
}"""

# After the next click: when the wall shows a card with this text, and when the answer came.
_NOTE_MERGE = """(wanted) => {
  window.merge = {};
  addEventListener("click", () => {
    const clicked = performance.now();
    new PerformanceObserver((list) => {
      const answer = list.getEntries().find((entry) => entry.name.endsWith("/operations"));
      if (answer) merge.answered = answer.responseEnd - clicked;
    }).observe({ type: "resource" });
    (function look() {
      const facts = [...document.querySelectorAll("[role=gridcell] .facts a")];
      const closed = !document.querySelector("dialog[open]");
      const shown = closed && facts.some((link) => link.textContent === wanted);
      // A frame later it is painted.
      if (shown) requestAnimationFrame(() => (merge.shown = performance.now() - clicked));
      else requestAnimationFrame(look);
    })();
  }, { capture: true, once: true });
}"""

# Counts the drawn points; reading a pixel waits until the software renderer has drawn them.
_NOTE_DRAWN = """
window.drawn = { points: 0 };
const draw = WebGL2RenderingContext.prototype.drawArrays;
WebGL2RenderingContext.prototype.drawArrays = function (mode, first, count) {
  draw.call(this, mode, first, count);
  drawn.points += count;
};
(function look() {
  const [data] = performance.getEntriesByName("map-data");
  const [begun] = performance.getEntriesByName("map-drawn");
  if (!data || !begun) return requestAnimationFrame(look);
  const gl = document.querySelector("canvas.dots").getContext("webgl2");
  const wait = () => gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  const since = () => (performance.now() - data.startTime) / 1000;
  wait();
  Object.assign(drawn, { first: since(), sample: drawn.points });
  const information = gl.getExtension("WEBGL_debug_renderer_info");
  drawn.renderer = gl.getParameter(information ? information.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  (function complete() {
    if (drawn.points < window.allPoints) return requestAnimationFrame(complete);
    wait();
    drawn.all = since();
  })();
})();
"""

# The mouse button is held: a move in each frame, farther than the canvas reaches beyond the frame.
_PAN = """async ([x, y, seconds]) => {
  const map = document.querySelector("[data-map]");
  const mouse = { pointerId: 1, pointerType: "mouse", bubbles: true };
  const times = [];
  const started = performance.now();
  for (let at = 0; performance.now() - started < seconds * 1000; at += 0.04) {
    const place = { clientX: x + 350 * Math.sin(at), clientY: y + 200 * Math.sin(at * 0.7) };
    map.dispatchEvent(new PointerEvent("pointermove", { ...mouse, ...place }));
    times.push(await new Promise(requestAnimationFrame));
  }
  return times.slice(1).map((time, index) => time - times[index]);
}"""


class Figure(NamedTuple):
    what: str
    measured: str
    aim: str = ""


@contextmanager
def opened(browser: Browser, address: str, script: str = "") -> Iterator[Page]:
    """A page in a profile of its own: nothing is cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(_PATIENCE_MS)
    if script:
        context.add_init_script(script)
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def start(browser: Browser, url: str, repeats: int) -> list[Figure]:
    """The first page, with an empty cache and with a full one."""
    first, again = [], []
    for _ in range(repeats):
        with opened(browser, url, _NOTE_CLICKABLE) as page:
            first.append(_clickable(page))
            page.reload()
            again.append(_clickable(page))
            page.locator("article.card h3 a").first.click()
            page.wait_for_url(re.compile("#/datasets/"))
    aim = "< 1 s"
    return [
        Figure("first page interactive, empty cache", _spread(first, "ms"), aim),
        Figure("first page interactive, again", _spread(again, "ms"), aim),
    ]


def _clickable(page: Page) -> float:
    _wait(page, "window.clickableAfter")
    return float(page.evaluate("window.clickableAfter"))


class Scrolled(NamedTuple):
    nodes: int  # of the document, at most
    frames: int
    height: int  # of the list, in pixels
    seconds: float


def scroll_through(page: Page, screens: float) -> Scrolled:
    """Scrolls the photos of a page to their end, by so many screens in each frame."""
    return Scrolled(**page.evaluate(_SCROLL, screens))


def _record(asked: list[str], request: Request) -> None:
    asked.append(request.url)


def pages_of_photos(addresses: list[str]) -> list[str]:
    """The requests for pages of a dataset's photos."""
    return [address for address in addresses if _LIST.search(address)]


def grid(browser: Browser, url: str, images: int) -> list[Figure]:
    """The whole grid twice: its scroll bar is dragged, and every screen is shown for a frame."""
    found = []
    for name, screens in (("dragged", 20.0), ("screen by screen", 0.9)):
        asked: list[str] = []
        with opened(browser, f"{url}/#/datasets/{DATASET}") as page:
            page.get_by_role("option").locator("img").first.wait_for()
            page.on("request", partial(_record, asked))
            seen = scroll_through(page, screens)
            page.locator(f'[aria-posinset="{images}"] img').wait_for()  # the last photo
            page.wait_for_load_state("networkidle")
        pages = len(pages_of_photos(asked))
        thumbnails = sum(1 for address in asked if _THUMBNAIL.search(address))
        others = len(asked) - pages - thumbnails
        requests = f"{pages} pages of the list, {thumbnails:,} thumbnails, {others} others"
        speed = f"{seen.frames / seen.seconds:.0f} ({seen.height:,} pixels in {seen.seconds:.0f} s)"
        found += [
            Figure(f"grid, {name}: DOM nodes at most", str(seen.nodes), "< 2,000"),
            Figure(f"grid, {name}: requests", requests, f"<= {-(-images // 200)} pages"),
            Figure(f"grid, {name}: frames a second", speed),
        ]
    return found


def merge(browser: Browser, url: str, repeats: int) -> list[Figure]:
    """The two largest groups become one on the wall; it is undone each time."""
    with TemiClient(url) as client:
        first, second = sorted((c.size for c in client.clusters(CLUSTERING)), reverse=True)[:2]
    shown, answered = [], []
    with opened(browser, f"{url}/#/clusterings/{CLUSTERING}") as page:
        cards = page.get_by_role("gridcell")  # the largest are first
        for _ in range(repeats):
            for place, size in enumerate((first, second)):
                cards.nth(place).filter(has_text=f"{size:,} photos").wait_for()
                cards.nth(place).locator(".photos").click()
            page.get_by_role("button", name="Merge 2 selected").click()
            confirm = page.get_by_role("button", name=re.compile("^Merge 2 groups"))
            confirm.wait_for()
            page.evaluate(_NOTE_MERGE, f"{first + second:,} photos")
            confirm.click()
            _wait(page, "merge.shown && merge.answered")
            times = page.evaluate("merge")
            shown.append(times["shown"])
            answered.append(times["answered"])
            with page.expect_response(re.compile("/operations$")):
                page.get_by_role("button", name="Undo").first.click()
    return [
        Figure(
            f"merge of {first:,} and {second:,} photos: shown", _spread(shown, "ms"), "< 300 ms"
        ),
        Figure(f"merge of {first:,} and {second:,} photos: saved", _spread(answered, "ms")),
    ]


def map_of(browser: Browser, url: str, points: int) -> list[Figure]:
    script = f"window.allPoints = {points};{_NOTE_DRAWN}"
    with opened(browser, f"{url}/#/clusterings/{CLUSTERING}/map", script) as page:
        _wait(page, "drawn.all")
        drawn = page.evaluate("drawn")
        gaps = _pan(page)
    whole = statistics.quantiles(gaps, n=20)
    return [
        Figure(
            f"map of {points:,}: data to first frame",
            f"{drawn['first']:.2f} s ({drawn['sample']:,} points; all after {drawn['all']:.2f} s)",
            "< 3 s",
        ),
        Figure(
            f"map of {points:,}: frames a second, panning",
            f"{1000 * len(gaps) / sum(gaps):.0f} (95 % of frames within {whole[-1]:.0f} ms)",
            ">= 30",
        ),
        Figure("renderer", drawn["renderer"]),
    ]


def _pan(page: Page) -> list[float]:
    box = page.locator("[data-map]").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    gaps: list[float] = page.evaluate(_PAN, [x, y, _PAN_SECONDS])
    page.mouse.up()
    return gaps


def size() -> list[Figure]:
    """Bytes as they are sent: a .gz file lies beside each file."""
    without, alone = script_bytes()
    return [
        Figure("JavaScript without the map", f"{without / 1000:.0f} kB gzipped", "< 250 kB"),
        Figure("JavaScript with the map", f"{(without + alone) / 1000:.0f} kB gzipped", "< 400 kB"),
    ]


def script_bytes() -> tuple[int, int]:
    """Gzipped bytes of all scripts of the built page but the map's, and of the map's."""
    scripts = {path.name: path.stat().st_size for path in STATIC.glob("*.js.gz")}
    assert scripts, f"the page is not built: {STATIC} has no scripts; run `make web`"
    of_map = sum(count for name, count in scripts.items() if name.startswith("Map-"))
    return sum(scripts.values()) - of_map, of_map


def _wait(page: Page, condition: str) -> None:
    # Not wait_for_function: the policy of the page forbids what it does.
    wait_until(lambda: page.evaluate(condition), condition, pause=0.05)


def _spread(values: list[float], unit: str) -> str:
    return f"{statistics.median(values):.0f} {unit} ({min(values):.0f} to {max(values):.0f})"
