"""Models of several libraries pass all steps, from graphs to pipelines and exports; the table says so."""

from __future__ import annotations

import importlib.util
import json

import pytest

pytest.importorskip("torch", reason="the zoo is one of torch's models: pip install 'dnn-partitioner[torch]'")
import zoo
from model_zoo.checks import STEPS as ALL
from model_zoo.models import MODELS

PAGE = f"before\n{zoo.BEGIN}\nold\n{zoo.END}\nafter\n"
STEPS = [step for step in ALL if step != "verify"]  # which needs a machine that is quiet for a while
TRIED = (
    "LSTM",
    "GRU",
    "Transformer",
    "resnet18",
    "densenet",
    "convnext",
    "deit_tiny_patch16_224",
    "GPT2",
    "Llama",
    "Mixtral",
    "BERT",
    "T5",
    "Whisper",
    "CLIP",
    "OPT",
    "DistilBERT",
)


@pytest.mark.slow
@pytest.mark.xdist_group("gloo")
@pytest.mark.parametrize("name", TRIED)
def test_a_model_passes_every_step(name: str) -> None:
    library = MODELS[name][0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is missing: pip install {library}")
    if importlib.util.find_spec("accelerate") is None:
        pytest.skip("accelerate is missing: pip install accelerate")
    found = zoo.in_process(name, STEPS, 600)
    assert "failed" not in found, found
    assert set(found) == {*STEPS}


def test_the_page_names_each_model_with_its_tools_and_the_reason_where_one_ends() -> None:
    passed = dict.fromkeys(ALL, "0e+00") | {"training": "32 nodes", "solve": "0%, 4%", "place": "2e-07, [1]"}
    results = {
        "GRU": {"inference": "14 nodes", "failed": "training", "error": "WorkloadError: a | b"},
        "LSTM": passed | {"exports": "torch, megatron, onnx"},
        "resnet18": passed | {"exports": "torch, megatron, onnx", "solve": "0%, 0%"},
        "RWKV": {"failed": "time", "error": "300 s"},
        "T5": {step: passed[step] for step in ALL if step != "pipeline"},
        "unknown": {},
    }
    page = zoo.with_table(PAGE, results)
    assert page.startswith("before\n") and page.endswith("after\n") and "old" not in page
    assert "3 of 5 models pass every step that was run; 3 were measured." in page
    assert "at most 2e-07 in placed steps and 0e+00 under 1F1B" in page
    assert "| megatron | LSTM (32, 4%), resnet18 (32) |" in page
    assert "| not tried | GRU, RWKV |" in page
    assert "- GRU, training: WorkloadError: a | b\n- RWKV, time: 300 s\n- T5: not run: 1F1B\n" in page
    assert zoo.with_table(page, results) == page


@pytest.mark.parametrize(
    ("before", "found", "expected"),
    [
        ({}, {"solve": "a"}, {"solve": "a"}),
        ({"solve": "a", "place": "b"}, {"place": "c"}, {"solve": "a", "place": "c"}),
        (
            {"failed": "place", "error": "e"},
            {"exports": "c"},
            {"exports": "c", "failed": "place", "error": "e"},
        ),
        ({"failed": "place", "error": "e"}, {"place": "c"}, {"place": "c"}),
        ({"place": "b"}, {"failed": "place", "error": "e"}, {"failed": "place", "error": "e"}),
        ({"failed": "model", "error": "e"}, {"place": "c"}, {"place": "c"}),
    ],
)
def test_steps_that_are_run_again_replace_their_results(
    before: dict[str, str], found: dict[str, str], expected: dict[str, str]
) -> None:
    assert zoo.merged(before, found) == expected


def test_there_are_forty_models_and_the_page_is_of_the_results() -> None:
    """The page is what the script writes from the file of results."""
    assert len(MODELS) >= 40 and set(TRIED) <= set(MODELS)
    page = zoo.PAGE.read_text(encoding="utf-8")
    assert zoo.with_table(page, json.loads(zoo.RESULTS.read_text(encoding="utf-8"))) == page
