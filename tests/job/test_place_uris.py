"""Which URIs of places are taken, and what is told of those that are not. No store is asked."""

from __future__ import annotations

import pytest

from job.errors import UsageError
from job.storage.place import Place
from job.storage.store import split_uri


@pytest.mark.parametrize(
    "given",
    [
        "s3://id:hush@bucket/x",
        "s3://id:hu/sh@bucket/x",
        "s3://hush@bucket/x",
        "gs://id:hush@bucket/x",
        "s3://bucket/x?secret_key=hush",
        "s3://bucket/x?access_key=id&secret_key=hush&region=a",
        "s3://bucket/x?endpoint_override=http://id:hush@host",
        "s3:///x",
        "s3://a b/x",
        "file://logs/x",
        "file:///x?region=hush",
    ],
)
def test_a_uri_with_a_secret_or_without_a_bucket_is_refused(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        Place.of(given)
    assert "hush" not in str(caught.value)


def test_a_store_that_nobody_knows_is_told_without_what_opens_it() -> None:
    with pytest.raises(UsageError, match="cannot open") as caught:
        Place.of("https://hush@host/x").exists()
    assert "hush" not in str(caught.value)


def test_what_is_no_option_belongs_to_the_name() -> None:
    assert split_uri("s3://bucket/logs/app-?.log") == ("s3://bucket", "logs/app-?.log")
    assert split_uri("s3://bucket/?region=x") == ("s3://bucket?region=x", "")
    assert split_uri("abfs://container@account/x") == ("abfs://container@account", "x")
    assert split_uri("file:///a%20b") == ("", "/a b")
