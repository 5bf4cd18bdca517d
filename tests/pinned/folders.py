"""How each pinned run folder is made: the command of ``guieval`` that writes it, each after those whose runs it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["steps", "phone", "pages", "training"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a folder is: a run over recorded steps, on the simulated phone or over web pages in a Chromium, or a training."""
RESUMED: tuple[Kind, ...] = ("steps", "phone", "pages")
"""The kinds that are resumed too; a training would need TRL and its weights, which are not kept."""

LOCAL = "--adapter agents.py --engine local --bench episodes --data benchmark --quiet"
SERVED = "--bench episodes --data benchmark --prices prices.yaml --set max_attempts=1 --quiet"
MIXED = "--bench episodes --data benchmark --set adapter=agents.py --set engine=local --quiet"
PHONE = "--adapter agents.py --engine local --bench demo --set bench_options.episodes=14 --episodes phone.txt --quiet"
PAGES = "--adapter agents.py --engine local --bench miniwob --episodes pages.txt --quiet"
TRAINED = (
    "--data icons --set bench_options.episodes=12 --set trainer.max_steps=6 --set trainer.save_steps=3"
    " --set trainer.warmup_steps=0 --set trainer.logging_steps=1 --set trainer.per_device_train_batch_size=8"
    " --set 'evaluation={every: 3, bench_options: {split: test, episodes: 6}}'"
)
DRAWN = "--set sampling.temperature=1"


@dataclass(frozen=True)
class Folder:
    """A folder below ``runs/``: the command that makes it, how it is resumed, and what it needs."""

    made: str
    resumed: str = ""
    """The command that goes on with it; a training has none here."""
    kind: Kind = "steps"
    screens: bool = True
    """Whether the screenshots of an online run are kept; to read and resume it, none are needed."""


def local(options: str, name: str, command: str = "run", asked: str = LOCAL, more: str = "", **of: Any) -> Folder:
    """A run of the agents in ``agents.py``; ``more`` is what it needs to go on."""
    resumed = f"{command} --resume runs/{name} --adapter agents.py{more} --quiet"
    return Folder(f"{command} {options} {asked} --out runs/{name}", resumed, **of)


FOLDERS: dict[str, Folder] = {
    "careful": local("--model careful --mode offline --mode soeval --mode sop", "careful"),
    "hasty": local("--model hasty --mode offline --mode soeval --mode sop", "hasty"),
    "thought-free": local("--model hasty --mode sop --patch thought-free --patch-budget 2", "thought-free"),
    "on-policy": Folder(
        f"run --model ui-tars-7b --base-url {{ui-tars}} --mode sop --patch on-policy --patch-budget unlimited {SERVED}"
        " --out runs/on-policy",
        "run --resume runs/on-policy --base-url {ui-tars} --quiet",
    ),
    "off-policy": local(
        "--model hasty --mode sop --patch off-policy --patch-model aux --patch-base-url {thoughts}",
        "off-policy",
        more=" --patch-base-url {thoughts}",
    ),
    "samples": local(f"--model careful --samples 6 {DRAWN} --set compact=true", "samples"),
    "mixed": local(
        "--model careful --set mix_artifacts=runs/careful/soeval --set mix.start=0 --set mix.end=1 --set mix.mean=0.4", "mixed"
    ),
    "sweep": Folder(
        "study mix --model careful --artifacts runs/careful/soeval --pair 0:1 --pair 0.5:0.5 --means 2 --subset tools"
        f" {MIXED} --out runs/sweep",
        "study mix --resume runs/sweep --set adapter=agents.py --quiet",
    ),
    **{
        name: local(f"--model {model} --rounds 2 --samples 8 --seeds 0,100 {DRAWN}", name, "study rollout")
        for name, model in (("rollout-careful", "careful"), ("rollout-hasty", "hasty"))
    },
    **{
        name: local(f"--model {name} --fixed-thoughts runs/careful/offline --samples 4 {DRAWN} --set compact=true", name)
        for name in ("judge-1", "judge-2", "judge-3")
    },
    **{
        f"served-{name}": Folder(
            f"run --model {model} --base-url {{{name}}} {modes} {SERVED} --out runs/served-{name}",
            f"run --resume runs/served-{name} --base-url {{{name}}} --quiet",
        )
        for name, model, modes in (
            ("agentcpm", "agentcpm-gui-8b", "--mode offline --mode soeval"),
            ("ui-tars", "ui-tars-7b", "--mode offline"),
        )
    },
    "campaign": Folder(*2 * ("campaign campaign.yaml --quiet --out runs/campaign",)),
    "phone-careful": local("--model careful --mode online --samples 2", "phone-careful", asked=PHONE, kind="phone"),
    "phone-hasty": local("--model hasty --mode online", "phone-hasty", asked=PHONE, kind="phone", screens=False),
    **{
        f"pages-{model}": local(f"--model {model} --mode online", f"pages-{model}", asked=PAGES, kind="pages", screens=False)
        for model in ("careful", "hasty")
    },
    **{
        f"training-grpo-{seed}": Folder(
            f"train grpo --config tiny-grpo --set seed={seed} {TRAINED} --set trainer.num_generations=4"
            f" --out runs/training-grpo-{seed}",
            kind="training",
        )
        for seed in (0, 1)
    },
    "training-sft": Folder(f"train sft --config tiny-sft {TRAINED} --out runs/training-sft", kind="training"),
}
"""In the order in which they are made."""
