"""Builds the documentation's site from docs/ and mkdocs.yml, and writes docs/contribute/README.md from CONTRIBUTING.md.

`python scripts/docs.py` writes the page, builds the site below build/docs and names links that lead nowhere. MkDocs
alone builds the site as well; what is added here lets its search work from disk, and takes out of tables the backslash
before a bar, which GitHub needs there and MkDocs shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "build" / "docs"
CONTRIBUTE = DOCS / "contribute" / "README.md"
MADE = "<!-- Made from CONTRIBUTING.md by `python scripts/docs.py`; do not edit it. -->\n\n"
CELL_CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
ADDRESS = re.compile(r'<(?:a|link|img|script)\b[^>]*?\b(?:href|src)="([^"]*)"')
IDENTITY = re.compile(r'\bid="([^"]*)"')


def contribute() -> str:
    """Return the site's page of CONTRIBUTING.md: links lead from its folder, and those out of docs/ become names."""
    heading, _, text = (ROOT / "CONTRIBUTING.md").read_text().partition("\n\n")
    return f"{heading}\n\n{MADE}" + re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", _from_docs, text)


def _from_docs(link: re.Match[str]) -> str:
    text, target = link[1], link[2]
    if "://" in target or target.startswith("#"):
        return link[0]
    if not target.startswith("docs/"):
        return text if text.startswith("`") else f"{text} (`{target}`)"
    path, hash_, anchor = target.partition("#")
    return f"[{text}]({os.path.relpath(ROOT / path, CONTRIBUTE.parent)}{hash_}{anchor})"


def build(site: Path = SITE, root: Path = ROOT) -> str:
    """Build the site of a folder with mkdocs.yml. Returns what MkDocs says against the pages; empty: nothing."""
    # No --quiet: with it MkDocs counts no warning, and --strict fails for none.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        return "\n".join(row for row in lines if not row.startswith("INFO")) or f"mkdocs ended with {done.returncode}"
    for page in site.rglob("*.html"):
        page.write_text(CELL_CODE.sub(lambda code: code[0].replace(r"\|", "|"), page.read_text()))
    index = (site / "search" / "search_index.json").read_text().replace(r"\\|", "|")
    (site / "search" / "search_index.json").write_text(index)
    (site / "search" / "search_index.js").write_text(f"var __index = {index}")
    return ""


def lost_links(site: Path) -> Iterator[str]:
    """Yield `PAGE: LINK` for each link of the built pages that leads to no file or no heading of the site."""
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":  # it is served at any address, and names its files from the root
            continue
        links = {unescape(link) for link in ADDRESS.findall(page.read_text())}
        yield from (f"{page.relative_to(site)}: {link}" for link in sorted(links) if not _leads(page, link))


def _leads(page: Path, link: str) -> bool:
    if re.match(r"\w+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
    target = target / "index.html" if target.is_dir() else target
    return target.is_file() and (not anchor or unquote(anchor) in _identities(target))


@cache
def _identities(page: Path) -> set[str]:
    return {unescape(one) for one in IDENTITY.findall(page.read_text())}


def main() -> int:
    """Write the page, build the site, and print what is wrong with either."""
    CONTRIBUTE.write_text(contribute())
    wrong = build() or "\n".join(lost_links(SITE))
    print(wrong or f"{SITE}/index.html", file=sys.stderr if wrong else sys.stdout)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
