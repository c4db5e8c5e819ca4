"""The sources of settings: one pydantic-settings source per layer, each reading claims from the world it is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, cast

from pydantic import AliasChoices, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from mooncake_config.damage import TEXT_LIMIT
from mooncake_config.display import RAW_LIMIT, shown
from mooncake_config.provenance import Claim, Origin, Source
from mooncake_config.ray_node import NodeAddress, find_node_address

KWARGS_SPOT = "init kwargs"
PASTED_SPOT = "pasted command"
RUNTIME_ENV_FLAG = "--runtime-env-json"
"""Where a ``ray job submit`` has the variables of a job."""
SCHEMA_KEY = "$schema"
"""A key that editors put into JSON. It is allowed everywhere and means nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class Wiring:
    """How a field is tied to the outside; stands beside its type in the settings class.

    Args:
        variable: the environment variable that claims it, None where there is none.
        engine: Mooncake's key for it in ``MooncakeDistributedStore.setup``, None where it is no setup key.
        node_local: whether each node has its own value.
        from_ray: whether the Ray node IP claims it.
        address: whether its value is an address, or a list of them.
        agreed: whether all nodes of a job must have the same value; these make the fingerprint.
        contributed: whether a process that contributes no segment hands over 0 instead.
        default: the built-in default as it is written, None where there is none.
        has_default: False where nobody's claim means that there is no value at all.
        unclaimed: what holds where nobody claims it, in words, where that is no constant text.
    """

    variable: str | None
    engine: str | None = None
    node_local: bool = False
    from_ray: bool = False
    address: bool = False
    agreed: bool = False
    contributed: bool = False
    default: str | None = None
    has_default: bool = True
    unclaimed: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Form:
    """What an editor accepts as a field's value; stands beside the parser, which takes all of it.

    Args:
        pattern: of a text, with one meaning in Python and in ECMA-262.
        expects: what is accepted, in words, for the sentence that an editor shows otherwise.
        longest: characters of a text.
        least: the smallest number, where numbers are accepted.
        choices: the texts that are accepted, where they can be listed, each with a word on it.
    """

    pattern: str = ""
    expects: str = "a value"
    longest: int = TEXT_LIMIT
    least: int = 0
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class FieldSpec:
    """One row of the table of fields, as read off a settings class."""

    name: str
    wiring: Wiring
    form: Form
    parse: Callable[[Any], Any]
    info: FieldInfo

    @property
    def default_in_words(self) -> str:
        """What holds where nobody claims the field."""
        return self.wiring.unclaimed or self.wiring.default or "none"

    @property
    def takes_numbers(self) -> bool:
        """Whether a JSON number is a value of the field: it is a size."""
        return self.info.annotation is not str


@cache
def field_specs(settings_cls: type[BaseSettings]) -> tuple[FieldSpec, ...]:
    """The table of a settings class: its fields that carry a :class:`Wiring`, in order."""
    return tuple(_specs(settings_cls))


@cache
def table_names(settings_cls: type[BaseSettings]) -> frozenset[str]:
    """The names of the fields in the table; what else a subclass has is its own."""
    return frozenset(spec.name for spec in field_specs(settings_cls))


@cache
def has_own_fields(settings_cls: type[BaseSettings]) -> bool:
    """Whether a subclass has fields beside the table."""
    return len(table_names(settings_cls)) != len(settings_cls.model_fields)


def _specs(settings_cls: type[BaseSettings]) -> Iterator[FieldSpec]:
    for name, info in settings_cls.model_fields.items():
        wiring = next((item for item in info.metadata if isinstance(item, Wiring)), None)
        form = next((item for item in info.metadata if isinstance(item, Form)), Form())
        parser = next((item.func for item in info.metadata if isinstance(item, BeforeValidator)), None)
        if wiring and parser:
            yield FieldSpec(name, wiring, form, cast(Callable[[Any], Any], parser), info)


class Environment(NamedTuple):
    """Environment variables, and where each is edited when that is not the variable itself.

    ``spots`` holds the names that a launch line sets: ``{"MOONCAKE_MASTER": "--runtime-env-json MOONCAKE_MASTER"}``.
    """

    variables: Mapping[str, str]
    spots: Mapping[str, str] = {}

    def origin(self, name: str) -> Origin:
        """Where a person edits this variable. A name that no shell would take is given as it can be shown."""
        if name in self.spots or not name.isidentifier() or len(name) >= RAW_LIMIT:
            return Origin(Source.ENV, shown(self.spots.get(name, name), RAW_LIMIT))
        return Origin(Source.ENV, name)

    def __repr__(self) -> str:
        """The names alone: what variables hold is nobody's business in a log."""
        return f"Environment({', '.join(shown(name) for name in sorted(self.variables))})"


def real_environment(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    """The one place where a missing environment becomes this process's own."""
    return os.environ if environ is None else environ


def mapping_claims(mapping: Mapping[str, object]) -> dict[str, Claim]:
    """The claims of a Python mapping of init kwargs."""
    origin = Origin(Source.CLI, KWARGS_SPOT)
    return {name: Claim(raw, origin) for name, raw in mapping.items() if name != SCHEMA_KEY}


class World(PydanticBaseSettingsSource):
    """All that the layers may read. It stands where a settings class is handed its keyword arguments, and has no values
    of its own."""

    def __init__(
        self,
        settings_cls: type[BaseSettings],
        init_kwargs: Mapping[str, Claim],
        environment: Environment,
        node: NodeAddress,
    ) -> None:
        super().__init__(settings_cls)
        self.init_kwargs = init_kwargs
        self.environment = environment
        self.node = node

    @classmethod
    def asked_through(cls, source: PydanticBaseSettingsSource) -> World:
        """The world that a settings class is asked to read: a given one, or that of a bare ``StoreSettings(…)``.

        The latter is its keyword arguments, ``os.environ`` and this host's node address.
        """
        if isinstance(source, World):
            return source
        keywords = mapping_claims(source())
        return cls(source.settings_cls, keywords, Environment(real_environment(None)), find_node_address())

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Nothing: the layers read the world themselves."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Nothing: the layers read the world themselves."""
        return {}


class LayerSource(PydanticBaseSettingsSource):
    """A layer of claims. Blank claims stay in ``claims``, for the ledger, and are no values."""

    def __init__(self, settings_cls: type[BaseSettings], world: World) -> None:
        super().__init__(settings_cls)
        self.claims: Mapping[str, Claim] = self.read(world)

    def read(self, world: World) -> Mapping[str, Claim]:
        """The claims of this layer."""
        raise NotImplementedError

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The raw value of one field, None where this layer is silent."""
        claim = self.claims.get(field_name)
        return (None if claim is None or claim.is_empty else claim.raw), field_name, False

    def __call__(self) -> dict[str, Any]:
        """The raw values of this layer; silence is absence."""
        return {name: claim.raw for name, claim in self.claims.items() if not claim.is_empty}


class InitKwargsSource(LayerSource):
    """The init kwargs: of the command line, a file, standard input or a Python mapping."""

    def read(self, world: World) -> Mapping[str, Claim]:
        return world.init_kwargs

    def __call__(self) -> dict[str, Any]:
        """The raw values; what is not in the table is handed over even if it is empty: to be refused, or taken as it is
        where a subclass has such a field."""
        table = table_names(self.settings_cls)
        return {name: claim.raw for name, claim in self.claims.items() if not claim.is_empty or name not in table}


@cache
def _variables(settings_cls: type[BaseSettings]) -> tuple[tuple[str, str, Origin], ...]:
    """Field, variable and its usual origin, of each field that has a variable."""
    read = ((spec.name, spec.wiring.variable) for spec in field_specs(settings_cls))
    return tuple((name, variable, Origin(Source.ENV, variable)) for name, variable in read if variable)


class EnvironmentSource(LayerSource):
    """The environment variables of the table. Case-sensitive; no other variable is ever a value."""

    def read(self, world: World) -> Mapping[str, Claim]:
        variables, spots = world.environment.variables, world.environment.spots
        return {
            name: Claim(variables[variable], world.environment.origin(variable) if variable in spots else origin)
            for name, variable, origin in _variables(self.settings_cls)
            if variable in variables
        }


_NODE_IP = {guessed: Origin(Source.RAY, NodeAddress("", guessed).spot) for guessed in (False, True)}


@cache
def _from_ray(settings_cls: type[BaseSettings]) -> tuple[str, ...]:
    return tuple(spec.name for spec in field_specs(settings_cls) if spec.wiring.from_ray)


class RayNodeSource(LayerSource):
    """The Ray node IP, or the guess that stands in for it."""

    def read(self, world: World) -> Mapping[str, Claim]:
        claim = Claim(world.node.address, _NODE_IP[world.node.guessed])
        return dict.fromkeys(_from_ray(self.settings_cls), claim)


@cache
def _default_claims(settings_cls: type[BaseSettings]) -> Mapping[str, Claim]:
    origin = Origin(Source.DEFAULT, "default")
    specs = field_specs(settings_cls)
    return {spec.name: Claim(spec.wiring.default, origin) for spec in specs if spec.wiring.has_default}


@cache
def _default_values(settings_cls: type[BaseSettings]) -> dict[str, Any]:
    return {name: claim.raw for name, claim in _default_claims(settings_cls).items()}


class DefaultSource(LayerSource):
    """The built-in defaults."""

    def read(self, world: World) -> Mapping[str, Claim]:
        return _default_claims(self.settings_cls)

    def __call__(self) -> dict[str, Any]:
        return _default_values(self.settings_cls)


class OwnFieldsSource(PydanticBaseSettingsSource):
    """What an ordinary source, such as variables or a .env file, says of the fields that a subclass adds.

    A field of the table is never read this way: there is one way to each of them.
    """

    def __init__(self, settings_cls: type[BaseSettings], ordinary: PydanticBaseSettingsSource) -> None:
        super().__init__(settings_cls)
        self._ordinary = ordinary

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """What the ordinary source says."""
        return self._ordinary.get_field_value(field, field_name)

    def __call__(self) -> dict[str, Any]:
        """The values of the own fields, by the keys that pydantic knows them by."""
        table = table_names(self.settings_cls)
        own = {
            key
            for name, info in self.settings_cls.model_fields.items()
            if name not in table
            for key in _keys(name, info)
        }
        return {key: value for key, value in self._ordinary().items() if key in own}


def _keys(name: str, info: FieldInfo) -> Iterator[str]:
    yield name
    alias = info.validation_alias
    for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if isinstance(choice, str):
            yield choice
