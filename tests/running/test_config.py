"""The configuration: settings, their defaults and the shipped presets; what each may be, a sentence for what it may not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from guieval.data.sample_sets import get_sample_set
from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.evaluation import get_protocol
from guieval.history.modes import get_mode
from guieval.registry import benchmarks, load_model
from guieval.running.config import merge, parse, run_file
from guieval.running.defaults import FILE, new_config
from guieval.running.keywords import RunSettings
from guieval.running.resolve import patch_policy, sample_parameters
from guieval.settings import BY_OPTION, GROUPS, SETTINGS, RunConfig
from guieval.settings.sampling import OPTIONS
from guieval.studies.rollouts import plan_rounds
from tests.command_line import CommandLine
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


IN_ORDER = {"model": "m", "bench": "b"}


def test_the_nearer_source_counts_and_what_is_taken_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text("server: {timeout: 7, patience: 8, max_attempts: 2}\nsampling: {top_p: 0.5, top_k: 3}\n")
    (file := tmp_path / "run.yaml").write_text("patience: 9\n")
    for each in ("BASE_URL=http://e/v1", "TIMEOUT=6", "TEMPERATURE=0.3", "LIMIT=", "CONCURENCY=4", "CHROMIUM=/"):
        monkeypatch.setenv(*f"GUIEVAL_{each}".split("="))
    config = new_config(file, ["sampling.top_p=0.9"], {**IN_ORDER, "max_attempts": 4, "max_tokens": 5}, fallback={"samples": 3})
    server = config.server
    assert (server.base_urls, server.timeout, server.patience, server.max_attempts) == (("http://e/v1",), 6.0, 9.0, 4)
    assert config.sampling.request == {"temperature": 0.3, "top_p": 0.9, "top_k": 3, "max_tokens": 5}
    unknown, taken = caplog.messages
    assert unknown == "GUIEVAL_CONCURENCY is not used: no setting is called 'concurency' (did you mean 'concurrency'?)"
    assert set(taken.removeprefix("settings: ").split(", ")) == {
        *("timeout from GUIEVAL_TIMEOUT", "base_url from GUIEVAL_BASE_URL"),
        *("sampling.top_k from guieval.yaml", "sampling.temperature from GUIEVAL_TEMPERATURE"),
    }


@every_row(
    ("file", "variables", "flags", "message"),
    [
        ("tmeout: 4", {}, {}, r"'guieval\.yaml' in this folder: unknown setting 'tmeout' \(did you mean 'timeout'"),
        ("timeout: 4", {"TIMEOUT": "x"}, {}, r"'timeout' is 'x': .*\(timeout from GUIEVAL_TIMEOUT\)"),
        ("vllm: {extra_headers: {a: b}}\nbench_options: {api_key: sk}", {}, {}, "is a secret"),
        ("", {}, {"seed": 4}, "--seed 4 draws the episodes of --limit N, .* is --sampling-seed 4"),
        ("", {}, {"base_ulr": "x"}, r"unknown setting 'base_ulr' \(did you mean 'base_urls'"),
    ],
)
def test_a_mistake_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, variables: dict[str, str], flags: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text(file or "limit: null")
    for name, value in variables.items():
        monkeypatch.setenv(f"GUIEVAL_{name}", value)
    with pytest.raises(UsageError, match=message):
        new_config(None, [], {**IN_ORDER, **flags})


def test_python_takes_the_settings_by_the_names_of_the_command_line() -> None:
    assert RunSettings.__annotations__.keys() == {*SETTINGS, *BY_OPTION, *OPTIONS, *GROUPS} - {"mode", "repeat"}


SHIPPED = sorted(file.stem for file in (config_folder() / "runs").glob("*.yaml"))


def settings(name: str) -> RunConfig:
    return merge(run_file(Path(name)), [], {})


def test_there_is_one_of_each_kind_and_decisions_is_one_of_a_rollout_too() -> None:
    assert {"demo", "androidcontrol-soeval", "ui-s1-sop", "decisions", "screenspot-grounding"} <= set(SHIPPED)
    assert [each.config.sampling.samples for each in plan_rounds(settings("decisions"), 2)] == [64, 64]


@every_row("name", SHIPPED)
def test_every_name_exists_and_fits_the_others(name: str) -> None:
    config = settings(name)
    bench = benchmarks()[config.data.bench]
    model = load_model(config.model.name, adapter=config.model.adapter, thinking=config.model.thinking)
    assert get_protocol(config.data.protocol or bench.protocol).applies_to(bench.dataset)
    assert len(sample_parameters(config, model.config)) == config.sampling.samples
    get_mode(config.history.mode).patched(patch_policy(config))
    if config.data.sample_set is not None:
        assert bench.dataset in get_sample_set(config.data.sample_set).datasets
    assert config.data.folder is None and not config.server.base_urls, "where data and servers are is the user's to say"
    text = (config_folder() / "runs" / f"{name}.yaml").read_text(encoding="utf-8")
    assert f"guieval run --config {name}" in text, "its comment names it as it is given"


@pytest.mark.ci
def test_flags_and_settings_go_over_a_preset_and_a_path_serves_as_well(guieval: CommandLine, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    shutil.copy(config_folder() / "runs" / "demo.yaml", mine)
    for number, preset in enumerate((Path("demo"), mine)):
        done = guieval(
            *("run", "--config", preset, "--mode", "offline", "--set", "bench_options.episodes=1", "--quiet"),
            *("--data", tmp_path / "data", "--out", tmp_path / f"run-{number}"),
        )
        assert done.code == 0 and "offline" in done.out


def test_an_unknown_preset_answers_with_the_nearest(guieval: CommandLine) -> None:
    for command in ("run", "study rollout", "study mix"):
        message = guieval.sentence(*command.split(), "--config", "ui-s1-so")
        assert "no file 'ui-s1-so'" in message and "did you mean 'ui-s1-sop'?" in message and "shipped: " in message
