"""Steps of ssh that Rackwright does not take: refused where they decide who gets in, else named. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackwright.messages import SettingsError
from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion

NAMED = (
    *("knownhostscommand", "checkhostip", "verifyhostkeydns", "nohostauthenticationforlocalhost", "pkcs11provider"),
    *("securitykeyprovider", "hostbasedauthentication", "hostkeyalgorithms", "ciphers", "kexalgorithms", "macs"),
    *("pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes", "casignaturealgorithms", "bindinterface", "localcommand"),
)
"""Keywords that are left out; of an SSH configuration only what is not ssh's default gets here."""
OFF = ("no", "false", "none", "")


def refuse_shortfalls(question: SshQuestion, answer: SshAnswer) -> None:
    """Raise SettingsError for what cannot be left out."""
    for text, instead in _refusals(answer):
        file = f" in {question.file}" if question.file else ""
        raise SettingsError(
            f"{question.host}: the SSH configuration{file} says `{text}`, which Rackwright does not do; "
            f"next: {instead}",
            code="RW0145",
        )


def _refusals(answer: SshAnswer) -> Iterator[tuple[str, str]]:
    if answer.is_set("proxyusefdpass", "yes") and answer.get("proxycommand"):
        yield "ProxyUseFdpass yes", "a ProxyCommand that carries the connection itself, or ProxyJump, for this host"
    if answer.get("revokedhostkeys"):
        yield (
            f"RevokedHostKeys {answer.get('revokedhostkeys')}",
            "write its keys into known_hosts as `@revoked * KIND KEY` lines, which count here, and leave it out",
        )
    if answer.is_set("pubkeyauthentication", "no", "false"):
        yield "PubkeyAuthentication no", "allow it for this host: Rackwright logs in by key or agent alone"
    preferred = answer.get("preferredauthentications")
    if preferred and "publickey" not in preferred.split(","):
        yield f"PreferredAuthentications {preferred}", "add publickey for this host: Rackwright logs in by that alone"


def not_taken(answers: Mapping[SshQuestion, SshAnswer]) -> list[str]:
    """Return a line for each file that says what is left out. Raises SettingsError for what cannot be."""
    found: dict[str, dict[str, None]] = {}
    for question, answer in answers.items():
        refuse_shortfalls(question, answer)
        texts = found.setdefault(question.file or "the SSH configuration", {})
        texts.update(dict.fromkeys(_left_out(answer)))
    return [f"{file}: not taken: {', '.join(texts)}" for file, texts in found.items() if texts]


def _left_out(answer: SshAnswer) -> Iterator[str]:
    runs_local = answer.is_set("permitlocalcommand", "yes")
    for keyword in NAMED:
        if answer.get(keyword).lower() not in OFF and (keyword != "localcommand" or runs_local):
            yield keyword
    if answer.is_set("stricthostkeychecking", "no", "off", "false"):
        yield "stricthostkeychecking no (host keys are always checked; for a first contact: accept_new_host_keys: true)"
