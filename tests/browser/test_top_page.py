"""The page of `rackwright top` in a real browser: it opens from disk, asks for nothing, and can be worked with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from rackwright.inspect.top.page import page
from rackwright.inspect.top.rows import rows_of
from rackwright.inspect.top.screen import Title
from tests.browser.offline import NASTY, console, hosts, opened, requests, shown
from tests.unit.made_up_fleets import NOW, fleet_of

TIME = datetime(2026, 11, 27, 3, 30, tzinfo=UTC)


def fleet_page(count: int, trouble: str = "", inventory: str = "inventory/b200.py") -> str:
    fleet = fleet_of(count)
    if trouble:
        fleet[0].lose(trouble)
    return page(rows_of(fleet, NOW, TIME), Title(inventory, TIME))


def test_a_fleet_opens_from_disk_worst_first_and_asks_for_nothing(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, fleet_page(200))
    names = [name.split()[0] for name in shown(browser)]
    assert len(names) == 200
    assert names[:4] == ["gpu002", "gpu003", "gpu004", "gpu001"]
    assert [host.get_attribute("data-state") for host in hosts(browser) if host.get_attribute("open")] == [
        "lost",
        "hung",
    ]
    assert requests(browser) == []
    assert console(browser) == []


def test_a_fleet_is_filtered_by_name_state_and_fact(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, fleet_page(40))
    browser.find_element(By.CSS_SELECTOR, ".chip[data-state='drained']").click()
    assert [name.split()[0] for name in shown(browser)] == ["gpu004"]
    browser.find_element(By.CSS_SELECTOR, ".chip[data-state='drained']").click()
    browser.find_element(By.ID, "filter").send_keys("probe")
    assert [name.split()[0] for name in shown(browser)] == ["gpu003"]


def test_what_a_host_says_stays_text(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, fleet_page(6, NASTY, NASTY))
    assert browser.title.startswith(NASTY[:20])
    assert NASTY in hosts(browser)[0].text
    assert requests(browser) == []
    assert console(browser) == []


@pytest.mark.parametrize("width", [380, 1300])
def test_a_fleet_fits_a_phone(browser: Chrome, tmp_path: Path, width: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    opened(browser, tmp_path, fleet_page(30))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
