"""Live facts, all asked at once: what answers at the configured endpoints, and which Mooncake is installed.

Only addresses of the configuration are connected to. The whole takes no longer than the slowest limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from mooncake_config.addresses import Endpoint, endpoints_of, hosts_of, ip_of, is_wildcard, scheme_of, split_endpoint
from mooncake_config.dialogue import ENDPOINT_SECONDS, Answer, ask_endpoint, ask_metadata, ask_name, at_once
from mooncake_config.display import shown
from mooncake_config.installation import IMPORT_SECONDS, Installed, Trial, find_installed, try_import
from mooncake_config.process import Process

_MOST_ENDPOINTS = 32
_GRACE = 0.5
"""Seconds beyond a question's own limit, for threads that compete for a processor."""


@dataclass(frozen=True)
class Probes:
    """All live facts of one host. What was not asked is empty or None; ``no_setup`` says why no dry setup was tried."""

    answers: tuple[Answer, ...] = ()
    installed: Installed | None = None
    setup: Trial | None = None
    no_setup: str = ""

    def of(self, field: str) -> tuple[Answer, ...]:
        """The answers about one setting."""
        return tuple(answer for answer in self.answers if answer.field == field)

    def facts(self) -> list[dict[str, object]]:
        """What was asked, of whom, the answer, and the seconds it took."""
        answers = [_fact(item.field, item.target, str(item), item.seconds) for item in self.answers]
        return [*answers, *_installed_facts(self.installed), *_setup_facts(self)]


def probe(process: Process) -> Probes:
    """Asks every endpoint of the configuration and tries the import of Mooncake, all at once. Never raises."""
    questions: list[Callable[[], Answer | Trial]] = [*_questions(process)]
    questions.append(partial(try_import, process.variables.variables))
    found = at_once(questions, max(ENDPOINT_SECONDS, IMPORT_SECONDS) + _GRACE)
    trial = next((item for item in found if isinstance(item, Trial)), None)
    return Probes(tuple(item for item in found if isinstance(item, Answer)), replace(find_installed(), trial=trial))


def probe_endpoints(process: Process) -> Probes:
    """Asks every endpoint, and which distributions are installed; starts no child process. Never raises."""
    found = at_once(_questions(process), ENDPOINT_SECONDS + _GRACE)
    return Probes(tuple(item for item in found if item), find_installed())


def _questions(process: Process) -> list[Callable[[], Answer]]:
    """One question for each endpoint, and one for a local_hostname that is a name."""
    own = split_endpoint(process.text("local_hostname") or "").host
    name = [partial(ask_name, "local_hostname", own)] if own and ip_of(own) is None else []
    return [*_master_questions(process), *_metadata_questions(process), *name]


def _master_questions(process: Process) -> Iterator[Callable[[], Answer]]:
    for endpoint in _endpoints(process.text("master_server_address")):
        yield partial(ask_endpoint, "master_server_address", endpoint)


def _metadata_questions(process: Process) -> Iterator[Callable[[], Answer]]:
    address = process.text("metadata_server") or ""
    if scheme_of(address) not in ("http", "https"):
        for endpoint in _endpoints(address):
            yield partial(ask_endpoint, "metadata_server", endpoint)
    elif not any(map(is_wildcard, hosts_of(address))):
        yield partial(ask_metadata, address)


def _endpoints(address: str | None) -> list[Endpoint]:
    """The distinct endpoints that can be connected to; a Redis one has a default port."""
    if not address:
        return []
    default = 6379 if scheme_of(address) == "redis" else None
    found = (Endpoint(item.host, item.port or default) for item in endpoints_of(address))
    return list(dict.fromkeys(item for item in found if item.port and not is_wildcard(item.host)))[:_MOST_ENDPOINTS]


def _fact(what: str, target: str, answer: str, seconds: float) -> dict[str, object]:
    return {"what": what, "target": target, "answer": answer, "seconds": round(seconds, 3)}


def _installed_facts(installed: Installed | None) -> Iterator[dict[str, object]]:
    if installed is None:
        return
    listed = ", ".join(map(str, installed.distributions))
    yield _fact("installed distributions", "mooncake-transfer-engine*", listed or "none", 0.0)
    trial = installed.trial
    if trial is not None:
        place = shown(str(trial.told("location") or "mooncake"), 200)
        yield _fact("import in a child process", place, import_words(trial), trial.seconds)


def import_words(trial: Trial) -> str:
    """How an import went, in a few words."""
    if trial.told("absent"):
        return "not installed"
    failed = trial.step("failed")
    if failed:
        return shown(f"{failed['failed']}: {failed.get('kind')}: {failed.get('text')}", 200)
    if trial.step("lacks") is None:
        return f"it {trial.end}"
    return "lacks names" if trial.told("lacks") else "works"


def _setup_facts(probes: Probes) -> Iterator[dict[str, object]]:
    what, target = "dry setup", "MooncakeDistributedStore.setup"
    if probes.setup is not None:
        yield _fact(what, target, setup_words(probes.setup), probes.setup.seconds)
    elif probes.no_setup:
        yield _fact(what, target, f"not tried: {probes.no_setup}", 0.0)


def setup_words(trial: Trial) -> str:
    """How a dry setup went, in a few words."""
    if trial.step("code"):
        return f"code {trial.told('code')}"
    return shown(str(trial.told("raised"))) if trial.step("raised") else f"it {trial.end}"
