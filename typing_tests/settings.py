"""The settings model, alone and inside other models. What is marked as an error must be one."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from typing_extensions import assert_type

from mooncake_config import StoreSettings


class Nested(BaseSettings):
    """An application with our settings as a field."""

    model_config = SettingsConfigDict(env_prefix="TRAIN_", env_nested_delimiter="__")

    store: StoreSettings = Field(default_factory=StoreSettings)


class Extended(StoreSettings):
    """An application whose settings are ours and some more."""

    epochs: int = 1


def good_use() -> None:
    """No field has to be given, since a source may have it."""
    assert_type(StoreSettings(), StoreSettings)
    assert_type(StoreSettings(protocol="tcp", global_segment_size=2 << 30).protocol, str)
    assert_type(StoreSettings.model_validate({"global_segment_size": "2gb"}), StoreSettings)
    assert_type(Nested().store.local_buffer_size, int)
    assert_type(Extended(epochs=3, protocol="tcp").epochs, int)


def wrong_use(settings: StoreSettings) -> None:
    """What a type checker has to refuse."""
    StoreSettings(protocol=3)  # type: ignore[arg-type]  # wrong on purpose
    StoreSettings(protocl="tcp")  # type: ignore[call-arg]  # wrong on purpose
    StoreSettings(global_segment_size="2gb")  # type: ignore[arg-type]  # wrong on purpose
    _ = settings.protocl  # type: ignore[attr-defined]  # wrong on purpose
