"""The same things done on this machine and on an S3-compatible server, and what a store does that
a disk does not."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
import zstandard

from job.errors import InputError, UsageError
from job.lines import LineFinder
from job.read import plan_inputs, read_slice
from job.read.inputs import find_files
from job.run_folder import RunFolder
from job.storage import store
from job.storage.place import Place
from job.storage.store import store_words
from job.write import appearing, write_atomic
from tests.job.cloud import BUCKET, cloud_folder, cloud_server, keys
from tests.job.reading import REFERENCE
from tests.object_store import SECRET, Fault, ObjectStore, well

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with cloud_server() as server:
        yield server


@pytest.fixture
def cloud(server: ObjectStore, request: pytest.FixtureRequest) -> Iterator[Place]:
    with cloud_folder(server, request) as folder:
        yield folder


@pytest.fixture(params=["local", "cloud"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place.of(tmp_path) if request.param == "local" else request.getfixturevalue("cloud")


def test_what_is_written_is_found_alike(root: Place) -> None:
    folder = root / "day" / "results"
    assert not folder.exists()
    assert folder.iterdir() == []
    for name in ("b.parquet", "a.parquet", "c.txt"):
        write_atomic(folder / name, name)
    assert [place.name for place in folder.iterdir()] == ["a.parquet", "b.parquet", "c.txt"]
    assert folder.glob("*.parquet") == [folder / "a.parquet", folder / "b.parquet"]
    assert [place.name for place in (root / "day").iterdir()] == ["results"]
    assert (folder / "c.txt").read_bytes() == b"c.txt"
    assert (folder / "c.txt").look().size == 5
    assert (folder.is_dir(), folder.is_file(), folder.parent) == (True, False, root / "day")
    assert ((folder / "c.txt").is_dir(), (folder / "c.txt").is_file()) == (False, True)
    with pytest.raises(FileNotFoundError):
        (folder / "d").read_bytes()


def test_what_is_removed_is_gone_and_may_be_gone_before(root: Place) -> None:
    for name in ("a", "b/c", "b/d/e"):
        write_atomic(root / "x" / name, name)
    (root / "x" / "a").unlink()
    (root / "x" / "a").unlink()
    assert [place.name for place in (root / "x").iterdir()] == ["b"]
    (root / "x" / "b").rmtree()
    (root / "x" / "b").rmtree()
    assert not (root / "x" / "b" / "d" / "e").exists()


def test_a_name_can_hold_what_keys_and_file_names_can(root: Place) -> None:
    for name in ("a b.txt", "日志#1?.txt", "50%41.txt"):
        write_atomic(root / name, name)
        assert Place.of((root / name).uri).read_bytes() == name.encode()
    assert sorted(place.name for place in root.iterdir()) == ["50%41.txt", "a b.txt", "日志#1?.txt"]


def test_a_file_appears_when_the_block_ends_and_not_before(root: Place) -> None:
    target = root / "new" / "a.txt"
    with appearing(target) as file:
        file.write(b"half")
        assert not target.exists()
    assert target.read_bytes() == b"half"
    with pytest.raises(ZeroDivisionError), appearing(target) as file:
        file.write(bytes(1 // (file.write(b"other") - 5)))
    assert target.read_bytes() == b"half"
    assert target.parent.iterdir() == [target]


def test_a_small_object_is_one_request(server: ObjectStore, cloud: Place) -> None:
    write_atomic(cloud / "a", b"x" * 1_000_000)
    assert server.requests == [f"PUT /{BUCKET}/{cloud.path}/a"]


@pytest.mark.parametrize("part", [1, 2])
def test_a_large_object_is_whole_or_not_there(server: ObjectStore, cloud: Place, part: int) -> None:
    """A part that the store refuses made `pyarrow` finish the object without it."""

    def refuse(method: str, path: str) -> Fault | None:
        return (403, "AccessDenied") if f"partNumber={part}&" in path else None

    old, new = b"o" * 6_000_000, b"n" * 11_000_000
    write_atomic(cloud / "a", old)
    server.mood = refuse
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        write_atomic(cloud / "a", new)
    assert server.get(f"{BUCKET}/{cloud.path}/a") == old
    server.mood = well
    write_atomic(cloud / "a", new)
    assert server.get(f"{BUCKET}/{cloud.path}/a") == new
    assert keys(server, cloud) == ["a"]


def test_a_place_is_sent_and_shown_without_what_opens_it(cloud: Place) -> None:
    place = Place.of("s3://bucket/a/b?region=eu-west-1&endpoint_override=store:9000")
    assert str(place) == "s3://bucket/a/b"
    assert Place.of(place.uri) == place
    write_atomic(cloud / "a", "x")
    sent = pickle.dumps(cloud / "a")
    assert SECRET.encode() not in sent
    assert pickle.loads(sent).read_bytes() == b"x"  # noqa: S301 (our own)


def fill(root: Place) -> None:
    for name, text in {
        "logs/app/a.log": "2024-03-05 14:30:00 INFO started\n2024-03-05 14:30:01 ERROR gone\n" * 40,
        "logs/app/.hidden": "x\n",
        "logs/web/b.jsonl": '{"text": "no answer", "n": 12345678901234567890}\n' * 60,
        "logs/c.csv": 'id,text\n1,"two\nlines"\n2,one\n',
        "other/d.log": "2024-03-05 14:30:00 INFO elsewhere\n",
    }.items():
        write_atomic(root / name, text)
    write_atomic(
        root / "logs/app/a.gz", gzip.compress(b"2024-03-05 14:30:00 INFO packed\n" * 9, mtime=0)
    )
    packed = zstandard.compress(b'{"text": "packed"}\n' * 9)
    write_atomic(root / "logs/web/b.zst", packed)


@pytest.mark.parametrize(
    "given",
    [
        "logs",
        "logs/",
        "logs/c.csv",
        "logs/*",
        "logs/*/*.log",
        "logs/**/*.*",
        "logs/[aw]*/[ab].??*",
        "logs/.hid*",
        "logs/app/.hidden",
        "other/d.log",
    ],
)
def test_an_input_holds_the_same_files_and_records_wherever_it_is(
    given: str, cloud: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = Place.of(tmp_path)
    fill(here)
    fill(cloud)

    def understood(base: str) -> list[object]:
        try:
            made = plan_inputs(
                [f"{base}{given}"], reference=REFERENCE, zone=UTC, slice_bytes=700
            ).files
        except InputError as error:
            return [str(error).replace(base, "")]
        return [
            (
                file.source.removeprefix(f"{cloud}/"),
                file.fingerprint,
                len(file.slices),
                [getattr(row, "value", row) for part in file.slices for row in read_slice(part)],
            )
            for file in made
        ]

    assert understood(f"{cloud}/") == understood("")


def test_ids_of_records_do_not_depend_on_where_a_folder_is(cloud: Place, tmp_path: Path) -> None:
    fill(cloud)
    fill(Place.of(tmp_path))
    there, here = (find_files([f"{root}/logs"])[0] for root in (cloud, tmp_path))
    assert [file.name for file in there] == [file.name for file in here]
    assert "logs/app/a.log" in [file.name for file in there]


def test_what_runs_have_written_is_not_read(cloud: Place) -> None:
    fill(cloud)
    for name in ("run.json", "ledger.json", "results/x.log"):
        write_atomic(cloud / "logs" / "retro" / name, "{}\n")
    found, ignored = find_files([f"{cloud}/logs"], [cloud / "logs" / "web"])
    assert [file.name for file in found] == ["logs/app/a.gz", "logs/app/a.log", "logs/c.csv"]
    assert ignored == 1 + 3 + 2
    with pytest.raises(InputError, match="is also --out"):
        find_files([f"{cloud}/logs/"], [cloud / "logs"])


def test_a_bucket_can_be_an_input(server: ObjectStore) -> None:
    server.make_bucket("day")
    server.put("day/a.log", b"2024-03-05 14:30:00 INFO started\n")
    assert [file.name for file in find_files(["s3://day"])[0]] == ["day/a.log"]
    assert [file.name for file in find_files(["s3://day/*.log"])[0]] == ["s3://day/a.log"]


def test_lines_are_found_in_objects(cloud: Place) -> None:
    data = b"first\nsecond\n\nfourth"
    write_atomic(cloud / "a.log", data)
    known = {"source": "a", "path": (cloud / "a.log").uri, "size": len(data)}
    assert LineFinder([known])("a", data.index(b"fourth")) == 4
    assert LineFinder([known | {"size": 1}])("a", 0) is None
    assert LineFinder([known | {"path": f"{cloud}/b.log"}])("a", 0) is None


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ((403, "AccessDenied"), "check AWS_ACCESS_KEY_ID"),
        ((403, "SignatureDoesNotMatch"), "check AWS_ACCESS_KEY_ID"),
        ((503, "SlowDown"), "the same command goes on from here"),
        ((500, "InternalError"), "the same command goes on from here"),
        ((400, "Oddity"), "the store failed at PutObject"),
    ],
)
def test_what_a_store_answers_is_told_with_what_to_do(
    server: ObjectStore, cloud: Place, monkeypatch: pytest.MonkeyPatch, fault: Fault, words: str
) -> None:
    monkeypatch.setattr(store, "ATTEMPTS", 1)
    store._open.cache_clear()
    server.mood = lambda method, path: fault
    with pytest.raises(OSError, match="AWS Error") as caught:
        write_atomic(cloud / "a", "x")
    said = store_words(caught.value)
    assert said is not None
    assert said.startswith(f"{cloud}/a: ")
    assert words in said
    store._open.cache_clear()


def test_a_bucket_that_is_none_and_a_store_that_is_away_are_told(
    cloud: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(Place.of("s3://nowhere-at-all/x"))
    with pytest.raises(UsageError, match="there is no bucket s3://nowhere-at-all"), folder.locked():
        pass
    monkeypatch.setattr(store, "ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(UsageError, match="cannot be reached"), RunFolder(cloud).locked():
        pass
    with pytest.raises(InputError, match="cannot be reached"):
        find_files([str(cloud)])


def test_a_wrong_key_is_a_usage_error(cloud: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody-else")
    store._open.cache_clear()
    with pytest.raises(UsageError, match="the store refuses"), RunFolder(cloud).locked():
        pass
    with pytest.raises(InputError, match="the store refuses"):
        find_files([str(cloud)])
    store._open.cache_clear()
