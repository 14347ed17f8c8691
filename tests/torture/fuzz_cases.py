"""Generated command lines and TOML files, from the existing keys and limits.

A case is a function of its number. By construction none trains for long: keys that decide how much
is computed get tiny values, or values that have to be refused.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Lt

from slimfl.experiment import Experiment, Section

#: What a value might be by mistake or by malice, as TOML text.
HOSTILE = [
    "0", "-1", "1", "0.0", "-0.0", "0.5", "1e-320", "5e-324", "1e308", "-1e308", "1e999", "nan",
    "inf", "-inf", "true", "false", "9223372036854775807", "9223372036854775808", "-2147483649",
    "9" * 400, "9" * 5000, f"0x{'f' * 5000}", f"1e{'9' * 400}", '""', '"x"', '"true"', '"nan"',
    "'[/b]'", "'[bold]'", '"<script>"', '"\\u0000"', '"\\u001b[2J"', '"\\n"', '"\\\\"', '"../.."',
    f'"{"x" * 300}"', f'"{"x" * 5000}"', '"é😀"', '"~nobody/x"', '"/dev/zero"', '"/proc/self/mem"',
    "[]", "[[]]", "[[[[1]]]]", "[1, 2]", "[0.5, 1.0]", "[1.0]", "[0.1, 0.2, 1.0]", "[nan, 1.0]",
    '["a", "b"]', "[true]", "[1e308, 1.0]", f"[{', '.join(['0.5'] * 300)}]", "[" * 60 + "]" * 60,
    "[" * 3000 + "]" * 3000, "{}", "{a = 1}", "{a = {b = {c = {d = 1}}}}", "1979-05-27",
    "07:32:00", "1979-05-27T07:32:00Z", "2024-02-31", "'optimal'", "'optimal-numeric'",
    "[0.8, 0.2]", "[0.9999999, 0.0000001]", "[1e-300, 1.0]",
    "{channels = [4, 4, 4]}", "{classes = 1}",
    "{classes = 10000}", "{classes = 'ten'}", "{channels = 3}", "{channels = [0, 0, 0]}",
    "{channels = [1e9, 1, 1]}", "{channels = [1000000000, 1, 1]}", "{in_channels = 3}",
    "{unknown = 1}", "{classes = 12}",
]  # fmt: skip

#: Keys that decide how much is computed, with values that cost little; larger ones are refused.
SIZES: dict[str, list[str]] = {
    "rounds": ["1", "2"],
    "threads": ["1", "2", "1024"],
    "data.train_samples": ["40", "60", "1", "9"],
    "data.test_samples": ["20", "1"],
    "data.min_samples": ["1", "2", "10", "1000000"],
    "training.batch_size": ["1", "8", "1000000"],
    "training.steps": ["1", "2"],
    "training.epochs": ["1", "2"],
    "federation.devices": ["1", "2", "4"],
}
REFUSED_SIZES = [
    "0", "-1", "1.5", "nan", "'x'", "[]", "true", "10000000000", "99999999999999999999", "9" * 5000,
]  # fmt: skip

#: Names that are safe to try: nothing is fetched, started or imported that has an effect.
NAMES: dict[str, list[str]] = {
    "method": ["'slimfl'", "'vanilla-0.5x'", "'vanilla-1.0x'", "'vanilla-1.5x'", "'vanilla-2x'",
               "['slimfl', 'vanilla-0.5x']", "[]", "[[]]", "['slimfl', 3]", "'[/b]'", "'a.b:c'",
               "'math:sqrt'"],
    "training.algorithm": ["'sustrain'", "'nope'", "'math:sqrt'", "'a.b:c'", "':'", "'[/b]'"],
    "radio.model": ["'outage'", "'own'", "'nope'", "'math:sqrt'", "'a.b:c'", "':'", "'[/b]'"],
    "callbacks": ["[]", "['a.b:c']", "['math:sqrt']", "'a.b:c'", "[[]]", "[{name = 3}]"],
    "engine": ["'auto'", "'torch'", "'native'", "'gpu'"],
    "data.dataset": ["'synthetic'", "'fashion-mnist'", "'mnist'", "'.'", "'nowhere'", "'~nobody'",
                     f"'{'x' * 300}'", "'[/b]'", "'/dev'", "'/dev/zero'"],
    "data.dir": ["'.'", "'/nowhere'", f"'{'x' * 300}'", "'~nobody/x'", "'[/b]'"],
    "model.name": ["'ul-mobilenet'", "'nope'", "'math:sqrt'", "'slimfl.nn:nothing'", "'a.b:c'",
                   "':'", "'slimfl.nn:slimmable'", "'..:x'", "'[/b]'"],
    "track": ["[]", "['excel']", "'wandb'", "[['wandb']]"],
    "data.partition": ["'iid'", "'shards'", "'dirichlet'", "'dirichlet-equal'", "'own'"],
    "radio.gains": ["'drawn'", "'measured'"],
    "seed": ["0", "1", "[0, 1]", "9223372036854775807", "9223372036854775808", "[]", "-1"],
}  # fmt: skip

BASE = {
    "rounds": "1", "threads": "1", "data.dataset": "'synthetic'", "data.train_samples": "60",
    "data.test_samples": "20", "data.min_samples": "1", "training.steps": "1",
    "training.batch_size": "8", "federation.devices": "3",
}  # fmt: skip


@dataclass(frozen=True)
class Key:
    """A key with the limits of its number, if it is one."""

    name: str
    annotation: Any
    limits: tuple[float, float] | None


def keys(model: type[Section] = Experiment, where: str = "") -> list[Key]:
    """Every key of an experiment."""
    found: list[Key] = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            found += keys(annotation, f"{where}{name}.")
        else:
            found.append(Key(where + name, annotation, _limits(field.metadata, annotation)))
    return found


def _limits(metadata: list[Any], annotation: Any) -> tuple[float, float] | None:
    low = high = None
    for part in [*metadata, *_nested_metadata(annotation)]:
        for kind, value in (
            (Ge, "ge"), (Gt, "gt"), (Interval, "ge"), (Interval, "gt")
        ):  # fmt: skip
            if isinstance(part, kind) and getattr(part, value) is not None:
                low = getattr(part, value)
        for kind, value in ((Le, "le"), (Lt, "lt"), (Interval, "le"), (Interval, "lt")):
            if isinstance(part, kind) and getattr(part, value) is not None:
                high = getattr(part, value)
    return None if low is None or high is None else (float(low), float(high))


def _nested_metadata(annotation: Any) -> list[Any]:
    found: list[Any] = []
    for part in get_args(annotation):
        for inner in getattr(part, "__metadata__", ()):
            found += getattr(inner, "metadata", [inner])
    return found


KEYS = keys()


def value(random: random.Random, key: Key) -> str:
    """A value for a key: by its kind, near its limits, or hostile."""
    if key.name in SIZES:
        return random.choice(SIZES[key.name] if random.random() < 0.7 else REFUSED_SIZES)
    if key.name in NAMES:
        return random.choice(NAMES[key.name])
    kind = random.random()
    if kind < 0.55 and get_origin(key.annotation) is Literal:
        return repr(random.choice(get_args(key.annotation)))
    if kind < 0.65 and key.limits is not None:
        return _number(random, *key.limits, whole=key.annotation is int)
    return random.choice(HOSTILE)


def _number(random: random.Random, low: float, high: float, whole: bool) -> str:
    inside = random.uniform(low, high)
    if low >= 0 and random.random() < 0.7:
        inside = math.exp(random.uniform(math.log(low or 1e-13), math.log(high)))
    chosen = random.choice(
        [low, high, inside, inside, math.nextafter(low, -math.inf), math.nextafter(high, math.inf)]
    )
    return str(int(chosen)) if whole else repr(chosen)


def toml(random: random.Random) -> bytes:
    """An experiment that is small, in which a few things are as they should not be."""
    values = dict(BASE)
    for key in random.sample(KEYS, random.choice([0, 1, 1, 1, 2, 2, 3, 6])):
        if key.name == "training.epochs":
            values.pop("training.steps", None)
        values[key.name] = value(random, key)
    lines = [f"{name} = {text}" for name, text in values.items()]
    damage = random.random()
    if damage < 0.04:
        lines.insert(random.randrange(len(lines)), random.choice(GARBAGE))
    elif damage < 0.06:
        lines.append(random.choice(lines))
    raw = "\n".join(lines).encode() + b"\n"
    if damage > 0.98:
        raw = raw[: random.randrange(len(raw))]
    elif damage > 0.96:
        spot = random.randrange(len(raw))
        raw = raw[:spot] + bytes([random.randrange(256)]) + raw[spot + 1 :]
    return raw


GARBAGE = [
    "= 3", "[", "[[radio]]", "[radio", "radio = 3", "data = []", "[data.alpha]", "a.b.c.d = 1",
    "nose = 1", "[unknown]", "\x00", "\x1b[2J", "'''", '"' * 3, "provenance = 3", "[provenance]",
    ".".join(["a"] * 3000) + " = 1", "# " + "x" * 10_000, "radio.noise_dbm.x = 1", "'' = 1",
    "'[/b]' = 1", "seed.seed = 1", "data.alpha = 1\ndata.alpha = 2",
]  # fmt: skip

#: What may stand on a command line where a number, a list or a path is expected.
WORDS = [
    "0", "-1", "1", "2", "0.5", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "9" * 400,
    "9" * 5000, "", " ", "x", "[/b]", "[bold]", "0.8,0.2", "0.5,1.0", "1,2,3", ",", ",,", "nan,1",
    "1,nan", "inf,inf", "1e308,1e308", "0.5,0.5", "0.999999,0.000001", "1," * 400 + "1", "true",
    "none", "optimal", "optimal-numeric", "optimal-x", "--", "-h", "x" * 300, "a/" * 200, "é😀",
    "%s", "{0}", "$HOME", "\u202e", "../..", "100", "-100", "300", "-300", "301", "1e12", "0x10",
]  # fmt: skip

PATHS = [
    "out", "out/deep/er", "[/b]", "[bold]x", "file.txt", "file.txt/inside", "x" * 255, "x" * 256,
    "/proc/nowhere", "/dev/null", "/dev/null/x", "fifo", "loop", "new\nline", "é😀", ".", "..", " ",
    "-", "out.png", "[x].html", "toml.toml", "empty", "run", "/dev/zero", "/proc/self/mem",
]  # fmt: skip

LINK = ["--channel", "--noise-dbm", "--spectral-efficiency", "--split", "--segments", "--devices"]
RADIO = ["--power-dbm", "--distance-m", "--path-loss-exponent", "--implementation-loss-db"]
BOUND = ["--weights", "--smoothness", "--strong-convexity", "--delta", "--rounds",
         "--initial-distance-squared"]  # fmt: skip


def _options(random: random.Random, names: list[str], most: int) -> list[str]:
    chosen = random.sample(names, random.randint(0, most))
    return [word for name in chosen for word in (name, random.choice(WORDS))]


def _run(random: random.Random, folder: Path) -> list[str]:
    (folder / "case.toml").write_bytes(toml(random))
    words = ["run", "case.toml", "--out", random.choice(PATHS) if random.random() < 0.2 else "out"]
    words += ["--method", "slimfl"] if random.random() < 0.6 else []
    return words + _changes(random, 0.3)


def _changes(random: random.Random, chance: float) -> list[str]:
    """Changes to a run by --set, of one value or of several."""
    words = []
    while random.random() < chance:
        key = random.choice(KEYS)
        words += ["--set", f"{key.name}={value(random, key).strip(chr(39))}"]
    if random.random() < 0.1:
        words += ["--set", random.choice(["", "=", "a", "a=", "=1", "data=1", "data.=1", "..=1"])]
    if random.random() < 0.05:
        key = random.choice([key for key in KEYS if key.name not in SIZES])
        words += ["--set", f"{key.name}={value(random, key)},{value(random, key)}"]
    if random.random() < 0.05:
        words += ["--set", random.choice(["", "=", "data.alpha=", "data.alpha=1,", "x=1,2"])]
    return words


def _set(random: random.Random, folder: Path) -> list[str]:
    changes = _changes(random, 0.6)
    return ["run", "--method", "slimfl", "--out", "out", *_base(changes), *changes]


def _base(changes: list[str]) -> list[str]:
    """What keeps a run short, but for the keys that are changed."""
    changed = {word.partition("=")[0] for word in changes}
    kept = [f"{key}={text}" for key, text in BASE.items() if key not in changed]
    return [word for text in kept for word in ("--set", text)]


def _run_options(random: random.Random, folder: Path) -> list[str]:
    """The options of a run that have names of their own, never so that it takes long."""
    names = ["--method", "--channel", "--alpha", "--seed", "--data-dir", "--on", "--superlink"]
    words = _options(random, names, 3)
    if "--seed" in words:
        words[words.index("--seed") + 1] = random.choice(["0", "0,1", "x", "", "-1", "9" * 5000])
    if "--on" in words:
        words[words.index("--on") + 1] = random.choice(["", "x", "locale", "ray:/x", "[/b]"])
    method = [] if "--method" in words else ["--method", "slimfl"]
    return ["run", *_base(words), *method, "--out", "out", *words]


def _radio_keys(random: random.Random) -> list[str]:
    """Keys of the radio by --set."""
    radio = [key for key in KEYS if key.name.startswith("radio.")]
    chosen = random.sample(radio, random.randint(1, 3))
    return [
        w for key in chosen for w in ("--set", f"{key.name}={value(random, key).strip(chr(39))}")
    ]


def _link(random: random.Random, folder: Path) -> list[str]:
    words = ["link", *_options(random, [*LINK, *RADIO, "--draws", "--seed"], 4)]
    words += _radio_keys(random) if random.random() < 0.5 else []
    words += ["--explore"] if random.random() < 0.2 else []
    words += ["--out", random.choice(PATHS)] if random.random() < 0.2 else []
    return words + (["--json"] if random.random() < 0.5 else [])


def _bound(random: random.Random, folder: Path) -> list[str]:
    words = ["bound", *_options(random, [*LINK, *BOUND], 4)]
    words += _radio_keys(random) if random.random() < 0.2 else []
    words += ["--out", random.choice(PATHS)] if random.random() < 0.1 else []
    return words + (["--json"] if random.random() < 0.5 else [])


def _cost(random: random.Random, folder: Path) -> list[str]:
    name = random.choice(
        ["ul-mobilenet", "ul-mobilenet", *(n.strip("'") for n in NAMES["model.name"])]
    )
    images = [
        "1,28,28",
        "3,8,8",
        "nan,1,1",
        "1,1,1",
        "0,1,1",
        "1,1",
        "1e3,1e3,1e3",
        "1,1,1.5",
        *WORDS,
    ]
    words = ["cost", name, *_options(random, ["--widths", "--bits-per-parameter"], 2)]
    words += ["--image", random.choice(images)] if random.random() < 0.5 else []
    return words + (["--json"] if random.random() < 0.5 else [])


def _data(random: random.Random, folder: Path) -> list[str]:
    kind = random.choice(["show", "show", "fetch", "list"])
    if kind == "list":
        return ["data", "list"]
    if kind == "fetch":
        return [
            "data",
            "fetch",
            random.choice([*WORDS, "mnist"]),
            "--data-dir",
            random.choice(PATHS),
        ]
    words = ["data", "show", "--dataset", random.choice(["synthetic", "synthetic", *PATHS])]
    words += _options(random, ["--alpha", "--devices", "--partition", "--seed"], 2)
    return words + (["--out", random.choice(PATHS)] if random.random() < 0.5 else [])


def _look(random: random.Random, folder: Path) -> list[str]:
    """The commands that read run folders, on everything that is none."""
    kind = random.choice(["report", "compare", "resume", "export", "pick"])
    words = [kind, *(random.choice(PATHS) for _ in range(random.choice([1, 1, 2])))]
    if kind == "export":
        words += _options(random, ["--width", "--format", "--energy", "--out"], 2)
    if kind == "pick":
        words += _options(random, ["--max-macs", "--min-accuracy", "--max-latency-ms"], 2)
    if kind == "report" and random.random() < 0.5:
        words += ["--out", random.choice(PATHS)]
    return words


def _others(random: random.Random, folder: Path) -> list[str]:
    path = random.choice(PATHS)
    return random.choice(
        [
            ["lab", "reproduce", random.choice(WORDS)],
            ["lab", "reproduce", "table1", "--scale", random.choice(WORDS)],
            ["lab", "reproduce", "table1", "--out", "out", "--check", path],
            ["lab", "reproduce", "table4", "--out", path, "--cache", "cells"],
            ["lab", "reproduce", "fig7", "--as-is", "--out", "out", "--cache", path],
            ["lab", "study", "status", random.choice(WORDS), "--cache", path],
            ["lab", "plan", "status", random.choice(WORDS), "--cache", path],
            ["keys", random.choice(WORDS)],
            ["population", "show", path, "--set", f"federation.devices={random.choice(WORDS)}"],
            ["run", path, "--out", "out", "--rounds", "0"],
            [random.choice(WORDS)],
            ["doctor", random.choice(WORDS)],
            ["data", random.choice(WORDS)],
            ["deploy", random.choice(["status", "down", "register"]), path],
            ["deploy", "init", "kit", "--devices", random.choice(["0", "-1", "x", "nan"])],
        ]
    )


KINDS: list[tuple[int, Callable[[random.Random, Path], list[str]]]] = [
    (50, _run), (12, _set), (6, _run_options), (5, _link), (6, _bound), (6, _cost), (3, _data),
    (6, _look), (6, _others),
]  # fmt: skip


def case(number: int, folder: Path) -> list[str]:
    """The command line of a case, whose files are put into the folder."""
    chosen = random.Random(f"slimfl {number}")
    [(make)] = chosen.choices([make for _, make in KINDS], [weight for weight, _ in KINDS])
    return [word for word in make(chosen, folder) if "\0" not in word]
