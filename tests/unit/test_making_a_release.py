"""A release: what is not fit for one, and the list of what its wheel needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import release, sbom
from scripts.release import ReleaseError

EPOCH = 1795800000
METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: 1.0
{more}"""
PACKAGES = {
    "Product_Name": "License-Expression: Apache-2.0\nRequires-Dist: needed.one>=1; python_version > '3'\n"
    "Requires-Dist: other; extra == 'more'\nRequires-Dist: absent\n",
    "needed-one": "Classifier: License :: OSI Approved :: MIT License\n",
    "other": "License: BSD\n    and a page of text\n",
}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    for name, more in PACKAGES.items():
        folder = tmp_path / "lib/python3.11/site-packages" / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(METADATA.format(name=name, more=more))
    return tmp_path


def test_the_list_has_each_package_with_its_licence_and_what_needs_it(environment: Path) -> None:
    files = {"product.whl": b"abc"}
    found = sbom.document("product-name", sbom.environment(environment), files, EPOCH)
    licences = {one["name"]: one["licenses"] for one in found["components"]}
    assert licences == {
        "needed-one": [{"license": {"name": "MIT License"}}],
        "other": [{"license": {"name": "BSD"}}],
    }
    product = found["metadata"]["component"]
    assert (product["name"], product["licenses"]) == ("Product_Name", [{"expression": "Apache-2.0"}])
    assert product["components"][0]["hashes"][0]["content"].startswith("ba7816bf")
    graph = {one["ref"]: one["dependsOn"] for one in found["dependencies"]}
    assert graph["pkg:pypi/product-name@1.0"] == ["pkg:pypi/needed-one@1.0"]
    assert found["metadata"]["timestamp"] == "2026-11-27T17:20:00Z"
    again = sbom.document("product-name", reversed(sbom.environment(environment)), files, EPOCH)
    assert sbom.text(again) == sbom.text(found)


def test_two_builds_that_differ_are_named(tmp_path: Path) -> None:
    first, second = (tmp_path / "a", tmp_path / "b")
    first.write_text("x")
    second.write_text("x")
    release.refuse_unlike({"w.whl": first}, {"w.whl": second})
    second.write_text("y")
    with pytest.raises(ReleaseError, match=r"w\.whl"):
        release.refuse_unlike({"w.whl": first}, {"w.whl": second})
    with pytest.raises(ReleaseError, match=r"s\.tar"):
        release.refuse_unlike({"w.whl": first, "s.tar": first}, {"w.whl": first})


def test_changes_in_no_commit_and_a_version_without_a_section_are_refused() -> None:
    changelog = "# Changelog\n\n## [0.2.0] - 2026-11-27\n"
    release.refuse_unfit("0.2.0", "", changelog)
    with pytest.raises(ReleaseError, match=r"deploy\.py"):
        release.refuse_unfit("0.2.0", " M deploy.py\n", changelog)
    for version, text in (("0.3.0", changelog), ("0.2.0", "## [Unreleased]\n## [0.2.0]\n"), ("0.2", changelog)):
        with pytest.raises(ReleaseError, match=r"CHANGELOG\.md"):
            release.refuse_unfit(version, "", text)


def test_a_release_without_a_key_is_refused_with_how_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(release.KEY, str(tmp_path / "none"))
    assert release.main([]) == 1
    assert "minisign -G" in capsys.readouterr().err
    (tmp_path / "none").touch()
    monkeypatch.setattr(release, "PUBLIC_KEY", tmp_path / "no.pub")
    assert release.main([]) == 1
    assert "no.pub" in capsys.readouterr().err


def test_the_sums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("abc")
    (tmp_path / "a").write_text("")
    rows = release.sums_of(tmp_path)
    assert [row[64:] for row in rows] == ["  a", "  b"]
    assert rows[1].startswith("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
