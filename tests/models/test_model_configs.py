"""The shipped checkpoints: what their files say agrees with what their adapters do."""

from __future__ import annotations

import re

import pytest
import yaml

from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.models.written_prompts import example_episode
from guieval.registry import list_adapters, list_models, load_model, model_config, model_configs
from tests.rows import every_row

FILES = sorted((config_folder() / "models").glob("*.yaml"))
HF_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
OPTION = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def test_every_checkpoint_has_its_own_name_in_the_file_of_its_family() -> None:
    names = [entry["name"] for file in FILES for entry in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    assert sorted(names) == list_models()
    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", name), f"{name!r} cannot be typed as a name"


@every_row("name", list_models)
def test_a_checkpoints_file_agrees_with_its_adapter(name: str) -> None:
    config, model = model_config(name), load_model(name)
    assert config.adapter in list_adapters() and model.frame_source
    if config.engine == "local":
        assert config.frame is None
    else:  # a model that is asked over a server says in which frame it answers
        assert config.frame == model.frame(example_episode().steps[0]).name
    if config.engine == "openai":
        # weights that nobody publishes have no Hugging Face id, nor have those that are shipped
        assert (config.hf_id is None) == (config.licence in ("proprietary", "unpublished") or config.folder is not None)
        assert config.scaffold.sampling["max_tokens"] > 0
        assert "temperature" in config.scaffold.sampling
    assert (config.scaffold.thinking is not None) == model.thinking_switch, "a family with a switch has a default"
    if not model.thinking_switch:
        with pytest.raises(UsageError, match="no thinking switch"):
            load_model(name, thinking=True)
    assert config.hf_id is None or HF_ID.fullmatch(config.hf_id), config.hf_id
    for option, value in config.vllm.items():
        assert OPTION.fullmatch(option), f"{option!r} is not an option of `vllm serve`"
        if option.replace("_", "-") == "chat-template":
            assert (config_folder() / "chat_templates" / value).is_file(), "a chat template is named by its file in the folder"
    if config.context_length is not None:
        assert config.scaffold.sampling.get("max_tokens", 0) < config.context_length


def test_every_chat_template_is_some_checkpoints() -> None:
    named = {value for config in model_configs().values() for option, value in config.vllm.items() if option == "chat-template"}
    assert {file.name for file in (config_folder() / "chat_templates").iterdir()} == named
