"""The report in a real browser: it opens from disk, asks for nothing, says no error, and can be worked with."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from rackwright.record.view.report import page
from rackwright.record.view.timeline_events import timeline_of
from tests.browser.offline import NASTY, console, hosts, opened, requests, shown
from tests.unit.made_up_runs import made_up, recorded
from tests.unit.test_report import hostile


def test_it_opens_from_disk_and_asks_for_nothing(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, page(timeline_of(recorded("rolled-back")), "run"))
    assert shown(browser) == ["lab-lived2", "lab-lived3", "lab-lived1"]
    assert "exit 3" in browser.title
    bars = browser.find_elements(By.CSS_SELECTOR, ".bar.rolling-back")
    assert len(bars) == 2
    assert all(bar.size["width"] > 20 and bar.size["height"] > 10 for bar in bars)
    assert browser.find_element(By.CSS_SELECTOR, "#trouble pre").is_displayed()
    assert requests(browser) == []
    assert console(browser) == []


def test_two_hundred_hosts_are_there_and_can_be_filtered(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, page(timeline_of(made_up(200, bad=3)), "run"))
    assert len(shown(browser)) == 200
    field = browser.find_element(By.ID, "filter")
    field.send_keys("gpu19")
    assert shown(browser) == ["gpu198", "gpu199", *(f"gpu19{number}" for number in range(8))]
    assert browser.find_element(By.ID, "shown").text == "10 of 200 hosts"
    chip = browser.find_element(By.CSS_SELECTOR, ".chip[data-state='rolled back']")
    chip.click()
    assert shown(browser) == ["gpu198", "gpu199"]
    field.clear()
    field.send_keys("tool call")
    assert shown(browser) == ["gpu198", "gpu199", "gpu200"]
    chip.click()
    field.clear()
    field.send_keys(" ")
    assert len(shown(browser)) == 200
    assert console(browser) == []


def test_a_host_opens_to_its_rows_and_steps(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, page(timeline_of(made_up(20)), "run"))
    host = hosts(browser)[4]
    assert not host.find_element(By.CSS_SELECTOR, "table.rows").is_displayed()
    host.find_element(By.TAG_NAME, "summary").click()
    assert "ms a token" in host.find_element(By.CSS_SELECTOR, "table.rows").text
    assert "pull nvcr.io" in host.find_element(By.CSS_SELECTOR, "table.spans").text
    browser.find_element(By.ID, "expand").click()
    assert all(one.get_attribute("open") for one in hosts(browser))


def test_a_link_to_a_host_opens_it(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, page(timeline_of(made_up(60)), "run"), "#host-gpu044")
    assert [host.get_attribute("data-name") for host in hosts(browser) if host.get_attribute("open")] == ["gpu044"]


def test_hostile_texts_stay_texts(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, page(timeline_of(hostile(NASTY)), NASTY))
    assert browser.title.startswith(NASTY[:20])
    assert shown(browser) == [NASTY]
    assert browser.find_element(By.TAG_NAME, "h1").text == NASTY
    assert requests(browser) == []
    assert console(browser) == []


@pytest.mark.parametrize("width", [380, 1300])
def test_nothing_sticks_out_sideways(browser: Chrome, tmp_path: Path, width: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    opened(browser, tmp_path, page(timeline_of(made_up(30, bad=1)), "run"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_reads_without_its_script_too(browser: Chrome, tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    opened(browser, tmp_path, page(timeline_of(made_up(5)), "run"))
    assert len(shown(browser)) == 5
    assert not browser.find_element(By.CSS_SELECTOR, ".tools").is_displayed()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_it_has_a_dark_face(browser: Chrome, tmp_path: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        opened(browser, tmp_path, page(timeline_of(made_up(3)), "run"))
        grounds.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(246, 247, 249)", "rgb(20, 23, 28)"]
