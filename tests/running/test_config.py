"""The configuration: where settings meet, what each may be, and one sentence for what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.running.config import merge, parse
from guieval.settings import RunConfig
from tests.rows import every_row

NAMES = {"model": "m", "bench": "b"}


def test_a_later_source_wins_and_groups_are_merged(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: m\nbench: b\nlimit: 3\nsampling: {temperature: 1e-3, top_p: 1}\n")
    base = {"model": "old", "seed": 7, "limit": 1}
    config = merge(file, ["sampling.top_p=0.5", "limit=4", "sampling.stop=[[["], {"limit": 5, "seed": None}, base=base)
    assert (config.model.name, config.data.seed, config.data.limit) == ("m", 7, 5)
    assert config.sampling.request == {"temperature": 0.001, "top_p": 0.5, "stop": "[[["}
    assert base == {"model": "old", "seed": 7, "limit": 1}


def test_a_setting_may_be_given_with_its_group_or_without() -> None:
    bare = {**NAMES, "data": "d", "concurrency": 8, "sampling": {"top_k": 2}, "options": {"scale": 9}, "cluster": "ray"}
    groups = {"model": {"name": "m", "scale": 9}, "data": {"bench": "b", "folder": "d"}, "server": {"concurrency": 8}}
    overrides = ["server.concurrency=8", "cluster=ray", "model.scale=9", "sampling={top_k: 2}", "data.folder=d"]
    config = parse(bare)
    assert parse({**groups, "sampling": {"request": {"top_k": 2}}, "cluster": {"kind": "ray"}}) == config
    assert merge(None, overrides, NAMES) == config == merge(None, [*overrides, "model=m"], {"bench": "b"})
    assert (config.data.folder, config.model.options, config.server.concurrency) == ("d", {"scale": 9}, 8)


@every_row(
    ("text", "message"),
    [
        *((text, "must hold `name: value` lines") for text in ("", "- model: m")),
        *(("1: a", "unknown setting 1"), ("null: a", "unknown setting None"), ("modl: m", "did you mean 'model'")),
        ("server: {tieout: 1}", "unknown setting 'server.tieout' .did you mean 'server.timeout'"),
        *(("server: 1", "'server' is a group of settings"), ("server: {timeout: 1}\ntimeout: 1", "'timeout' is given twice")),
        *(("temperature: 1", "given as sampling.temperature or --temperature"), ("model: m\nmodel", "is not YAML")),
        *(("seed: 2024-13-45", "is not YAML: month must be in 1..12"), ("[" * 5000, "is not YAML")),
    ],
)
def test_a_file_that_is_no_configuration_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as raised:
        merge(file, [], NAMES)
    assert "\n" not in str(raised.value)


@every_row("override", ["=1", "x", ".=1", "sampling.=1", "sampling..a=1"])
def test_an_override_needs_a_whole_key(override: str) -> None:
    with pytest.raises(UsageError, match="--set needs key=value"):
        merge(None, [override], NAMES)


@every_row(
    ("values", "message"),
    [
        *(({name: ""}, f"'{name}' is ''") for name in ("model", "protocol", "data")),
        ({"api_key_env": "sk-secret-0123456789"}, "^setting 'api_key_env' must be the name of an .* variable, not a key$"),
        *(({"timeout": float("inf")}, "finite"), ({"timeout": float("nan")}, "'timeout'"), ({"limit": 0}, "'limit' is 0")),
        *(({"concurrency": 5000}, "expected a number from 1 to 4096, or auto"), ({"sampling": [1]}, "expected an object")),
        *(({"local_images": "somewhere"}, "local_images"), ({"sampling": {"temperature": float("nan")}}, "finite numbers")),
        *(({"sampling": {"stop": {"a"}}}, "may hold only text"), ({"sampling": {"logit_bias": {1: 2}}}, "may hold only text")),
        ({"bench_options": {"root": "x"}}, r"'root' is not an option of a benchmark \(--data gives its folder\)"),
        ({"bench_options": {"name": "x"}}, "'name' is not an option of a benchmark"),
        ({"bench_options": {"allow_network": True}}, r"'allow_network' is not an option of a benchmark \(--allow-network"),
    ],
)
def test_an_impossible_value_is_reported_with_its_field(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse({**NAMES, **values})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
@example({"n": {"a": [1, None, "é"]}})
def test_what_a_manifest_holds_gives_the_same_configuration_back(extra: dict[str, Any]) -> None:
    try:
        config = parse({**NAMES, "sampling": {"extra": extra}})
    except UsageError as error:
        assume("secret" not in str(error) and "cannot be given" not in str(error))  # a name drawn at random, e.g. APIKEY or n
        raise
    assert RunConfig.model_validate_json(config.model_dump_json()).identity() == config.identity()
    assert parse(config.model_dump(mode="json")) == config


def test_one_value_may_stand_without_its_list() -> None:
    assert merge(None, ["base_urls=http://h:1/v1"], NAMES).server.base_urls == ("http://h:1/v1",)
    assert parse({**NAMES, "subset": "general"}).data.subset == ("general",)
    assert parse({**NAMES, "subset": ["general", "install"]}).data.subset == ("general", "install")
    with pytest.raises(UsageError, match=r"'subset\.0' is ''"):
        parse({**NAMES, "subset": ""})


VLLM: dict[str, Any] = {"engine": "vllm", "vllm": {"max-model-len": 10}}


@every_row(
    ("values", "others", "same"),
    [
        ({"episodes": "a.txt", "overlay": "b.jsonl"}, {}, True),  # where lists and overlays are
        *(({"sample_set": "ac-osatlas-7708"}, {"sample_set": "ac-test-8444"}, False), ({"skip_damaged": True}, {}, False)),
        ({"local_images": True, "image_uuids": True}, {}, True),
        ({**VLLM, "vllm": {"tensor-parallel-size": 4, "gpu_memory_utilization": 0.8, "max_model_len": 10}}, VLLM, True),
        *(({**VLLM, "reuse_server": True}, VLLM, True), ({**VLLM, "engine": "openai"}, VLLM, True)),
        ({**VLLM, "vllm": {"max-model-len": 20}}, VLLM, False),  # what it answers
    ],
)
def test_what_is_measured_is_the_identity(values: dict[str, Any], others: dict[str, Any], same: bool) -> None:
    assert (parse({**NAMES, **values}).identity() == parse({**NAMES, **others}).identity()) is same
