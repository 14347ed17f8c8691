"""Contradictions in a request: the same answer from a file, `--set`, flags and Python."""

import itertools

import pytest
import tomli_w

import slimfl
from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.experiment import KEYS
from slimfl.experiment.loading import RIVALS
from slimfl.experiment.short_names import HINTS, SHORT_NAMES, short_name
from tests import asking

#: For every key with rivals a value that no rival agrees with, and what else it needs.
VALUES = {
    "radio.channel": "good",
    "radio.noise_dbm": -41.0,
    "radio.noise_density_dbm_hz": -174.0,
    "radio.fading_correlation": 0.5,
    "radio.doppler_hz": 2.0,
    "training.epochs": 2,
    "training.steps": 3,
    "population.preset": "cell",
    "population.file": "devices.csv",
    "population.classes": [{"name": "one"}],
}
NEEDED = {"radio.fading_process": "ar1"}
PAIRS = [pair for rivals in RIVALS for pair in itertools.permutations(rivals, 2)]
FLAGS = {**SHORT_NAMES, "seed": "seed", "rounds": "rounds", "engine": "engine"}


def needed(pair):
    return NEEDED if "radio.doppler_hz" in pair else {}


def as_text(key, value):
    literal = " ".join(tomli_w.dumps({"v": value}).split())
    if isinstance(value, list):
        literal = "v = [{name = 'one'}]"  # the only list; the library writes it over several lines
    return f"{key}={literal.removeprefix('v = ')}"


def tree_of(values):
    tree = {}
    config.change(tree, values)
    return tree


def write(path, values):
    path.write_text(tomli_w.dumps(tree_of(values)))
    return path


def from_file(values, here, folder):
    return lambda: asking.load(write(folder / "e.toml", values))


def by_set(values, here, folder):
    return lambda: command(here, [w for k, v in values.items() for w in ("--set", as_text(k, v))])


def by_flag(values, here, folder):
    words = []
    for key, value in values.items():
        short = next((name for name, one in FLAGS.items() if one == key), None)
        as_set = ["--set", as_text(key, value)]
        words += as_set if short is None else [f"--{short.replace('_', '-')}", str(value)]
    return lambda: command(here, words)


def in_python(values, here, folder):
    return lambda: slimfl.Experiment.read({}, **tree_of(values))


def in_compare(values, here, folder):
    return lambda: slimfl.compare(**tree_of({key: [value] for key, value in values.items()}))


WAYS = [from_file, by_set, by_flag, in_python, in_compare]


def command(here, words):
    status, out, error = here("run", *words)
    assert (status, out, error.count("\n")) == (2, "", 1), error
    raise RequestError(error.removeprefix("slimfl: ").rstrip("\n"))


def refusals(values, here, folder):
    found = set()
    for way in WAYS:
        with pytest.raises(RequestError) as caught:
            way(values, here, folder)()
        found.add(str(caught.value))
    return found


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_rivals_in_one_request_are_refused_by_every_way_with_one_sentence(pair, here, tmp_path):
    (sentence,) = refusals({**needed(pair), **{key: VALUES[key] for key in pair}}, here, tmp_path)
    assert all(key in sentence for key in pair), sentence
    assert not list(tmp_path.glob("run*"))


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_a_rival_replaces_what_the_file_says(pair, tmp_path):
    before, after = pair
    file = write(tmp_path / "e.toml", {**needed(pair), before: VALUES[before]})
    given = tree_of({**needed(pair), after: VALUES[after]})
    alone = config.build(given)
    assert asking.load(file, [as_text(after, VALUES[after])]) == [alone]
    assert asking.load(file, **{after.replace(".", "__"): VALUES[after]}) == [alone]
    # a folder's own file has every value, also those that come from a preset
    file.write_text(config.dump(asking.load(file)[0]))
    assert asking.load(file, [as_text(after, VALUES[after])]) == [alone]


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [("seed", 0, 1), ("rounds", 2, 3), ("training.steps", 3, 4), ("data.alpha", 0.1, 1.0),
     ("radio.channel", "good", "poor"), ("radio.shadowing_db", 3.0, 4.0)],
)  # fmt: skip
def test_a_key_with_two_values_is_refused_whatever_the_order(key, one, other, here):
    name = key.replace(".", "__")
    flag = next((f"--{short.replace('_', '-')}" for short, k in FLAGS.items() if k == key), None)
    ways = {"set": lambda v: ["--set", as_text(key, v)]}
    if flag:
        ways["flag"] = lambda v: [flag, str(v)]
    for way, again in itertools.product(ways.values(), repeat=2):
        for a, b in ((one, other), (other, one)):
            with pytest.raises(
                RequestError, match=r"is given twice, as .* and as .*; give it once"
            ):
                command(here, [*way(a), *again(b)])
    for a, b in ((one, other), (other, one)):
        with pytest.raises(RequestError, match=f"{key} is given twice"):
            asking.load(None, [as_text(key, a)], **{name: b})


def test_what_agrees_is_no_contradiction(tmp_path):
    (one,) = asking.load(None, ["radio.channel=poor", "data.alpha=1"], noise_dbm=-40, alpha=1.0)
    assert (one.radio.channel, one.radio.noise_dbm, one.data.alpha) == ("poor", -40, 1)
    asking.load(None, ["model.widths=0.5,1.0", "seed=3"], widths=[0.5, 1], seed=[3])
    asking.load(None, ["method=slimfl"], method=["slimfl"])


def test_a_section_given_as_a_table_is_its_keys(tmp_path):
    file = write(tmp_path / "e.toml", {"training.epochs": 2, "training.batch_size": 4})
    (one,) = asking.load(file, training={"steps": 3})
    assert (one.training.steps, one.training.batch_size) == (3, 4)
    for given in ({"training": {"epochs": 1}, "steps": 3}, {"steps": 3, "training": {"epochs": 1}}):
        with pytest.raises(RequestError, match=r"training\.epochs or training\.steps, not both"):
            asking.load(**given)
    with pytest.raises(RequestError, match=r"model\.options or model\.options\.bias, not both"):
        asking.load(None, ["model.options.bias=true", "model.options={a = 1}"])


@pytest.mark.parametrize("name", SHORT_NAMES)
def test_a_short_name_is_an_option_for_its_key(name, here, monkeypatch):
    asked = []
    monkeypatch.setattr(config, "points", lambda source, given: asked.append(given) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        here("run", f"--{name.replace('_', '-')}", "1")
    assert [SHORT_NAMES[name] in each for each in asked] == [True]


def said(here, *words):
    return "".join(map(str, here(*words)))


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("lr", "training.learning_rate"),
        ("num_clients", "federation.devices"),
        ("clients", "federation.devices"),
        ("snr", "radio.noise_dbm"),
        ("fraction_fit", "federation.participation"),
        ("cohort_size", "federation.participation"),
        ("num_train_epochs", "training.epochs"),
        ("steps_per_epoch", "training.steps"),
        ("optimizer", "training.optimiser"),
        ("num_server_rounds", "rounds"),
        ("fedyogi", "server.optimiser"),
        ("num_gpus", "device"),
        ("early_stopping_patience", "callbacks"),
        ("max_eval_samples", "data.test_samples"),
        ("local_bs", "training.batch_size"),
        ("K", "federation.devices"),
        ("num_workers", "threads"),
    ],
)
def test_words_of_other_libraries_lead_to_our_key(word, key, here):
    for asked in (word, f"training.{word}", word.upper()):
        with pytest.raises(RequestError, match=f"did you mean '{key}'"):
            asking.load(overrides=[f"{asked}=1"])
    with pytest.raises(RequestError, match=f"did you mean '{key}'"):
        config.build({word: 1})
    assert key in said(here, "keys", word)
    short = short_name(key) if short_name(key) in FLAGS else None
    option = f"--{short.replace('_', '-')}" if short else f"--set {key}=VALUE"
    assert option in said(here, "run", f"--{word.replace('_', '-')}", "1")


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ("training.rounds", "rounds"),  # another section's
        ("modulation", "radio.modulation"),  # not the section population
        ("training.num_cleints", "federation.devices"),  # a misspelt word of another library
        ("training.learning-rte", "training.learning_rate"),
    ],
)
def test_a_key_in_another_place_or_misspelt_is_found(asked, key):
    with pytest.raises(RequestError, match=f"unknown key '{asked}'; did you mean '{key}'"):
        asking.load(overrides=[f"{asked}=1"])


@pytest.mark.parametrize("word", ["training.metrics", "training.logging", "run_name", "loss"])
def test_what_is_nothing_here_gets_no_wrong_hint(word):
    with pytest.raises(RequestError, match="; `slimfl keys` lists the keys"):
        asking.load(overrides=[f"{word}=1"])


def test_a_name_in_place_of_a_section_leads_to_its_key():
    with pytest.raises(RequestError, match=r"give keys inside it, such as 'data\.dataset'"):
        slimfl.Experiment(data="mnist")


def test_every_hint_names_a_key_and_hides_none():
    keys = set(KEYS)
    assert set(HINTS.values()) <= keys
    assert not HINTS.keys() & (keys | SHORT_NAMES.keys())


@pytest.mark.parametrize("words", [("dta",), ("data", "shw")])
def test_a_suggestion_is_made_once(words, here):
    assert said(here, *words).count("Did you mean") == 1


@pytest.mark.parametrize(("method", "ours"), [("FedAvg", "vanilla-1.0x"), ("fedprox", "proximal")])
def test_methods_of_other_libraries_lead_to_ours(method, ours):
    with pytest.raises(RequestError, match=f"here it is .*{ours}"):
        asking.run(method=method, dataset="synthetic", rounds=1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"radio": {"spectral_efficiency": [1.0, 2.0]}}, {"radio": {"spectral_efficiency": 1.5}}),
        (
            {"privacy": {"clip_norm": 1, "noise_multiplier": 1}},
            {"privacy": {"noise_multiplier": 0}},
        ),
        ({"radio": {"noise_dbm": -41.0}}, {"radio": {"channel": "good"}}),
        ({"training": {"steps": 3}}, {"training": {"epochs": 1}}),
    ],
)
def test_what_follows_from_a_key_follows_its_change_in_a_file_and_in_python(
    before, after, tmp_path
):
    file = tmp_path / "e.toml"
    file.write_text(tomli_w.dumps(before))
    from_file = slimfl.Experiment.read(file, **after)
    assert slimfl.Experiment(**before).change(**after) == from_file
    assert from_file != slimfl.Experiment(**before)
