"""The command that serves a checkpoint: word for word for several, and what users may change."""

from __future__ import annotations

import shlex
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from guieval.data.shipped import config_folder
from guieval.engines.vllm.command import VLLMSettings, find_start, served_name, server_command
from guieval.engines.vllm.kept_servers import command_digest
from guieval.errors import UsageError
from guieval.models import ModelConfig
from guieval.registry import list_models, model_config
from tests.json_values import read_json
from tests.rows import every_row

TEMPLATES = config_folder() / "chat_templates"
START = ["python", "-m", "vllm.entrypoints.openai.api_server"]
BARE = ModelConfig(name="m", adapter="a", hf_id="org/m", vllm={"limit-mm-per-prompt": {"image": 5}, "trust-remote-code": True})


def words(name: str, **values: Any) -> list[str]:
    settings = VLLMSettings.of({"python": "python", **values}, chat_templates=TEMPLATES, media=Path("/data"))
    return server_command(model_config(name), settings, 8123)


@every_row(
    ("name", "expected"),
    [
        (
            "agentcpm-gui-8b",
            "--model openbmb/AgentCPM-GUI --served-model-name agentcpm-gui-8b --host 127.0.0.1 --port 8123 "
            "--max-model-len 32768 --allowed-local-media-path /data --trust-remote-code "
            "--limit-mm-per-prompt '{\"image\": 10}'",
        ),
        (  # no context length known: vLLM reads the checkpoint's
            "glm-4.5v",
            "--model zai-org/GLM-4.5V --served-model-name glm-4.5v --host 127.0.0.1 --port 8123 "
            "--allowed-local-media-path /data --tensor-parallel-size 4 --limit-mm-per-prompt '{\"image\": 1}' "
            f"--chat-template {TEMPLATES}/glm_4_5v.jinja",
        ),
        (  # its own max-model-len stands before its context length
            "mimo-vl-7b-rl",
            "--model XiaomiMiMo/MiMo-VL-7B-RL --served-model-name mimo-vl-7b-rl --host 127.0.0.1 --port 8123 "
            "--allowed-local-media-path /data --trust-remote-code --max-model-len 32768 "
            "--limit-mm-per-prompt '{\"image\": 1}' --mm-processor-kwargs '{\"max_pixels\": 3211264}'",
        ),
        (  # the image limits of its options are the server's too
            "ui-venus-ground-72b",
            "--model inclusionAI/UI-Venus-Ground-72B --served-model-name ui-venus-ground-72b --host 127.0.0.1 --port 8123 "
            "--max-model-len 128000 --allowed-local-media-path /data --limit-mm-per-prompt '{\"image\": 1}' "
            '--mm-processor-kwargs \'{"min_pixels": 3110400, "max_pixels": 12845056}\'',
        ),
        (  # served under the name that its file gives
            "gui-r1-7b",
            "--model ritzzai/GUI-R1 --served-model-name ritzzai/GUI-R1 --host 127.0.0.1 --port 8123 --max-model-len 32768 "
            "--allowed-local-media-path /data --limit-mm-per-prompt '{\"image\": 1}'",
        ),
    ],
)
def test_the_command_of_a_checkpoint(name: str, expected: str) -> None:
    assert words(name) == [*START, *shlex.split(expected)]


def test_image_limits_given_as_options_reach_the_server_and_arguments_stand_over_them() -> None:
    model = BARE.model_copy(update={"vllm": {}, "options": {"min_pixels": 100, "max_pixels": 48_000_000}})
    limits = '{"min_pixels": 100, "max_pixels": 48000000}'
    assert server_command(model, VLLMSettings(), 1)[-2:] == ["--mm-processor-kwargs", limits]
    given = VLLMSettings.of({"mm-processor-kwargs": {"max_pixels": 5}})
    assert server_command(model, given, 1)[-1] == '{"min_pixels": 100, "max_pixels": 5}'
    assert "--mm-processor-kwargs" not in server_command(model, VLLMSettings.of({"mm-processor-kwargs": None}), 1)


def test_every_checkpoint_with_weights_has_a_command() -> None:
    for name in list_models():
        if model_config(name).hf_id is not None:
            assert words(name)[:5] == [*START, "--model", model_config(name).hf_id]


NOTHING = {"limit-mm-per-prompt": None, "trust-remote-code": None}


@every_row(
    ("values", "expected"),
    [
        ({}, ["--limit-mm-per-prompt", '{"image": 5}', "--trust-remote-code"]),
        # underscores are hyphens, a group is merged into a group
        ({"limit_mm_per_prompt": {"video": 0}}, ["--limit-mm-per-prompt", '{"image": 5, "video": 0}', "--trust-remote-code"]),
        (NOTHING, []),
        ({**NOTHING, "trust-remote-code": False}, ["--no-trust-remote-code"]),
        ({**NOTHING, "dtype": "half", "seed": 0.5}, ["--dtype", "half", "--seed", "0.5"]),
        ({**NOTHING, "data-parallel-size": 2}, ["--data-parallel-size", "2"]),
        ({**NOTHING, "lora-modules": ["a=b", "c=d"]}, ["--lora-modules", "a=b", "c=d"]),
        ({**NOTHING, "override": "-1x"}, ["--override=-1x"]),
        ({**NOTHING, "revision": date(2025, 1, 31)}, ["--revision", "2025-01-31"]),
        ({**NOTHING, "more": {"no": None}}, ["--more", '{"no": null}']),
    ],
)
def test_the_users_arguments_stand_over_the_checkpoints(values: dict[str, Any], expected: list[str]) -> None:
    """After the words that are always there."""
    assert server_command(BARE, VLLMSettings.of(values), 1)[11:] == expected


def test_another_context_length_replaces_the_checkpoints_and_null_leaves_it_to_vllm() -> None:
    model = BARE.model_copy(update={"context_length": 4096, "vllm": {}})
    for value, expected in ((2048, "2048"), (None, None)):
        command = server_command(model, VLLMSettings.of({"max_model_len": value}), 1)
        assert ("--max-model-len" in command) == (expected is not None)
        assert expected is None or command[command.index("--max-model-len") + 1] == expected


def test_another_program_other_weights_and_another_name() -> None:
    settings = VLLMSettings.of({"command": "vllm serve", "model": "/weights/GUI-R1-3B"}, served_name="mine")
    model = model_config("gui-r1-3b")
    assert server_command(model, settings, 5)[:8] == (
        ["vllm", "serve", "/weights/GUI-R1-3B", "--served-model-name", "mine", "--host", "127.0.0.1", "--port"]
    )
    assert served_name(model, settings) == "mine"


def test_the_command_where_vllm_is_known_and_the_module_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = VLLMSettings(python=sys.executable)
    with pytest.raises(UsageError, match=r"vLLM is not installed for .*pip install 'guieval\[vllm\]'"):
        find_start(settings)
    (tmp_path / "vllm" / "entrypoints" / "cli").mkdir(parents=True)
    (tmp_path / "vllm" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "vllm" / "entrypoints" / "cli" / "main.py").touch()
    assert find_start(settings) == (sys.executable, "-m", "vllm.entrypoints.openai.api_server")
    (tmp_path / "vllm-0.32.0.dist-info").mkdir()
    (tmp_path / "vllm-0.32.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
    start = find_start(settings)
    assert start == (sys.executable, "-m", "vllm.entrypoints.cli.main", "serve")
    command = server_command(BARE, settings.model_copy(update={"command": start}), 1)
    assert command[3:7] == ["serve", "org/m", "--served-model-name", "m"]


def test_the_python_that_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GUIEVAL_VLLM_PYTHON", raising=False)
    assert server_command(BARE, VLLMSettings(), 1)[0] == sys.executable
    monkeypatch.setenv("GUIEVAL_VLLM_PYTHON", "/other/python")
    assert server_command(BARE, VLLMSettings(), 1)[0] == "/other/python"
    assert server_command(BARE, VLLMSettings.of({"python": "/third/python"}), 1)[0] == "/third/python"


def test_a_chat_template_is_a_shipped_one_a_file_or_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.jinja").write_text("x")
    for value, expected in (
        ("aguvis.jinja", str(TEMPLATES / "aguvis.jinja")),
        ("own.jinja", str(tmp_path / "own.jinja")),
        ("{{ messages }}", "{{ messages }}"),
    ):
        assert words("glm-4.5v", **{"chat-template": value})[-1] == expected
    with pytest.raises(UsageError, match=r"'agvis\.jinja' \(did you mean 'aguvis\.jinja'\?\)"):
        words("glm-4.5v", **{"chat-template": "agvis.jinja"})


@every_row(
    ("values", "sentence"),
    [
        ({"port": 8000}, "vllm.port cannot be set: guieval takes a free one"),
        ({"allowed_local_media_path": "/"}, "vllm.allowed-local-media-path cannot be set"),
        ({"start-timeout": 0}, "vllm.start-timeout is 0"),
        ({"stop_timeout": "soon"}, "vllm.stop-timeout is 'soon'"),
        ({"command": "'"}, 'vllm.command is "\'"'),
        ({"command": ""}, r"vllm.command is \(\)"),
        ({"tensor parallel": 2}, "vllm.tensor parallel is not an argument"),
    ],
)
def test_what_cannot_be_given_is_one_sentence(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        server_command(BARE, VLLMSettings.of(values), 1)


@every_row(
    ("name", "sentence"),
    [
        *((name, "it is a secret") for name in ("api-key", "api_key", "hf-token")),
        *((name, "cannot be set") for name in ("port", "host")),
    ],
)
def test_what_neither_the_user_nor_a_checkpoints_file_may_say_is_not_repeated(name: str, sentence: str) -> None:
    values = {name: "sk-0123456789"}
    for model, given in ((BARE, values), (BARE.model_copy(update={"vllm": values}), {})):
        with pytest.raises(UsageError, match=sentence) as raised:
            server_command(model, VLLMSettings.of(given), 1)
        assert "0123" not in str(raised.value)


def test_a_folder_of_weights_is_given_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "weights").mkdir()
    for given in ("weights", "./weights", "~/weights"):
        command = server_command(BARE, VLLMSettings.of({"command": "vllm serve", "model": given}), 1)
        assert command[2] == str(tmp_path / "weights")
    assert server_command(BARE, VLLMSettings.of({"command": "vllm serve"}), 1)[2] == "org/m"


def test_a_template_that_was_changed_is_another_server(tmp_path: Path) -> None:
    file = tmp_path / "own.jinja"
    file.write_text("{{ messages }}")
    command = server_command(BARE, VLLMSettings.of({"chat-template": str(file)}), 0)
    before = command_digest(command, {})
    assert command_digest(command, {"HOME": "elsewhere"}) == before != command_digest(command, {"VLLM_USE_V1": "1"})
    file.write_text("{{ messages[1:] }}")
    assert command_digest(command, {}) != before


def test_unknown_weights_are_reported() -> None:
    with pytest.raises(UsageError, match=r"weights of 'gpt-4o' are: add --set vllm\.model="):
        words("gpt-4o")


def test_every_word_of_a_group_is_json() -> None:
    command = words("qwen2.5-vl-7b", **{"mm-processor-kwargs": {"min_pixels": 3136, "name": "ü"}})
    assert read_json(command[command.index("--mm-processor-kwargs") + 1])["min_pixels"] == 3136
