"""Every adversarial instance has a question, and no answer contradicts the best plan known."""

from __future__ import annotations

import json

import bench_adversarial
import pytest

QUESTIONS = json.loads((bench_adversarial.FOLDER / "questions.json").read_text(encoding="utf-8"))


def test_each_file_has_a_question_and_a_lesson() -> None:
    files = {path.stem for path in bench_adversarial.FOLDER.glob("*.json")} - {"questions"}
    assert files == set(QUESTIONS)
    assert all(question["learnt"] for question in QUESTIONS.values())


@pytest.mark.parametrize("pattern", ["groups|levels", pytest.param("", marks=pytest.mark.slow)])
def test_no_answer_contradicts_the_best_plan(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_adversarial.main(["--only", pattern]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 2


def test_what_was_mended_stays_so() -> None:
    """Values and bounds over groups and levels, and of the orders that keep kinds together."""
    mended = [name for name, question in QUESTIONS.items() if question.get("mended")]
    for name in mended:
        found = bench_adversarial.answer(bench_adversarial.FOLDER, name, QUESTIONS[name])
        assert found.value == pytest.approx(found.best, rel=1e-6), name
    assert mended
