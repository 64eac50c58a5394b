"""The documentation's site opens from disk in a real browser: every link leads somewhere, and search finds."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser.offline import console

ROOT = Path(__file__).parents[2]
DOCS = runpy.run_path(str(ROOT / "scripts" / "docs.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    folder = tmp_path_factory.mktemp("docs")
    assert DOCS["build"](folder) == ""
    return folder


def found(browser: Chrome, question: str, seconds: float = 30) -> list[str]:
    """Type a question into the site's search. Returns the addresses it finds, best first, below the site's folder."""
    field = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    field.click()
    field.send_keys(question)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        links = browser.find_elements(By.CSS_SELECTOR, "a.md-search-result__link")
        if links:
            return [str(link.get_attribute("href")).partition("?")[0] for link in links]
        time.sleep(0.2)
    return []


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    assert list(DOCS["lost_links"](site)) == []


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a><a href="b.html#gone">b</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1><a href="https://example.com/">out</a>')
    assert list(DOCS["lost_links"](tmp_path)) == ["a.html: b.html#gone", "a.html: c.png"]


def test_a_page_that_links_to_nothing_fails_the_build(tmp_path: Path) -> None:
    page = ROOT / "docs" / "README.md"
    text = page.read_text()
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0])
    (tmp_path / "docs" / "README.md").write_text(text)
    names = DOCS["build"](tmp_path / "site", tmp_path)
    assert "how-it-works.md" in names


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("RW0705", "how-to/when-a-deploy-failed.html"),
        ("max_unavailable", "how-to/roll-out.html"),
        ("rotate keys", "how-to/rotate-keys.html"),
    ],
)
def test_search_finds_from_disk_and_asks_no_server(browser: Chrome, site: Path, question: str, page: str) -> None:
    browser.get_log("browser")  # what earlier pages left
    browser.get((site / "index.html").as_uri())
    assert any(address.startswith((site / page).as_uri()) for address in found(browser, question)[:3])
    assert console(browser) == []


def test_a_table_shows_no_backslash_before_a_bar(browser: Chrome, site: Path) -> None:
    browser.get((site / "reference" / "settings.html").as_uri())
    assert r"\|" not in browser.find_element(By.TAG_NAME, "body").text
