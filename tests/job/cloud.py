"""An S3-compatible server with one bucket, and folders in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from job.storage.place import Place
from tests.object_store import ObjectStore, well

BUCKET = "bucket"


@contextmanager
def cloud_server() -> Iterator[ObjectStore]:
    """A server that this process finds by its environment."""
    with ObjectStore() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        server.make_bucket(BUCKET)
        yield server


@contextmanager
def cloud_folder(server: ObjectStore, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A folder on the server that nobody else uses; the server is well before and after."""
    server.mood = well
    server.requests.clear()
    yield Place.of(f"s3://{BUCKET}/{request.node.name.partition('[')[0]}-{os.urandom(4).hex()}")
    server.mood = well


def keys(server: ObjectStore, place: Place) -> list[str]:
    """The names of all objects below a place."""
    return [key.removeprefix(f"{place.path}/") for key in server.keys(BUCKET, f"{place.path}/")]
