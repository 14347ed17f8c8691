"""The description of an experiment: what it accepts, what it refuses and how it says so."""

import math
import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from slimfl.errors import RequestError
from slimfl.experiment import CHANNELS, KEYS, Experiment, build, dump, read_toml
from tests.asking import load

NAN = math.nan
#: Words of the validator or of Python that mean nothing to somebody who writes TOML.
JARGON = re.compile(
    r"pydantic|https?://|<class|instance of|tuple|field required|after validation|validation error"
    r"|value error|value_error|type=|input_value|Literal|\b\w+Section\b|Traceback"
)


def refusal(values):
    """The sentence with which these values are refused, checked for its form."""
    with pytest.raises(RequestError) as caught:
        build(values)
    return str(caught.value)


def nested(dotted, value):
    for part in reversed(dotted.split(".")):
        value = {part: value}
    return value


def set_to(text, **values):
    (experiment,) = load(overrides=[text], **values)
    return experiment


# unknown keys


@pytest.mark.parametrize("key", KEYS)
def test_a_mistyped_key_is_refused_with_the_key_that_was_meant(key):
    section, dot, last = key.rpartition(".")
    typo = section + dot + last[: len(last) // 2] + last[len(last) // 2 + 1 :]
    message = refusal(nested(typo, 1))
    assert f"'{typo}'" in message
    assert f"'{key}'" in message


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("trainning", "training"),
        ("raido", "radio"),
        ("modle", "model"),
        ("federaton", "federation"),
    ],
)
def test_a_mistyped_section_is_refused_with_the_section_that_was_meant(given, meant):
    message = refusal({given: {}})
    assert f"'{given}'" in message
    assert re.search(rf"\b{meant}\b", message)


def test_a_key_like_no_other_is_refused_without_a_wild_guess():
    message = refusal({"xyzzy": 1})
    assert "'xyzzy'" in message
    assert "did you mean" not in message


def test_keys_are_those_of_a_dumped_experiment_and_the_absent_ones():
    def leaves(tree, where=()):
        for key, value in tree.items():
            if isinstance(value, dict) and not key.endswith("options"):
                yield from leaves(value, (*where, key))
            else:
                yield ".".join((*where, key))

    assert set(leaves(build({}).model_dump())) == set(KEYS)


# wrong values: each row is the key, a wrong value, and a word that the sentence must have

WRONG = [
    # one per kind of number: its bounds, not finite, no number, a list of them, a table
    ("data.alpha", 0, "greater than 0"),
    ("data.alpha", NAN, "finite"),
    ("data.alpha", "a lot", "number"),
    ("data.alpha", [1.0], "number"),
    ("data.alpha", {"x": 1}, "number"),
    ("data.alpha", 1e-320, "at least"),  # a formula would overflow
    ("federation.dropout", 1, "less than 1"),
    ("radio.noise_dbm", 1e308, "300"),
    ("rounds", 0, "1"),
    ("rounds", 2.5, "integer"),
    ("seed", 2**63, "64 bits"),
    ("federation.devices", 10**9, "1000000"),  # memory would not do
    # one per kind of word
    ("data.partition", "random", "dirichlet, dirichlet-equal, iid, shards"),
    ("training.optimiser", 3, "adam"),
    ("training.nesterov", "maybe", "boolean"),
    ("radio.accounting", "mine", "true, paper"),
    ("radio.channel", "godo", "good, poor"),
    ("radio.channel", "custom", "noise_dbm"),
    ("radio.channel", 7, "good, poor"),
    ("method", 3, "string"),
    ("data.dir", 5, "path"),
    ("data.dataset", "x" * 5000, "characters"),
    ("data.dataset", "a\0b", "control characters"),
    ("data.dataset", "\udc80", "Unicode"),
    # one per kind of list
    ("model.widths", [1.0, 0.5], "ascending"),
    ("model.widths", [0.0, 1.0], "positive"),
    ("model.widths", [], "ascending"),
    ("model.widths", [0.5], "1.0"),
    ("model.widths", ["half", 1.0], "number"),
    ("model.widths", 0.5, "0.5"),
    ("model.widths", [1e-9, 1.0], "0.001"),
    ("model.widths", [k / 100 for k in range(1, 101)], "at most 32"),
    ("training.weights", [0.2, 0.3, 0.5], "3 values for 2 widths"),
    ("training.weights", [NAN, 0.5], "finite"),
    ("training.betas", [0.9], "0.9"),
    ("training.betas", [0.9, 0.99, 0.999], "2"),
    ("training.betas", [0.9, 1.0], "less than"),  # torch would raise in the middle of a run
    ("radio.split", [0.8, 0.3], "sum to 1"),
    ("radio.split", [1.2, -0.2], "greater than 0"),  # the number is blamed, not the list
    ("radio.split", "best", "optimal"),
    ("radio.split", 0.8, "list"),  # the paper's lambda; the sentence must tell how to write it
    ("radio.spectral_efficiency", "fast", "number"),
    ("radio.spectral_efficiency", [1.5, 1.5, 1.5], "3 values for 2 widths"),
    ("track", ["excel"], "tensorboard"),
    ("track", "wandb", "wandb"),
    # options of a part
    ("model.options", 3, "3"),
    ("model.options", {"a": [[[[[[[[[1]]]]]]]]]}, "nested too deeply"),
    ("model.options", {"a": 10**400}, "64 bits"),
]


@pytest.mark.parametrize(
    ("key", "value", "word"), WRONG, ids=[f"{key}={value!r}"[:60] for key, value, _ in WRONG]
)
def test_a_wrong_value_is_refused_in_one_sentence_that_names_key_and_remedy(key, value, word):
    message = refusal(nested(key, value))
    assert "\n" not in message
    assert len(message) < 200
    assert key.rpartition(".")[2] in message
    assert word in message
    assert not JARGON.search(message), f"not a user's words: {message}"


@pytest.mark.parametrize("section", ["data", "model", "training", "radio", "federation"])
@pytest.mark.parametrize("value", [3, "good", None, [1, 2]])
def test_a_section_that_is_given_a_single_value_is_refused_by_name(section, value):
    message = refusal({section: value})
    assert f"'{section}'" in message
    assert "section" in message
    assert not JARGON.search(message)


@pytest.mark.parametrize("value", [[1], {}, ["good", "poor"]])
def test_a_channel_that_is_no_name_is_refused_and_does_not_crash(value):
    assert "channel" in refusal({"radio": {"channel": value}})


@pytest.mark.parametrize("key", ["rounds", "federation.devices", "data.alpha", "radio.noise_dbm"])
def test_true_is_not_taken_for_the_number_one(key):
    assert key in refusal(nested(key, True))


def test_theorem1_constants_and_nesterov_are_checked_together():
    assert "strong_convexity" in refusal({"training": {"strong_convexity": 2.0}})
    assert "momentum" in refusal({"training": {"nesterov": True, "momentum": 0}})
    experiment = build({"training": {"strong_convexity": 2.0, "smoothness": 2.0}})
    assert experiment.training.strong_convexity == 2.0


def test_values_per_segment_follow_the_number_of_widths():
    experiment = build(
        {
            "model": {"widths": [0.25, 0.5, 1.0]},
            "training": {"weights": [0.2, 0.3, 0.5]},
            "radio": {"split": [0.7, 0.2, 0.1], "spectral_efficiency": [1, 1.5, 2]},
        }
    )
    assert experiment.radio.split == (0.7, 0.2, 0.1)
    assert "2 values for 3 widths" in refusal(
        {"model": {"widths": [0.25, 0.5, 1.0]}, "radio": {"split": [0.8, 0.2]}}
    )


def test_an_experiment_never_changes():
    experiment = build({})
    with pytest.raises(ValidationError):
        experiment.rounds = 3
    with pytest.raises(ValidationError):
        experiment.radio.noise_dbm = -1.0


# overrides from the command line


@pytest.mark.parametrize(
    ("text", "read", "value"),
    [
        ("radio.noise_dbm=-40", lambda e: e.radio.noise_dbm, -40.0),
        ("radio.noise_dbm = -45.5 ", lambda e: e.radio.noise_dbm, -45.5),
        ("training.learning_rate=1e-2", lambda e: e.training.learning_rate, 0.01),
        ("training.nesterov=true", lambda e: e.training.nesterov, True),
        ("training.nesterov=false", lambda e: e.training.nesterov, False),
        ("radio.split=[0.7, 0.3]", lambda e: e.radio.split, (0.7, 0.3)),
        ("radio.split=0.7,0.3", lambda e: e.radio.split, (0.7, 0.3)),
        ("radio.split=optimal", lambda e: e.radio.split, "optimal"),
        ("model.widths=0.25,1.0", lambda e: e.model.widths, (0.25, 1.0)),
        ("data.dataset=mnist", lambda e: e.data.dataset, "mnist"),
        ("data.dataset='my data'", lambda e: e.data.dataset, "my data"),
        ("data.dataset=/a/b=c", lambda e: e.data.dataset, "/a/b=c"),
        ("data.dir=/some/where", lambda e: str(e.data.dir), "/some/where"),
        (
            "model.options={channels = [8, 8, 16]}",
            lambda e: e.model.options["channels"],
            [8, 8, 16],
        ),
        ("model.options.channels=8,8,16", lambda e: e.model.options["channels"], [8, 8, 16]),
    ],
)
def test_set_reads_the_literal(text, read, value):
    found = read(set_to(text))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["radio.noise_dbm", "=3", "", " = 3"])
def test_set_without_key_or_value_is_refused(text):
    with pytest.raises(RequestError, match="key=value"):
        load(overrides=[text])


def test_set_into_something_that_is_no_section_is_refused(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text("[data]\nalpha = 1.0\n")
    with pytest.raises(RequestError, match=r"data\.alpha\.x"):
        load(file, overrides=["data.alpha.x=1"])
    with pytest.raises(RequestError, match="rounds"):
        load(overrides=["rounds.x=1"])


def test_the_request_wins_over_the_file(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text("rounds = 3\n[data]\nalpha = 0.1\nmin_samples = 7\n")
    (experiment,) = load(file)
    assert (experiment.rounds, experiment.data.alpha) == (3, 0.1)
    (experiment,) = load(file, overrides=["data.alpha=0.2"], rounds=None)
    assert (experiment.data.alpha, experiment.data.min_samples, experiment.rounds) == (0.2, 7, 3)
    (experiment,) = load(file, data__alpha=0.4)
    assert (experiment.data.alpha, experiment.rounds) == (0.4, 3)


def test_lists_of_methods_and_seeds_give_every_combination_once():
    experiments = load(overrides=["seed=1,2,3"], method=["slimfl", "vanilla-0.5x"], rounds=4)
    found = [(e.method, e.seed) for e in experiments]
    assert sorted(found) == sorted((m, s) for m in ("slimfl", "vanilla-0.5x") for s in (1, 2, 3))
    assert all(e.rounds == 4 for e in experiments)
    rest = [e.model_copy(update={"method": "", "seed": 0}) for e in experiments]
    assert all(one == rest[0] for one in rest)


def test_lists_in_a_file_expand_too(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text('method = ["slimfl", "vanilla-1.0x"]\nseed = [0, 1]\n')
    assert len(load(file)) == 4


@pytest.mark.parametrize("text", ["method = []", "seed = []"])
def test_an_empty_list_of_methods_or_seeds_is_refused(tmp_path, text):
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    with pytest.raises(RequestError, match="at least one"):
        load(file)


def test_one_bad_entry_in_a_list_is_refused():
    with pytest.raises(RequestError, match="seed"):
        load(seed=[0, -1])


# files


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (None, "no file"),
        (b"rounds = = 3", "TOML"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"rounds = 3\nrounds = 4", "TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path, write, words):
    file = tmp_path / "experiment.toml"
    if write is not None:
        file.write_bytes(write)
    with pytest.raises(RequestError) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(RequestError, match="cannot be read"):
        read_toml(tmp_path)


# dump and back

numbers = st.floats(0.01, 100, allow_nan=False)


@st.composite
def experiments(draw):
    inner = draw(st.lists(st.integers(1, 99), max_size=3, unique=True))
    widths = [*(n / 100 for n in sorted(inner)), 1.0]
    count = len(widths)
    per_segment = st.lists(numbers, min_size=count, max_size=count)
    shares = draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count))
    values = {
        "method": draw(st.sampled_from(["slimfl", "vanilla-0.5x"])),
        "seed": draw(st.integers(0, 2**62)),
        "rounds": draw(st.integers(1, 10**6)),
        "track": draw(st.lists(st.sampled_from(["tensorboard", "wandb"]), max_size=2)),
        "data": {
            "alpha": draw(numbers),
            "dataset": draw(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=8)),
            "dir": draw(st.sampled_from([None, "/a b/ü"])),
            "train_samples": draw(st.none() | st.integers(1, 9)),
        },
        "model": {
            "widths": widths,
            "options": draw(st.sampled_from([{}, {"channels": [8, 8, 16], "bias": True}])),
        },
        "training": {
            "weights": draw(st.none() | per_segment),
            draw(st.sampled_from(["epochs", "steps"])): draw(st.integers(1, 9)),
            "betas": [draw(st.floats(0, 0.9)), 0.5],
        },
        "radio": {
            "noise_dbm": draw(st.none() | st.floats(-200, 50) | st.sampled_from([-51, -40])),
            "spectral_efficiency": draw(numbers | per_segment),
            "split": draw(
                st.sampled_from(
                    [None, "optimal", "optimal-numeric", [s / sum(shares) for s in shares]]
                )
            ),
        },
    }
    return build(values)


@settings(deadline=None, max_examples=60)
@given(experiments())
def test_dump_read_build_gives_the_same_experiment(experiment):
    assert build(tomllib.loads(dump(experiment))) == experiment


def test_a_dumped_file_gives_the_same_experiment_and_ignores_provenance(tmp_path):
    experiment = build({"radio": {"noise_dbm": -45.0}, "data": {"alpha": 0.1}})
    file = tmp_path / "experiment.toml"
    file.write_text(dump(experiment, version="1", data={"sha256": "ab"}))
    assert read_toml(file)["provenance"]["data"]["sha256"] == "ab"
    assert load(file) == [experiment]


def test_a_dump_has_every_value_resolved():
    tree = tomllib.loads(dump(build({})))
    assert tree["radio"]["noise_dbm"] == -40.0
    assert tree["training"]["steps"] == 100
    assert tree["model"]["widths"] == [0.5, 1.0]


# channel and noise


@pytest.mark.parametrize(
    ("radio", "channel", "noise_dbm"),
    [
        ({}, "poor", -40.0),
        ({"channel": "good"}, "good", -51.0),
        ({"channel": "poor"}, "poor", -40.0),
        ({"noise_dbm": -51.0}, "good", -51.0),
        ({"noise_dbm": -51}, "good", -51.0),
        ({"noise_dbm": -40}, "poor", -40.0),
        ({"noise_dbm": -45.5}, "custom", -45.5),
        ({"channel": "custom", "noise_dbm": -45.5}, "custom", -45.5),
        ({"channel": "custom", "noise_dbm": -40}, "poor", -40.0),
        ({"channel": "good", "noise_dbm": -51}, "good", -51.0),
        ({"channel": "good", "noise_dbm": None}, "good", -51.0),
    ],
)
def test_channel_and_noise_agree_whichever_is_given(radio, channel, noise_dbm):
    section = build({"radio": radio}).radio
    assert (section.channel, section.noise_dbm, section.noise) == (channel, noise_dbm, noise_dbm)


def test_the_presets_are_the_calibrated_ones():
    assert CHANNELS == {"good": -51.0, "poor": -40.0}


# local work


def test_local_work_is_steps_or_epochs_never_both(tmp_path):
    assert (build({}).training.steps, build({}).training.epochs) == (100, None)
    epochs = build({"training": {"epochs": 2}})
    assert (epochs.training.steps, epochs.training.epochs) == (None, 2)
    message = refusal({"training": {"epochs": 2, "steps": 3}})
    assert "epochs" in message
    assert "steps" in message
    file = tmp_path / "experiment.toml"
    file.write_text(dump(build({"training": {"steps": 5}})))
    (experiment,) = load(file, overrides=["training.epochs=2"])
    assert (experiment.training.steps, experiment.training.epochs) == (None, 2)
    file.write_text(dump(epochs))
    (experiment,) = load(file, training__steps=7)
    assert (experiment.training.steps, experiment.training.epochs) == (7, None)


def test_the_defaults_are_the_papers_setting():
    experiment = Experiment()
    assert experiment == build({})
    assert experiment.model.widths == (0.5, 1.0)
    radio = experiment.radio
    assert (radio.power_dbm, radio.distance_m, radio.path_loss_exponent) == (23.0, 100.0, 2.5)
    assert (radio.bandwidth_hz, radio.spectral_efficiency) == (75e6, 1.5)
    assert (experiment.training.optimiser, experiment.training.learning_rate) == ("adam", 1e-3)
    assert experiment.federation.devices == 10
    assert experiment.federation.missing == "keep"
    assert experiment.data.dataset == "fashion-mnist"


def test_numbers_at_their_limits_still_make_a_link():
    """No value that is accepted makes the radio's formulas overflow."""
    from itertools import product

    import numpy as np

    from slimfl.radio import optimal_split_numeric, outage_link, segment_rates, signal

    for noise, power, distance, exponent, rate in product(
        (-300, 300), (-300, 300), (1e-3, 1e9), (2, 10), (1e-6, 100)
    ):
        section = build(
            {
                "radio": {
                    "noise_dbm": noise, "power_dbm": power, "distance_m": distance,
                    "path_loss_exponent": exponent, "spectral_efficiency": rate,
                    "implementation_loss_db": 100 if noise > 0 else -100, "split": "optimal",
                }
            }
        ).radio  # fmt: skip
        with np.errstate(all="raise", under="ignore"):
            link = outage_link(section)
            assert 0 < link.noise_to_power < math.inf
            split = optimal_split_numeric(segment_rates(section, 2), link.noise_to_power)
            assert sum(split) == pytest.approx(1)
            probabilities = link.decoding_probabilities(signal(section, ((0, 1),), 2).coding)
            assert np.isfinite(probabilities).all()


def test_options_of_an_own_method_are_for_that_method_alone():
    both = ["slimfl", "some.module:Method"]
    plain, own = load(None, method=both, method_options={"weak": 3})
    assert (plain.method, plain.method_options) == ("slimfl", {})
    assert (own.method, own.method_options) == ("some.module:Method", {"weak": 3})
    with pytest.raises(RequestError, match="method_options works only with your own part"):
        load(None, method="slimfl", method_options={"weak": 3})
