"""The help of every command: complete sentences, plain brackets, and correct defaults."""

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer.main

from slimfl import experiment as config
from slimfl.cli.app import app

ROOT = typer.main.get_command(app)


def commands(command: Any = ROOT, name: str = "slimfl") -> Iterator[tuple[str, Any]]:
    yield name, command
    for sub in getattr(command, "places", ()):
        yield from commands(command.get_command(None, sub), f"{name} {sub}")


ALL = dict(commands())


def help_of(name: str, width: int = 80) -> str:
    command = ALL[name]
    context = command.make_context(
        name, [], resilient_parsing=True, terminal_width=width, max_content_width=width
    )
    return command.get_help(context)


@pytest.mark.parametrize("name", ALL)
def test_help_is_plain_and_fits(name):
    text = help_of(name)
    assert "\\" not in text
    assert text.lower().count("arguments:\n") <= 1
    assert max(map(len, text.splitlines())) <= 80
    summaries = text.partition("Commands:")[2]
    assert "..." not in summaries, "a summary was cut off"


@pytest.mark.parametrize("name", ALL)
def test_every_argument_and_option_says_what_it_is_for(name):
    for parameter in options_of(name).values():
        assert parameter.help, parameter.name


@pytest.mark.parametrize("name", ALL)
def test_an_option_that_may_be_left_out_says_what_holds_then(name):
    """A flag that is off, and what may be repeated or adds something, needs no default."""
    extra = {"superlink", "root_certificates", "set_", "grid", "trust", "experiment"}
    for parameter in options_of(name).values():
        if parameter.required or getattr(parameter, "is_flag", False) or parameter.name in extra:
            continue
        assert parameter.show_default, (name, parameter.name)
        assert parameter.default is not None or isinstance(parameter.show_default, str), (
            name,
            parameter.name,
        )


def options_of(name: str) -> dict[str, Any]:
    command = ALL[name]
    context = command.make_context(name, [], resilient_parsing=True)
    return {one.name: one for one in command.get_params(context)}


def test_an_option_for_a_key_has_its_default_and_its_words():
    run = options_of("slimfl run")
    assert run["channel"].show_default == config.build({}).radio.channel
    assert run["channel"].help.startswith("good, poor, or custom")
    context = ALL["slimfl run"].make_context("run", [], resilient_parsing=True)
    words = [each.value for each in run["engine"].shell_complete(context, "na")]
    assert words == ["native"]


def test_the_default_methods_and_split_are_those_that_are_said():
    from slimfl.radio import power_split, segment_rates
    from slimfl.runs.api import DEFAULT_METHODS

    assert options_of("slimfl run")["method"].show_default == ",".join(DEFAULT_METHODS)
    split = options_of("slimfl link")["split"]
    assert split.show_default == "0.8,0.2 for two segments, else optimal"
    radio = config.build({}).radio
    assert power_split(radio, segment_rates(radio, 2)) == (0.8, 0.2)


def test_the_help_of_cost_names_every_built_in_model():
    from slimfl.nn.models import MODELS

    (model,) = (p for p in ALL["slimfl cost"].params if p.name == "model")
    assert model.help.split(", ")[:-1] == list(MODELS)


def test_a_default_is_shown_without_parentheses():
    text = " ".join(help_of("slimfl run").split())
    assert "sets the noise. [default: poor]" in text
    assert re.findall(r"default: \(", text) == []


def test_a_wrong_command_still_gets_a_suggestion():
    context = ROOT.make_context("slimfl", ["reprot"], resilient_parsing=False)
    with pytest.raises(click.UsageError, match="report"):
        ROOT.invoke(context)
