"""What engines say of themselves is read as far as it goes; anything else leaves facts unknown, and no secret is kept."""

from __future__ import annotations

import json
from pathlib import Path

from guieval.engines.http.stated import ServedModel, facts_of_server, page_of
from guieval.engines.vllm.stated import facts_of_command, facts_of_log
from guieval.journal.setup import EngineFacts, Setup, describe, differences, text_digest
from tests.rows import every_row

SGLANG = {"api_key": "sk-secret", "version": "0.5.5", "dtype": "auto", "quantization": "fp8", "attention_backend": "fa3"}
LOG = (
    "(EngineCore_DP0 pid=9) INFO 11-27 core.py:94] Initializing a V1 LLM engine (v0.11.0) with config: model='/m', "
    "speculative_config=None, dtype=torch.{}, max_seq_len=8192, quantization={}, enforce_eager=False\n"
    "(EngineCore_DP0 pid=9) INFO 11-27 cuda.py:547] Using backend FLASH_ATTN for vit attention\n"
)


@every_row(
    "owner, headers, page, said",
    [
        ("vllm", {}, {"version": "0.26.0"}, {"name": "vLLM", "version": "0.26.0"}),
        ("vllm", {}, {"detail": "Not Found"}, {"name": "vLLM"}),
        ("vllm", {}, [1], {"name": "vLLM"}),
        ("sglang", {}, SGLANG, {"name": "SGLang", "version": "0.5.5", "quantization": "fp8", "attention": "fa3"}),
        ("llamacpp", {}, {"build_info": "b1", "chat_template": "x"}, {"version": "b1", "chat_template": text_digest("x")}),
        ("system", {"openai-version": "2020-10-01"}, None, {"name": "OpenAI API", "version": "2020-10-01"}),
        ("me", {"server": "uvicorn"}, {"version": "9"}, {}),
    ],
)  # fmt: skip
def test_what_a_server_says(owner: str, headers: dict[str, str], page: object, said: dict[str, str]) -> None:
    models = [ServedModel("m", None, owner)]
    facts = facts_of_server(models, headers, json.dumps(page).encode(), lambda text: text)
    known = facts.model_dump(exclude_none=True, exclude={"models", "url"})
    assert said.items() <= known.items() and known.keys() <= {"name", *said} and "secret" not in facts.model_dump_json()
    assert (page_of(models) is None) == (owner in ("system", "me"))


def test_a_log_of_several_starts_is_read_for_the_last() -> None:
    text = LOG.format("float16", "awq") + LOG.format("bfloat16", "None")
    text += "INFO cuda.py:507] Using FLASHINFER attention backend out of potential backends: ['FLASHINFER'].\n"
    known = EngineFacts(name="vLLM", version="0.11.0", dtype="bfloat16", quantization="none", attention="FLASHINFER")
    assert facts_of_log(text) == known
    assert facts_of_log("Traceback: no engine") == EngineFacts()


def test_a_command_says_what_the_files_of_its_checkpoint_do_not_overrule(tmp_path: Path) -> None:
    size = {"size": {"shortest_edge": 3136, "longest_edge": 12_845_056}, "merge_size": 2}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(size))
    (tmp_path / "chat_template.jinja").write_text("{{ own }}")
    words = ["python", "-m", "x", "--model", str(tmp_path), "--enforce-eager", "--dtype", "float32"]
    facts = facts_of_command(words)
    assert (facts.pixels, facts.dtype, facts.chat_template) == ("3,136 to 12,845,056", "float32", text_digest("{{ own }}"))
    facts = facts_of_command([*words, "--mm-processor-kwargs", '{"max_pixels": 1003520}', "--chat-template", "{{ given }}"])
    assert (facts.pixels, facts.chat_template) == ("3,136 to 1,003,520", text_digest("{{ given }}"))


def test_only_what_both_sides_know_differs() -> None:
    one = Setup(engines=(EngineFacts(name="vLLM", version="1", dtype="float16", max_pixels=5),))
    other = Setup(engines=(EngineFacts(name="vLLM", version="2", attention="FA", max_pixels=7),))
    assert [change.said(" and ") for change in differences([one], [other])] == [
        "version (1 and 2)",
        "pixels (? to 5 and ? to 7)",
    ]
    assert [change.fact for change in differences([one], [other], same_model=False)] == ["version"]
    assert describe([]) == describe([Setup(model="m")]) == "not recorded"
