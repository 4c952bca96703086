from __future__ import annotations

import pytest

from serve.ask.uris import without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("logs/a@b?c#d", "logs/a@b?c#d"),
        ("s3://bucket/a@b.log", "s3://bucket/a@b.log"),
        ("s3://id:key@bucket/x", "s3://***@bucket/x"),
        ("s3://id:ke/y@bucket/x", "s3://***@bucket/x"),
        ("s3://id:k@y@bucket/x", "s3://***@bucket/x"),
        ("s3://bucket/x?secret_key=y&region=z", "s3://bucket/x"),
        ("https://h/v1#token", "https://h/v1"),
        ("--base-url=https://token@h:8/v1?k=v", "--base-url=https://***@h:8/v1"),
        ("cannot open s3://a:b@c/d and s3://e:f@g/h", "cannot open s3://***@c/d and s3://***@g/h"),
    ],
)
def test_what_may_be_shown_of_a_uri(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
