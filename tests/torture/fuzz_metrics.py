"""Hostile metrics files, partitions and experiments, made from those of a real run."""

import json
from collections.abc import Iterator
from typing import Any

#: Values that no number, list or table of a line is.
WRONG: dict[str, str] = {
    "null": "null",
    "true": "true",
    "text": '"x"',
    "markup": '"[/b]<script>"',
    "NaN": "NaN",
    "Infinity": "Infinity",
    "negative": "-1",
    "negative float": "-0.5",
    "1e308": "1e308",
    "1e999": "1e999",
    "huge": str(10**30 + 1),
    "5000 digits": "9" * 5000,
    "list": "[[[]]]",
    "nested lists": "[" * 40 + "]" * 40,
    "list of nulls": "[null, null]",
    "list of text": '["0", "1"]',
    "list of booleans": "[true, false]",
    "long list": json.dumps(list(range(5000))),
    "list of huge": f"[{10**12}, {10**9}]",
    "list of 1e308": "[1e308, 1e308]",
    "doubled": "[0, 0]",
    "table": '{"a": {"b": 1}}',
    "table of text": '{"0.5x": "x", "1.0x": "y"}',
    "table of 2": '{"0.5x": 2, "1.0x": 2}',
    "another width": '{"0.25x": 0.5}',
    "width of a million": '{"1000000x": 0.5}',
}

#: What a line may lack, or have as null.
CLOCK = ("duration_s", "clock_s", "compute_energy_j")
OPTIONAL = {
    *CLOCK, "loss", "training_loss", "learning_rate", "gains", "images", "multiply_adds",
}  # fmt: skip

#: (what a key holds, value): what a run might have written after all.
FITTING = {
    *((key, "null") for key in ("learning_rate", "gains", "images", "multiply_adds", *CLOCK)),
    *((key, "huge") for key in CLOCK),
    *((key, "table of 2") for key in ("loss", "training_loss")),
    *((key, "doubled") for key in ("delivered", "refused")),
    *(
        (key, value)
        for key in ("bits_sent", "bits_decoded", "bits_dropped")
        for value in ("doubled", "list of huge")
    ),
    *(
        (key, "huge")
        for key in ("airtime_s", "energy_j", "learning_rate", "paper_mflops", "paper_power_mw")
    ),
}


def lines(raw: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """(what, contents, whether it has to be refused) for the metrics of a finished run."""
    *whole, last = raw.splitlines()
    before = b"".join(line + b"\n" for line in whole)
    record = json.loads(last)
    for key in record:
        yield f"no {key}", before + _without(record, key), key not in OPTIONAL
        for name, value in WRONG.items():
            refused = (key, name) not in FITTING
            yield f"{key} is {name}", before + _with(record, key, value), refused
    yield from _shapes(before, last, record)


def _shapes(
    before: bytes, last: bytes, record: dict[str, Any]
) -> Iterator[tuple[str, bytes, bool]]:
    line = last + b"\n"
    everybody = record["devices"]
    changes: dict[str, dict[str, Any]] = {
        "device 10^9": {"devices": [10**9, *everybody[1:]]},
        "a device twice": {"devices": [everybody[0], *everybody[:-1]]},
        "refused who was not there": {"refused": [10**6]},
        "dropped out and there": {"dropped_out": everybody},
        "more delivered than devices": {"delivered": [len(everybody) + 1] * 2},
        "more decoded than segments": {"decoded": [9] * len(everybody)},
        "round 10^12": {"round": 10**12},
        "round 0": {"round": 0},
        "round 1 again": {"round": 1},
        "a round left out": {"round": record["round"] + 5},
        "one width fewer": {"accuracy": {"0.5x": 0.5}},
        "accuracy above 1": {"accuracy": {"0.5x": 1.5, "1.0x": 0.5}},
        "seconds without training": {"seconds": {}},
        "seconds of text": {"seconds": {"training": "1", "evaluation": 0}},
        "privacy without epsilon": {"privacy": {}},
        "privacy of text": {"privacy": {"epsilon": "1", "delta": "1"}},
        "privacy as a list": {"privacy": [1, 2]},
        "segments short": {"bits_sent": [1.0]},
        "segments long": {"bits_sent": [1.0] * 3},
    }
    for name, change in changes.items():
        yield name, before + json.dumps({**record, **change}).encode() + b"\n", True
    depth = 100_000
    for name, bad in {
        "a list for a line": b"[]\n",
        "a number for a line": b"1\n",
        "null for a line": b"null\n",
        "text for a line": b'"x"\n',
        "an empty line": b"\n",
        "an empty object": b"{}\n",
        "nonsense": b"}{\n",
        "invalid UTF-8": last.replace(b'"round"', b'"\xff\xfe"') + b"\n",
        "lone surrogate": last.replace(b'"accuracy": {', b'"accuracy": {"\\ud800": 0.5, ') + b"\n",
        "a byte order mark": b"\xef\xbb\xbf" + line,
        "NUL bytes": b"\0" * 1000 + b"\n",
        "NUL bytes after the line": last + b"\0\0\n",
        "UTF-16": last.decode().encode("utf-16") + b"\n",
        "deep lists": b"[" * depth + b"]" * depth + b"\n",
        "deep objects": b'{"a":' * depth + b"1" + b"}" * depth + b"\n",
        "a long line": b'{"round": ' + b" " * 3_000_000 + b"1}\n",
        "a long line without an end": b"x" * 3_000_000,
        "a line of many lists": b'{"x": [' + b"[]," * 1_000_000 + b"[]]}\n",
        "two objects in a line": last + last + b"\n",
        "carriage returns": last.replace(b", ", b",\r") + b"\r" + last + b"\r\n",
    }.items():
        yield name, before + bad, True
    yield "a key twice", before + last[:-1] + b', "energy_j": 0.0}\n', False
    yield "a key twice, then wrong", before + last[:-1] + b', "energy_j": []}\n', True
    yield "a further key", before + last[:-1] + b', "further": [[1], {"a": null}]}\n', False
    yield "a torn line", before + last[: len(last) // 2], False
    yield "nothing", b"", False
    yield "lines in the wrong order", line + before, True


def _without(record: dict[str, Any], key: str) -> bytes:
    return json.dumps({k: v for k, v in record.items() if k != key}).encode() + b"\n"


def _with(record: dict[str, Any], key: str, value: str) -> bytes:
    raw = json.dumps({**record, key: "\0here"})
    return raw.replace('"\\u0000here"', value).encode() + b"\n"


#: partition.json in shapes that no run writes.
PARTITIONS: dict[str, bytes] = {
    "nonsense": b"}{",
    "empty": b"",
    "a list": b"[]",
    "no counts": b"{}",
    "counts of text": b'{"class_counts": [["a"]]}',
    "one device": b'{"class_counts": [[1, 2]]}',
    "ragged": json.dumps({"class_counts": [[1] * k for k in range(1, 11)]}).encode(),
    "empty rows": json.dumps({"class_counts": [[]] * 10}).encode(),
    "negative": json.dumps({"class_counts": [[-1] * 10] * 10}).encode(),
    "huge": json.dumps({"class_counts": [[10**40] * 10] * 10}).encode(),
    "floats": json.dumps({"class_counts": [[0.5] * 10] * 10}).encode(),
    "booleans": json.dumps({"class_counts": [[True] * 10] * 10}).encode(),
    "5000 digits": b'{"class_counts": [[' + b"9" * 5000 + b"]]}",
    "deep": b"[" * 100_000,
    "not UTF-8": b"\xff\xfe\0",
    "long": b" " * 3_000_000,
}
