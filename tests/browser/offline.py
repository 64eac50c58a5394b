"""Pages opened from disk: what they show, ask for, and say of errors."""

from __future__ import annotations

import json
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

NASTY = "</script><script>document.title='broken'</script>\"'><img src=x onerror=\"document.title='broken'\">"


def opened(browser: Chrome, folder: Path, text: str, fragment: str = "") -> None:
    path = folder / "run.html"
    path.write_text(text)
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what earlier pages left
    browser.get("about:blank")
    browser.get(f"{path.as_uri()}{fragment}")


def hosts(browser: Chrome) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, "details.host")


def shown(browser: Chrome) -> list[str]:
    return [str(host.get_attribute("data-name")) for host in hosts(browser) if host.is_displayed()]


def requests(browser: Chrome) -> list[str]:
    """Addresses that the page has asked for, itself left out."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    urls = [one["request"]["url"] for one in sent if one["documentURL"].partition("#")[0].endswith("/run.html")]
    assert urls, "not even the page itself was seen"
    return [url for url in urls if not url.startswith("data:") and not url.partition("#")[0].endswith("/run.html")]


def console(browser: Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]
