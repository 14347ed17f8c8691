"""Flower and Ray without the internet: no telemetry, no look-ups, no installations."""

from collections.abc import MutableMapping

#: Environment variables that switch off all traffic to other machines.
SETTINGS = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # silences a notice about accelerators, which a federation does not use
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def stay_offline(environment: MutableMapping[str, str]) -> None:
    """Write the settings into an environment, before Flower or Ray is imported."""
    environment.update(SETTINGS)
