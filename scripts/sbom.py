"""Writes what a wheel needs as a CycloneDX document: each package of an environment with its licence and needs.

Its bytes are the same wherever it is made from the same packages: its time is the commit's, its number a hash of it.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

FORMAT, SPECIFICATION = "CycloneDX", "1.6"
NEEDED = re.compile(r"[A-Za-z0-9._-]+")
"""The name at the beginning of a requirement."""


def document(product: str, packages: Iterable[Distribution], files: Mapping[str, bytes], epoch: int) -> dict[str, Any]:
    """Return the document of a product that is installed among packages. files: the product's own, by name."""
    by_name = {_normal(one.name): one for one in packages}
    root = by_name.pop(_normal(product))
    components = [_component(one) for _, one in sorted(by_name.items())]
    names = {*by_name, _normal(product)}
    graph = [
        {"ref": _purl(one), "dependsOn": sorted(_purl(by_name[name]) for name in _needs(one) & names)}
        for one in (root, *(by_name[name] for name in sorted(by_name)))
    ]
    found = {
        "bomFormat": FORMAT,
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**_component(root), "components": [_file(name, files[name]) for name in sorted(files)]},
        },
        "components": components,
        "dependencies": graph,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(found, sort_keys=True))
    return {**found, "serialNumber": f"urn:uuid:{number}"}


def environment(folder: Path) -> list[Distribution]:
    """Return the packages of a virtual environment."""
    return list(distributions(path=[str(path) for path in folder.glob("lib/python*/site-packages")]))


def text(values: Mapping[str, Any]) -> str:
    """Return the document as it is stored."""
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _component(one: Distribution) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(one),
        "name": one.name,
        "version": one.version,
        "purl": _purl(one),
    }
    licence = one.metadata.json.get("license_expression") or _classified(one)
    return (
        {**found, "licenses": [licence if isinstance(licence, dict) else {"expression": licence}]} if licence else found
    )


def _classified(one: Distribution) -> dict[str, Any] | None:
    """Return the licence by its classifiers, or by the first line of what the package says of it."""
    rows = [row for row in one.metadata.get_all("Classifier") or () if row.startswith("License ::")]
    written = str(one.metadata.json.get("license") or "").strip().partition("\n")[0]
    name = ", ".join(row.rpartition(" :: ")[2] for row in rows) or written
    return {"license": {"name": name}} if name else None


def _file(name: str, content: bytes) -> dict[str, Any]:
    digest = {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}
    return {"type": "file", "name": name, "hashes": [digest]}


def _needs(one: Distribution) -> set[str]:
    """Return the names that a package requires, those of extras left out."""
    rows = [row for row in one.requires or () if "extra ==" not in row]
    return {_normal(found[0]) for row in rows if (found := NEEDED.match(row))}


def _purl(one: Distribution) -> str:
    return f"pkg:pypi/{_normal(one.name)}@{one.version}"


def _normal(name: str) -> str:
    """Return a package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
