"""Steps of a person who names twenty groups of photos and cleans each: in the browser, and with
commands. The folders of the photos say what a person would see.

A person names all groups on the wall, then opens one after the other, looks at the first outliers,
and moves up to three that do not belong there to a group of their kind. The commands do the same to
the same clustering, and must give the same sizes.
"""

import re
import shlex
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect
from typer.testing import CliRunner

from app.cli.main import app
from benchmarks.live import running_service
from benchmarks.sets import ENDINGS
from benchmarks.workbench_pages import Figure, opened
from benchmarks.workbench_rows import DRAWINGS
from temi_client import Cluster, TemiClient
from tests.waiting import wait_until

PHOTOS = 2_000
GROUPS = 20
_LOOKED_AT = 12  # outliers of a group
_MOVED = 3  # at most, of a group
_DATASET = "photos"
# Events of the browser itself: what a person would do with the hands.
_COUNT = """
window.hands = { keys: 0, clicks: 0 };
for (const [event, name] of [["keydown", "keys"], ["pointerdown", "clicks"]]) {
  addEventListener(event, (done) => done.isTrusted && (hands[name] += 1), { capture: true });
}
"""


@dataclass
class Steps:
    keys: int = 0
    clicks: int = 0
    commands: int = 0

    def __str__(self) -> str:
        lines = f"{self.commands} commands, " if self.commands else ""
        return f"{lines}{self.keys:,} keys and {self.clicks} clicks"


@dataclass
class Task:
    """What the groups are called, and which photos leave them."""

    clustering_id: str
    names: dict[int, str] = field(default_factory=dict)
    moves: list[tuple[int, int, list[str]]] = field(default_factory=list)  # from, to, images

    def target(self, kind: str, group: int) -> int | None:
        """The largest other group of a kind: names are given by size."""
        found = (g for g, name in self.names.items() if g != group and kind_of(name) == kind)
        return next(found, None)


def measure(browser: Browser, folder: Path, photos: Path | None) -> list[Figure]:
    folder.mkdir()
    archive = folder / "photos.zip"
    count = write_sample(photos or DRAWINGS, archive)
    with running_service(folder) as (url, _), TemiClient(url) as client:
        read = client.wait(client.upload_dataset(archive, name=_DATASET).id)
        job = client.wait(client.cluster(read.dataset_id, GROUPS, n_heads=8, steps=300).id)
        task = Task(job.result["clustering_id"])
        task.names = names_of(client, task.clustering_id)
        named, cleaned = label_in_browser(browser, url, client, task)
        after = sizes(client, task)
        undo_all(client, task)
        typed = label_by_commands(url, folder, task)
        assert sizes(client, task) == after, "the two ways differ"
    moved = sum(len(images) for _, _, images in task.moves)
    what = f"{len(task.names)} groups of {count:,} photos"
    both = Steps(named.keys + cleaned.keys, named.clicks + cleaned.clicks)
    return [
        Figure(f"{what}: named in the browser", str(named)),
        Figure(f"{what}: cleaned in the browser, {moved} photos moved", str(cleaned)),
        Figure(f"{what}: in the browser", str(both), "fewer than with commands"),
        Figure(f"{what}: with commands", str(typed)),
    ]


def write_sample(source: Path, target: Path) -> int:
    """As many photos of each kind, at most PHOTOS."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as sample:
        kinds: dict[str, list[str]] = defaultdict(list)
        for name in archive.namelist():
            if name.lower().endswith(ENDINGS):
                kinds[Path(name).parent.name].append(name)
        chosen = [name for names in kinds.values() for name in names[: PHOTOS // len(kinds)]]
        for name in chosen:
            sample.writestr(f"{Path(name).parent.name}/{Path(name).name}", archive.read(name))
    return len(chosen)


def kind_of(name: str) -> str:
    return name.rpartition(" ")[0] or name.split("/")[0]


def names_of(client: TemiClient, clustering_id: str) -> dict[int, str]:
    """For each group the kind of most of its photos, with a number; the largest group first."""
    found: dict[int, str] = {}
    numbers: Counter[str] = Counter()
    for cluster in sorted(_groups(client, clustering_id), key=lambda c: (-c.size, c.cluster_id)):
        images = client.cluster_images(clustering_id, cluster.cluster_id)
        kind = Counter(image.name.split("/")[0] for image in images).most_common(1)[0][0]
        numbers[kind] += 1
        found[cluster.cluster_id] = f"{kind} {numbers[kind]}"
    return found


def label_in_browser(
    browser: Browser, url: str, client: TemiClient, task: Task
) -> tuple[Steps, Steps]:
    with opened(browser, f"{url}/#/clusterings/{task.clustering_id}", _COUNT) as page:
        page.get_by_role("gridcell").first.wait_for()
        page.keyboard.press("r")
        for group, name in task.names.items():
            expect(page.get_by_label(f"Name of cluster {group}", exact=True)).to_be_focused()
            page.keyboard.type(name)
            page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        _wait_saved(client, task, len(task.names))
        named = _hands(page)
        _clean(page, client, task)
        cleaned = _hands(page)
    cleaned.keys -= named.keys
    cleaned.clicks -= named.clicks - 2  # the choice in the list of orders is two clicks
    return named, cleaned


def _clean(page: Page, client: TemiClient, task: Task) -> None:
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    _photos(page, next(iter(task.names.values()))).first.wait_for()
    with page.expect_response(re.compile("images[?].*sort=outlier")):
        page.get_by_label("Order", exact=True).select_option("outlier")
    for number, (group, name) in enumerate(task.names.items()):
        if number:
            page.keyboard.press("j")
        _photos(page, name).first.wait_for()
        for target, images in _wrong(page, task, group).items():
            _move(page, task, target, images)
            task.moves.append((group, target, [image for image, _ in images]))
            _wait_saved(client, task, len(task.names) + len(task.moves))


def _photos(page: Page, name: str) -> Locator:
    return page.get_by_role("listbox", name=f"Photos of {name}", exact=True).locator("img")


def _wrong(page: Page, task: Task, group: int) -> dict[int, list[tuple[str, str]]]:
    """Photos of another kind among the first outliers, by the group that they belong to."""
    own = kind_of(task.names[group])
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    shown = _photos(page, task.names[group]).evaluate_all("all => all.map((i) => [i.src, i.alt])")
    wrong = [(source, name) for source, name in shown[:_LOOKED_AT] if name.split("/")[0] != own]
    for source, name in wrong[:_MOVED]:
        target = task.target(name.split("/")[0], group)
        if target is not None:
            found[target].append((source.split("/")[-2], name))
    return found


def _move(page: Page, task: Task, target: int, images: list[tuple[str, str]]) -> None:
    for image, _ in images:
        page.locator(f'[role=option] img[src*="{image}"]').click()
    button = page.get_by_role("complementary", name="Move to a group").get_by_role(
        "button", name=re.compile(f"{re.escape(task.names[target])}$")
    )
    letter = button.locator("kbd").inner_text().strip() if button.count() else ""
    if letter:
        page.keyboard.press(letter)
        return
    page.keyboard.press("m")
    page.get_by_label("Name of the group").wait_for()
    page.keyboard.type(task.names[target])
    page.keyboard.press("Enter")


def label_by_commands(url: str, folder: Path, task: Task) -> Steps:
    """Runs the commands. An image id is not typed: a double click copies it, another pastes it."""
    steps = Steps()
    environment = {"TEMI_SERVER": url, "XDG_STATE_HOME": str(folder / "state")}
    for line in commands(task):
        shown = line.replace(" --out ", f" --out {folder}/")
        answer = CliRunner().invoke(app, shlex.split(shown)[1:], env=environment)
        assert answer.exit_code == 0, answer.output
        pasted = re.findall(r"img_\w+", line)
        steps.commands += 1
        steps.keys += len(line) - sum(map(len, pasted)) + 1  # Enter
        steps.clicks += 2 * len(pasted) + (".png" in line)  # opens the picture
    return steps


def commands(task: Task) -> Iterator[str]:
    yield f"temi clusterings clusters {_DATASET}"
    for group, name in task.names.items():
        yield f"temi clusterings contact-sheet {_DATASET} {group} --out {group}.png"
        yield f"temi clusterings rename {_DATASET} {group} '{name}'"
    for group in task.names:
        yield f"temi clusterings images {_DATASET} {group} --sort outlier --limit {_LOOKED_AT}"
        for source, target, images in task.moves:
            if source == group:
                yield f"temi clusterings move {_DATASET} {' '.join(images)} --to {target}"


def sizes(client: TemiClient, task: Task) -> dict[str, int]:
    return {cluster.label: cluster.size for cluster in _groups(client, task.clustering_id)}


def undo_all(client: TemiClient, task: Task) -> None:
    while client.clustering(task.clustering_id).undo is not None:
        client.undo(task.clustering_id)


def _groups(client: TemiClient, clustering_id: str) -> list[Cluster]:
    return [cluster for cluster in client.clusters(clustering_id, examples=0) if cluster.size]


def _wait_saved(client: TemiClient, task: Task, edits: int) -> None:
    def saved() -> bool:
        return client.clustering(task.clustering_id).revision == 1 + edits

    wait_until(saved, f"{edits} edits are saved", pause=0.1)


def _hands(page: Page) -> Steps:
    found = page.evaluate("hands")
    return Steps(found["keys"], found["clicks"])
