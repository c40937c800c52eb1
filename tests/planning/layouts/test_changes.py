"""What a change buys is what ranking the changed cluster finds: the same layout and tokens per second."""

from __future__ import annotations

import json

import pytest

import partitioner as pt
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.cli.command_line import main
from partitioner.estimation.named_devices import named_device
from partitioner.planning.layouts.changes import find_changes
from partitioner.planning.layouts.question import LayoutQuestion, cluster_of, decoder_to_train
from partitioner.planning.layouts.result import LayoutChange
from tests.planning.layouts.test_timing import CONFIG

ASKED = {"gpus": 16, "global_batch": 32, "sequence": 512, "network": 5e9, "top": 1}


def explained(device: str = "H100", **more: object) -> pt.LayoutPlan:
    return pt.plan(CONFIG, device=device, explain=True, time_limit=None, **ASKED | more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def changes() -> dict[str, LayoutChange]:
    """What changes buy, of two other GPUs too."""
    return {each.change: each for each in explained(instead=["A100-80", "H100"]).changes}


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ("network twice as fast", {"network": 10e9}),
        ("twice the memory", {"memory": 160e9}),
        ("products in float8", {"dtype": "float8"}),
        ("twice the GPUs a server", {"node": 16}),
        ("half the GPUs a server", {"node": 4}),
        ("twice the GPUs", {"gpus": 32}),
        ("A100-80", {"device": "A100-80"}),
    ],
)
@pytest.mark.slow
def test_a_change_buys_what_the_changed_question_finds(
    change: str, given: dict[str, object], changes: dict[str, LayoutChange]
) -> None:
    found = changes[change]
    asked = {"device": "H100"} | ASKED | given
    alone = pt.plan(CONFIG, time_limit=0.9, **asked)  # type: ignore[arg-type]  # too short for unequal stages
    assert found.best is not None and found.complete
    if alone.complete:
        assert found.best == alone.best and found.bound == pytest.approx(alone.bound)


@pytest.mark.slow
def test_gains_are_tokens_a_second_over_those_without_the_change() -> None:
    plan = explained(instead=[])
    plain = next(each for each in plan.changes if each.change == "twice the memory")
    assert plain.best is not None and plain.gain >= 1 - 1e-9  # more memory leaves all layouts
    assert [each.change for each in plan.changes][-1] == "twice the GPUs"
    assert all(each.bound <= each.best.seconds for each in plan.changes if each.best)


def test_what_helps_every_layout_is_never_said_to_cost_time() -> None:
    """Also where no time is left: the layouts ranked without the change are simulated with it."""
    question = LayoutQuestion(
        decoder_to_train(CONFIG), cluster_of(named_device("H100"), 16, 8, None, 5e9, 0, None), 32, 512
    )
    ranked = question.search(3, Clock(60), Interruption(None)).search(*question.layouts())
    found = find_changes(question, ranked, [], Clock(0), Interruption(None))
    helpful = {"network twice as fast", "servers' links twice as fast", "twice the memory"}
    assert helpful == {each.change for each in found if each.gain >= 1 - 1e-9} & helpful
    assert not any(each.complete for each in found)


def test_no_time_is_no_proof() -> None:
    with pytest.raises(pt.NoPlanFound, match="no layout was found among the first 0"):
        pt.plan(CONFIG, device="H100", time_limit=1e-9, **ASKED)  # type: ignore[arg-type]


def test_a_change_that_asks_the_same_is_left_out() -> None:
    alone = {each.change for each in explained("A100-80", gpus=1, instead=["A100-80"]).changes}
    assert alone == {"twice the memory", "twice the GPUs"}


def test_a_device_without_the_type_or_the_room_says_why() -> None:
    plan = explained(dtype="float8", gpus=1, memory=70e9, instead=["A100-80", "T4"])
    why = {each.change: each.reason for each in plan.changes if each.best is None}
    assert why["A100-80"].startswith("dtype = 'float8': device A100-80 has speeds for")
    assert "device A100-80 has speeds for" in " ".join(plan.summary(160).split())


def test_the_command_prints_the_table_and_the_json(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path_factory.mktemp("plan") / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    asked = [
        "plan",
        str(file),
        "--gpus",
        "2",
        "--device",
        "A100-80",
        "--global-batch",
        "4",
        "--sequence",
        "64",
    ]
    assert main([*asked, "--explain", "--instead", "H100, L40S"]) == 0
    text = capsys.readouterr().out
    assert "L40S" in text and "twice the memory" in text and max(map(len, text.splitlines())) <= 80
    assert main([*asked, "--explain", "--instead", "H100", "--format", "json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert [each["change"] for each in changes][-1] == "H100" and changes[-1]["gain"] > 0
    assert main([*asked, "--explain", "--instead", "Z9"]) == 2


@pytest.mark.slow
def test_many_rows_without_a_time_limit_keep_equal_stages_after_the_first() -> None:
    found = pt.plan(CONFIG, device="H100", time_limit=None, **ASKED | {"top": 40})  # type: ignore[arg-type]
    times = [row.seconds for row in found.rows]
    assert len(times) == 40 and times == sorted(times)
