"""What leaves a run's folder, and how: whoever wrote a log wrote a part of its report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from serve.search.calls import RaySearch
from serve.search.contract import Piece
from serve.search.errors import AmbiguousReport, NoSuchReport, SearchDown
from serve.search.reports import FILES
from serve.search.settings import RunsSettings
from tests.serve.search_world import leave_run, record, search_world

ROWS = [record("r-1", "<script>alert(1)</script> refund")]


async def test_a_page_is_sent_with_headers_that_let_it_do_nothing(tmp_path: Path) -> None:
    leave_run(tmp_path / "retro" / "day", ROWS, page="<script>alert(1)</script>")
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        (run,) = (await world.reports())["data"]
        assert run["headline"] == "1 problem needs action"
        assert run["records"] == 1
        headers, body = await world.file(run["id"], "report.html")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert policy.endswith("sandbox")
    assert "script" not in policy.replace("sandbox", "")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-length"] == str(len(body))
    assert body == b"<script>alert(1)</script>"


async def test_an_excerpt_is_the_text_and_no_html(tmp_path: Path) -> None:
    leave_run(tmp_path / "retro" / "day", ROWS)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        (hit,) = (await world.answer(query="refund", mode="words"))["hits"]
        assert hit["excerpt"] == "<script>alert(1)</script> refund"
        assert hit["highlights"] == [[26, 32]]


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        "../other/report.html",
        "results/part-00000.parquet",
        "/etc/passwd",
        "themes.parquet",
        "",
        ".",
        "report.html\0",
        "evidence.csv",  # this run has none
    ],
)
async def test_no_other_file_is_served(tmp_path: Path, name: str) -> None:
    leave_run(tmp_path / "retro" / "day", ROWS)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        run = (await world.reports())["data"][0]["id"]
        with pytest.raises(NoSuchReport):
            await world.file(run, name)


@pytest.mark.parametrize("run", ["da", "../retro/day", "", "nothing-00000000", "/"])
async def test_no_other_run_is_served(tmp_path: Path, run: str) -> None:
    leave_run(tmp_path / "retro" / "day", ROWS)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        with pytest.raises(NoSuchReport):
            await world.file(run, "report.html")


async def test_a_run_is_had_by_its_name_where_only_one_has_it(tmp_path: Path) -> None:
    for tenant in ("a", "b"):
        leave_run(tmp_path / tenant / "day", ROWS, page=f"of {tenant}")
    leave_run(tmp_path / "a" / "again" / "day of rest", ROWS, page="rest")
    runs = [RunsSettings(path=str(tmp_path / name), tenant=name) for name in ("a", "b")]
    async with search_world(*runs, state=tmp_path / "index") as world:
        await world.follow()
        assert (await world.file("day", "report.html", "a"))[1] == b"of a"
        assert (await world.file("day of rest", "report.html", "a"))[1] == b"rest"
        leave_run(tmp_path / "a" / "again" / "day", ROWS, page="again")
        await world.follow()
        with pytest.raises(AmbiguousReport, match="2 runs have the name 'day'") as caught:
            await world.file("day", "report.html", "a")
        ids = [run["id"] for run in (await world.reports("a"))["data"] if run["name"] == "day"]
        assert all(id_ in caught.value.message for id_ in ids)
        pages = {(await world.file(id_, "report.html", "a"))[1] for id_ in ids}
        assert pages == {b"of a", b"again"}
        # What another tenant has makes nothing ambiguous.
        assert (await world.file("day", "report.html", "b"))[1] == b"of b"


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
async def test_only_a_plain_file_of_the_run_itself_is_served(tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not to be seen")
    folder = leave_run(tmp_path / "retro" / "day", ROWS)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        run = (await world.reports())["data"][0]["id"]
        page = folder / "report.html"
        page.unlink()
        if what == "link":
            page.symlink_to(secret)
        elif what == "folder":
            page.mkdir()
        else:
            os.mkfifo(page)
        with pytest.raises(NoSuchReport):
            await world.file(run, "report.html")


async def test_no_folder_that_became_a_link_is_followed(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "retro" / "team" / "day", ROWS)
    leave_run(tmp_path / "secret" / "day", ROWS, page="not to be seen")
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        run = (await world.reports())["data"][0]["id"]
        for swapped, target in ((folder, "day"), (folder.parent, "")):
            swapped.rename(tmp_path / "away")
            swapped.symlink_to(tmp_path / "secret" / target)
            with pytest.raises(NoSuchReport):
                await world.file(run, "report.html")
            swapped.unlink()
            (tmp_path / "away").rename(swapped)
        assert (await world.file(run, "report.html"))[1] == b"page"


async def test_replicas_that_do_not_answer_are_given_up_in_time() -> None:
    class Silent:
        """A deployment that takes a call and is never heard of again."""

        def __init__(self) -> None:
            self.given_up = 0

        def __getattr__(self, name: str) -> Silent:
            return self

        def remote(self, *given: object) -> Silent:
            return self

        def __await__(self) -> Generator[Any, Any, bool]:
            return asyncio.Event().wait().__await__()

        def cancel(self) -> None:
            self.given_up += 1

    search, silent = RaySearch(), Silent()
    search._handle = silent
    for asked in (
        search.search("a", {}, 0.01),
        search.reports("a", 0.01),
        search.file("a", "run", "report.html", 0.01),
        search.piece("a", "run", "report.html", Piece(0, 1, ""), 0.01),
    ):
        with pytest.raises(SearchDown, match="in time"):
            await asked
    assert silent.given_up == 4


async def test_another_tenant_s_report_is_not_there(tmp_path: Path) -> None:
    leave_run(tmp_path / "a" / "day", ROWS)
    runs = RunsSettings(path=str(tmp_path / "a"), tenant="team-a")
    async with search_world(runs, state=tmp_path / "index") as world:
        await world.follow()
        run = (await world.reports("team-a"))["data"][0]["id"]
        await world.file(run, "report.html", "team-a")
        for other in ("team-b", "", "*"):
            with pytest.raises(NoSuchReport) as theirs:
                await world.file(run, "report.html", other)
            with pytest.raises(NoSuchReport) as nobodys:
                await world.file(run[:-1] + "x", "report.html", other)
            assert str(theirs.value).replace(run, "") == str(nobodys.value).replace(
                run[:-1] + "x", ""
            )


async def test_a_long_file_comes_in_pieces_and_whole(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "retro" / "day", ROWS)
    content = os.urandom(700_000)
    (folder / "evidence.csv").write_bytes(content)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        run = (await world.reports())["data"][0]
        assert f"/v1/reports/{run['id']}/evidence.csv" in run["files"]
        headers, body = await world.file(run["id"], "evidence.csv")
    assert body == content
    assert headers["content-disposition"].startswith("attachment")
    assert set(headers["content-type"].split(";")) <= {"text/csv", " charset=utf-8"}
    assert "run.json" not in FILES


async def test_a_file_that_is_written_anew_while_it_is_sent_is_not_mixed(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "retro" / "day", ROWS)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        run = (await world.reports())["data"][0]["id"]
        told = orjson.loads(await world.server.file("", run, "report.html"))
        (folder / "new").write_text("a page as it is now")
        (folder / "new").rename(folder / "report.html")
        with pytest.raises(NoSuchReport, match="changed"):
            await world.server.piece("", run, "report.html", Piece(2, 2, told["state"]))
