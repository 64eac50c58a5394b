"""A real browser for pages that open from disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Start a browser with a fresh profile that records its requests and its console."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(found), "chromium and chromedriver are not here; next: scripts/browser"
    options = ChromeOptions()
    options.binary_location = str(found[0])
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}", "--window-size=1300,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, ChromeService(str(found[1])))
    yield driver
    driver.quit()
