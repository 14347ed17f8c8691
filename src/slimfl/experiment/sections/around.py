"""`[flower]`, `[[callbacks]]` and `[[stages]]`: what is around a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from slimfl.experiment.sections.section import Seconds, Section


class FlowerSection(Section):
    """The `flower` engine: devices in other processes and on other machines."""

    device_engine: Literal["auto", "torch", "native"] = "auto"
    """The engine that trains on the devices and evaluates on the server."""
    quorum: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of a round's devices that must answer; with fewer the run stops and can be resumed."""
    round_timeout_s: Seconds = 600.0
    """How long the server waits for a device's answer in a round."""
    wait_s: Seconds = 300.0
    """How long the server waits for a quorum of devices before it stops."""
    identity: Literal["registered", "claimed"] = "registered"
    """Which node is device 3 in a deployment: the node whose key was registered under the name
    `device-3`, or any node that claims to be (`partition-id=3` in its node config)."""


class CallbackSection(Section):
    """Who else watches a run."""

    name: str
    """`early-stopping`, or `package.module:Name`, a class derived from `slimfl.Callback`."""
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class StageSection(CallbackSection):
    """What happens to an upload on its way."""

    name: str
    """`package.module:Name`, a class derived from `slimfl.round.Stage`."""
