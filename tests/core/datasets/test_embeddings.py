from app.core.datasets.embeddings import add_embedding, earlier_folders
from app.core.platform.tables import Embedding
from app.core.runtime import Runtime
from tests.core.conftest import MakeDataset


def add(runtime: Runtime, dataset_id: str, backbone: str, fingerprint: str) -> None:
    with runtime.db.write() as session:
        add_embedding(
            session,
            dataset_id=dataset_id,
            backbone_key=backbone,
            fingerprint=fingerprint,
            folder=f"embeddings/{backbone}-{fingerprint}",
            rows=3,
        )


def test_the_newest_of_the_same_backbone_come_first(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    mine, other = make_dataset().id, make_dataset().id
    for age, fingerprint in enumerate("cba"):
        add(any_runtime, mine, "b", fingerprint)
        with any_runtime.db.write() as session:
            session.get_one(Embedding, (mine, "b", fingerprint)).created_at = age
    add(any_runtime, mine, "another", "d")
    add(any_runtime, other, "b", "e")
    add(any_runtime, mine, "b", "a")  # again

    with any_runtime.db.read() as session:
        found = earlier_folders(session, mine, "b", exclude="embeddings/b-b", limit=8)
        newest = earlier_folders(session, mine, "b", exclude="", limit=1)

    assert found == ["embeddings/b-a", "embeddings/b-c"]
    assert newest == ["embeddings/b-a"]
