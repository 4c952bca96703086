"""The page in a real browser: it asks for nothing, says nothing in the console, fits a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from job.place import Place
from job.report import write_report
from tests.browser import browser_page
from tests.job.report_run import issue, problem, theme, write_run

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>document.title='taken'</script><img src=http://127.0.0.1:9/x onerror=alert(1)> "
    + "a" * 400
    + " \u202e reversed [link](javascript:alert(1)) "
)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_hostile_day_is_shown_and_not_obeyed(
    tmp_path: Path, width: int, language: str
) -> None:
    results = [
        problem(n, issue(event=HOSTILE, quote=HOSTILE[:60]), text=HOSTILE, user=HOSTILE[:40])
        for n in range(12)
    ]
    write_run(tmp_path, results, [theme(title=HOSTILE[:60])], language=language)
    write_report(Place.of(tmp_path))
    async with browser_page(tmp_path / "profile") as page:
        await page.open(tmp_path / "report.html", width)
        await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert await page.evaluate("document.title !== 'taken'")
        assert await page.evaluate("document.querySelectorAll('script, img').length") == 0
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await page.evaluate("document.querySelectorAll('mark').length") >= 3
        assert page.complaints == []
        assert page.requests == [(tmp_path / "report.html").as_uri()]
