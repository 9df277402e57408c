"""From unlabeled photos to an export at a stated purity, by a simulated person over the API.

The person knows the class of each photo (its folder in the zip, which the service does not get),
names each group by its typical photos, answers the review, trains again with the answers, and
reviews until enough of the collection is proven pure.

.venv/bin/python -m benchmarks.labeling --images photos.zip --clusters 60
"""

import argparse
import csv
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from benchmarks.live import running_service
from benchmarks.sets import ENDINGS
from temi_client import Answer, Proof, ReviewQuestion, TemiClient

_EXAMPLES = 12  # typical photos of a group that the person sees
_PROOF: Proof = "collection"
_BATCH = 50  # answers per request
_SECONDS_PER_ANSWER = 1.5
_SECONDS_PER_NAME = 5.0


@dataclass
class Person:
    """Answers by the true classes, and counts the work."""

    classes: dict[str, str]  # by the name of the photo
    names: int = 0
    answers: int = 0
    numbers: dict[str, int] = field(default_factory=dict)  # the group of each class

    def name_groups(self, client: TemiClient, clustering_id: str) -> None:
        """Names each group by most of its typical photos; groups of one name are merged."""
        groups: dict[str, list[int]] = {}
        for cluster in client.clusters(clustering_id, examples=_EXAMPLES):
            if not cluster.examples:
                continue
            seen = Counter(self.classes[example.name] for example in cluster.examples)
            groups.setdefault(seen.most_common(1)[0][0], []).append(cluster.cluster_id)
        for name, numbers in groups.items():
            if len(numbers) > 1:
                client.merge_clusters(clustering_id, numbers, into=numbers[0])
            client.rename_cluster(clustering_id, numbers[0], name)
            self.names += len(numbers)
        self.numbers = {name: numbers[0] for name, numbers in groups.items()}

    def read_names(self, client: TemiClient, clustering_id: str) -> None:
        self.numbers = {c.label: c.cluster_id for c in client.clusters(clustering_id, examples=0)}

    def review(self, client: TemiClient, clustering_id: str, answers: int, purity: float) -> int:
        """Answers so many questions, or as many as there are; returns how many."""
        given = 0
        while given < answers:
            limit = min(_BATCH, answers - given)
            queue = client.review_queue(clustering_id, limit=limit, min_purity=purity, proof=_PROOF)
            if not queue.data:
                break
            stored = client.answer_review(clustering_id, [self.answer(q) for q in queue.data])
            if not stored.stored:
                break
            given += len(queue.data)
        self.answers += given
        return given

    def answer(self, question: ReviewQuestion) -> Answer:
        belongs_to = self.numbers.get(self.classes[question.name])
        if belongs_to == question.cluster_id:
            return question.answered("yes")
        if belongs_to is None:
            return question.answered("none")
        return question.answered("which", belongs_to)

    @property
    def minutes(self) -> float:
        return (self.names * _SECONDS_PER_NAME + self.answers * _SECONDS_PER_ANSWER) / 60


def without_folders(source: Path, target: Path) -> dict[str, str]:
    """Write the photos with numbers as names; returns the class of each."""
    classes = {}
    with zipfile.ZipFile(source) as given, zipfile.ZipFile(target, "w") as written:
        names = (name for name in given.namelist() if name.lower().endswith(ENDINGS))
        for number, name in enumerate(sorted(names)):
            path = PurePosixPath(name)
            classes[f"{number:06d}{path.suffix}"] = path.parent.name
            written.writestr(f"{number:06d}{path.suffix}", given.read(name))
    return classes


def true_purity(client: TemiClient, clustering_id: str, purity: float, person: Person) -> str:
    """Export above the purity, and compare with the true classes."""
    job = client.wait(client.export(clustering_id, "csv", min_purity=purity, proof=_PROOF).id)
    assert job.result is not None
    with tempfile.TemporaryDirectory() as folder:
        path = client.download_export(job.result["export_id"], Path(folder))
        rows = list(csv.DictReader(path.open()))
    right = sum(person.classes[row["name"]] == row["label"] for row in rows)
    share = 100 * len(rows) / len(person.classes)
    truth = f"{100 * right / len(rows):.1f} %" if rows else "-"
    return f"{len(rows):,} ({share:.0f} %) | {truth}"


def label_collection(
    client: TemiClient, archive: Path, person: Person, given: argparse.Namespace
) -> None:
    purity = given.purity
    started = time.monotonic()
    upload = client.wait(client.upload_dataset(archive, name="photos").id)
    assert upload.dataset_id is not None
    job = client.wait(client.cluster(upload.dataset_id, given.clusters or "auto").id)
    assert job.result is not None
    clustering_id = job.result["clustering_id"]
    machine = time.monotonic() - started

    def row(step: str) -> None:
        exported = true_purity(client, clustering_id, purity, person)
        work = f"{person.names} | {person.answers:,} | {person.minutes:.0f}"
        print(f"| {step} | {work} | {exported} |", flush=True)

    print("| after | names | answers | minutes of a person | exported | of them right |")
    print("|---|---|---|---|---|---|")
    person.name_groups(client, clustering_id)
    row("naming the groups")
    person.review(client, clustering_id, given.first, purity)
    row("a first review")
    started = time.monotonic()
    learned = client.cluster(upload.dataset_id, len(person.numbers), learn_from=clustering_id)
    job = client.wait(learned.id)
    assert job.result is not None
    clustering_id = job.result["clustering_id"]
    machine += time.monotonic() - started
    person.read_names(client, clustering_id)
    row("training again")
    while person.review(client, clustering_id, given.step, purity):
        row("more answers")
        report = client.review(clustering_id, min_purity=purity, proof=_PROOF)
        if report.finished_images >= given.share * report.images:
            break
    print(f"\nThe machine worked for {machine / 60:.1f} minutes.")
    print(client.review(clustering_id, min_purity=purity, proof=_PROOF).forecast.summary)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, required=True, help="zip with a folder per class")
    parser.add_argument("--clusters", type=int, help="number of groups; found if left out")
    parser.add_argument("--purity", type=float, default=0.95)
    parser.add_argument("--share", type=float, default=0.95, help="of the photos to be finished")
    parser.add_argument("--first", type=int, default=100, help="answers before training again")
    parser.add_argument("--step", type=int, default=500, help="answers between two rows")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        archive = Path(name) / "photos.zip"
        person = Person(without_folders(given.images, archive))
        with running_service(Path(name)) as (url, _), TemiClient(url, timeout=600) as client:
            label_collection(client, archive, person, given)


if __name__ == "__main__":
    main()
