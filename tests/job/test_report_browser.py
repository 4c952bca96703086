"""The page in a real browser: it asks for nothing, says nothing in the console, fits a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from job.report import write_report
from job.storage.place import Place
from tests.browser import browser_page
from tests.job.report_run import issue, problem, theme, write_run

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>document.title='taken'</script><img src=http://127.0.0.1:9/x onerror=alert(1)> "
    + "a" * 400
    + " \u202e reversed\u200b [link](javascript:alert(1)) "
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


def write_day(out: Path, language: str) -> Path:
    """A day with three problems that need action, some of it in each hour; its page."""
    results, themes = [], []
    for n, severity in enumerate(("critical", "high", "high")):
        title = f"订单 {n} 提交失败" if language == "zh" else f"Orders of shop {n} fail"
        themes.append(theme(f"t-{n}", title=title, severity=severity))
        for hour in range(24):
            found = issue(theme=f"t-{n}", severity=severity, quote="payment page")
            text = f"{hour}: the payment page of shop {n} shows an error"
            results.append(problem(60 * hour + n, found, text=text, user=f"u{hour}"))
    write_report(Place.of(write_run(out, results, themes, language=language)))
    return out / "report.html"


IN_WINDOW = """(selector, height) => [...document.querySelectorAll(selector)].filter(
    e => { const box = e.getBoundingClientRect(); return box.height && box.bottom <= height })
    .length"""
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('.plot text')].filter(
    e => e.getBoundingClientRect().height).map(
    e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))"""
LUMINANCE = "name => getComputedStyle(document.body)[name].match(/[0-9]+/g).map(Number)[0]"


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_first_screen_says_what_to_do_and_how_far_to_trust_it(
    tmp_path: Path, language: str
) -> None:
    html = write_day(tmp_path / "out", language)
    async with browser_page(tmp_path / "profile") as page:
        for width, height in ((1280, 900), (390, 844)):
            await page.open(html, width)
            assert await page.evaluate(f"({IN_WINDOW})('.actions li', {height})") == 3
            assert await page.evaluate(f"({IN_WINDOW})('h1', {height})") == 1
            # The chart is there once, with labels that can be read.
            assert await page.evaluate(f"({IN_WINDOW})('div.plot', 1e9)") == 1
            assert await page.evaluate(SMALLEST_TEXT) >= 11
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await page.open(html, 1280)
        assert await page.evaluate(f"({IN_WINDOW})('.trust', 900)") == 1


async def test_evidence_opens_in_place_among_its_neighbours(tmp_path: Path) -> None:
    html = write_day(tmp_path / "out", "en")
    async with browser_page(tmp_path / "profile") as page:
        await page.open(html, 390)
        piece = "document.querySelectorAll('#t-0 .evidence')[0]"
        assert await page.evaluate(f"{piece}.querySelector('mark').checkVisibility()") is False
        await page.evaluate(f"{piece}.querySelector('summary').click()")
        assert await page.evaluate(f"{piece}.querySelector('mark').checkVisibility()") is True
        assert await page.evaluate(f"{piece}.querySelectorAll('.near').length") == 2
        assert page.requests == [html.as_uri()]


async def test_it_is_dark_at_night_and_its_bars_are_coloured(tmp_path: Path) -> None:
    html = write_day(tmp_path / "out", "en")
    async with browser_page(tmp_path / "profile") as page:
        colours = []
        for dark in (False, True):
            await page.open(html, 1280, dark)
            paper = await page.evaluate(f"({LUMINANCE})('backgroundColor')")
            ink = await page.evaluate(f"({LUMINANCE})('color')")
            assert (paper < ink) is dark
            bar = "getComputedStyle(document.querySelector('.plot .critical rect')).fill"
            colours.append(await page.evaluate(bar))
        assert len({*colours, "rgb(0, 0, 0)"}) == 3
