"""Why a vault value cannot be read, whatever version of ansible-core says so."""

from __future__ import annotations

import pytest

from rackwright.loading.vault import reason_of

WHY = "Decryption failed (no vault secrets were found that could decrypt)"


@pytest.mark.parametrize(
    "printed",
    [
        f"ERROR! {WHY} on /tmp/rackwright-vault-x/0\n",
        f"[ERROR]: {WHY} for /tmp/rackwright-vault-x/0.\n",
        f"[ERROR]: Failed to view '/tmp/rackwright-vault-x/0': {WHY}\nmore\n",
    ],
    ids=["2.17", "2.19", "2.21"],
)
def test_the_reason_is_the_same_and_names_no_pipe(printed: str) -> None:
    assert reason_of(printed) == WHY


def test_no_password_and_nobody_to_ask_is_said() -> None:
    assert "no vault password is set" in reason_of("Traceback\nEOFError\n")
