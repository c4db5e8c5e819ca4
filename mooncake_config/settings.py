"""StoreSettings: THE table of fields: name, type, variable, default, form, Mooncake's own name and doc."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import EllipsisType
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from mooncake_config.address_parsers import parse_hostname, parse_master, parse_metadata
from mooncake_config.addresses import (
    HOSTNAME_EXAMPLE,
    HOSTNAME_PATTERN,
    MASTER_EXAMPLE,
    MASTER_PATTERN,
    METADATA_PATTERN,
    P2P,
)
from mooncake_config.display import masked
from mooncake_config.protocols import DEVICE_PATTERN, PROTOCOL_PATTERN, PROTOCOLS, parse_device_name, parse_protocol
from mooncake_config.sizes import DIGITS_LIMIT, POSITIVE_PATTERN, SCHEMA_PATTERN, parse_positive_size, parse_size
from mooncake_config.sources import (
    DefaultSource,
    EnvironmentSource,
    FieldSpec,
    Form,
    InitKwargsSource,
    OwnFieldsSource,
    RayNodeSource,
    Wiring,
    World,
    field_specs,
    has_own_fields,
    table_names,
)

_SIZE = Form(
    SCHEMA_PATTERN,
    'a whole number of bytes, or a text such as "8gb": digits and one of b, kb, mb, gb, tb, pb (powers of 1024); '
    "of fractions only halves, quarters and eighths, such as 1.5gb",
    longest=DIGITS_LIMIT,
)
_CHUNK = replace(_SIZE, pattern=POSITIVE_PATTERN, expects=f"{_SIZE.expects}; not zero", least=1)


def _optional_size(raw: object) -> int | None:
    return None if raw is None else parse_positive_size(raw)


def _field(description: str, examples: list[Any], default: EllipsisType | None = ...) -> Any:
    """A field as it shows itself. To type checkers it has a value, since none has to be given: sources may have it."""
    return Field(default, description=description, examples=examples)


class StoreSettings(BaseSettings):
    """The eight init kwargs of Mooncake Store, resolved and validated. Sizes are bytes.

    ``StoreSettings()`` alone reads the same sources in the same order as ``resolve_store_config``; keyword arguments
    are the command line. Rules are not run on it. As a field of another model it reads them too, and what the outer
    model has for it counts as keyword arguments. Fields that a subclass adds are read as pydantic-settings reads any.

    Raises:
        pydantic.ValidationError: a value that is malformed, a field that does not exist, or no master at all.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    master_server_address: Annotated[
        str,
        Wiring(
            "MOONCAKE_MASTER",
            engine="master_server_addr",
            address=True,
            agreed=True,
            has_default=False,
            unclaimed="none; it is required",
        ),
        Form(MASTER_PATTERN, "host:port, [IPv6]:port, or etcd://host:port;host:port for a master in HA mode"),
        BeforeValidator(parse_master),
    ] = _field(
        description="Address of the Mooncake master, host:port, or an HA endpoint such as etcd://host:2379.",
        examples=[MASTER_EXAMPLE, "[fd00::5]:50051", "etcd://10.0.0.5:2379;10.0.0.6:2379"],
    )
    local_hostname: Annotated[
        str,
        Wiring(
            "MOONCAKE_LOCAL_HOSTNAME",
            engine="local_hostname",
            address=True,
            node_local=True,
            from_ray=True,
            has_default=False,
            unclaimed="the Ray node IP",
        ),
        Form(HOSTNAME_PATTERN, "one host name or IP of this node, without a scheme; a port behind it is seldom right"),
        BeforeValidator(parse_hostname),
    ] = _field(
        description="Address of this node on the data network, which the client advertises to all others.",
        examples=[HOSTNAME_EXAMPLE, "node-7", "fd00::7"],
    )
    metadata_server: Annotated[
        str,
        Wiring("MOONCAKE_TE_META_DATA_SERVER", engine="metadata_server", address=True, agreed=True, default=P2P),
        Form(METADATA_PATTERN, f"{P2P}, http://host:port/metadata, or etcd://host:port"),
        BeforeValidator(parse_metadata),
    ] = _field(
        description="Metadata endpoint of the Transfer Engine: P2PHANDSHAKE (no server), http://host:port/metadata, "
        "or etcd://host:port.",
        examples=[P2P, "http://10.0.0.5:8080/metadata"],
    )
    protocol: Annotated[
        str,
        Wiring("MOONCAKE_PROTOCOL", engine="protocol", agreed=True, default="rdma"),
        Form(PROTOCOL_PATTERN, f"one of {', '.join(PROTOCOLS)}, in lower case", choices=PROTOCOLS),
        BeforeValidator(parse_protocol),
    ] = _field(description="Transfer protocol, normally tcp or rdma.", examples=["tcp", "rdma"])
    device_name: Annotated[
        str,
        Wiring(
            "MOONCAKE_DEVICE",
            engine="rdma_devices",
            node_local=True,
            default="",
            unclaimed="empty; Mooncake picks",
        ),
        Form(DEVICE_PATTERN, "names of RDMA devices as ibv_devices prints them, separated by commas"),
        BeforeValidator(parse_device_name),
    ] = _field(
        description="RDMA device of this node, or several separated by commas. Prefer the variable where names differ "
        "by node.",
        examples=["mlx5_0", "mlx5_0,mlx5_1"],
    )
    global_segment_size: Annotated[
        int,
        Wiring("MOONCAKE_GLOBAL_SEGMENT_SIZE", engine="global_segment_size", contributed=True, default="8gb"),
        _SIZE,
        BeforeValidator(parse_size),
    ] = _field(
        description="Memory that one client of each training node contributes to the Store, in bytes or with a unit. "
        "Units are powers of 1024.",
        examples=["2gb", "8gb", 2147483648],
    )
    local_buffer_size: Annotated[
        int,
        Wiring("MOONCAKE_LOCAL_BUFFER_SIZE", engine="local_buffer_size", default="32gb"),
        _SIZE,
        BeforeValidator(parse_size),
    ] = _field(
        description="Transfer and staging memory of every client, in bytes or with a unit. Each process of a node has "
        "its own.",
        examples=["2gb", "32gb", 2147483648],
    )
    chunk_bytes: Annotated[
        int | None, Wiring(None, unclaimed="Mooncake's own, 64 MiB"), _CHUNK, BeforeValidator(_optional_size)
    ] = _field(
        description="Chunk size of structured-object puts, in bytes or with a unit.",
        examples=["64mb", 67108864],
        default=None,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuses a subclass that declares a field of the table anew: its variable and default would be lost unseen.

        Raises:
            TypeError: there is such a field.
        """
        super().__pydantic_init_subclass__(**kwargs)
        anew = table_names(StoreSettings) - table_names(cls)
        if anew:
            raise TypeError(f"{cls.__name__} declares {', '.join(sorted(anew))} anew; give it a value as an argument")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The precedence: the order of these four, here and nowhere else. A subclass's own fields are read as usual."""
        world = World.asked_through(init_settings)
        table = (
            InitKwargsSource(settings_cls, world),
            EnvironmentSource(settings_cls, world),
            RayNodeSource(settings_cls, world),
            DefaultSource(settings_cls, world),
        )
        if not has_own_fields(settings_cls):
            return table
        ordinary = (env_settings, dotenv_settings, file_secret_settings)
        return (*table, *(OwnFieldsSource(settings_cls, source) for source in ordinary))

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What repr and str show: passwords masked."""
        for name, value in super().__repr_args__():
            yield name, masked(value) if isinstance(value, str) else value


FIELDS: tuple[FieldSpec, ...] = field_specs(StoreSettings)
"""The table, row by row."""

BY_VARIABLE: dict[str, FieldSpec] = {spec.wiring.variable: spec for spec in FIELDS if spec.wiring.variable}
"""The fields that have a variable, by its name."""
