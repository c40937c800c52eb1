"""Profiles are read as they are written, and a broken line is named with field, value and rule."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner.base.errors import WorkloadError
from partitioner.formats.pipedream import Profile, read_profile
from tests.formats.profile_text import render

NUMBERS = "forward_compute_time=1.500, backward_compute_time=2.25, activation_size=64.0, parameter_size=8.000"
SOUND = f"""node1 -- Input0 -- {NUMBERS}
node2 -- LSTM(4, 4) -- {NUMBERS.replace("64.0", "[64.0; 32.5]")} -- stage_id=0
node3 -- __getitem__(0) -- {NUMBERS} -- stage_id=1
\tnode1 -- node2
\tnode2 -- node3
"""
FEW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY = settings(FEW, max_examples=300)


def written(folder: Path, text: str | bytes) -> Path:
    """A file of that text."""
    path = folder / "graph.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def test_every_field_is_read(tmp_path: Path) -> None:
    profile = read_profile(written(tmp_path, SOUND))
    assert profile.ids == ("node1", "node2", "node3")
    assert profile.descriptions == ("Input0", "LSTM(4, 4)", "__getitem__(0)")
    assert profile.forward.tolist() == [1.5] * 3 and profile.backward.tolist() == [2.25] * 3
    assert profile.activation.tolist() == [64.0, 96.5, 64.0] and profile.parameters.tolist() == [8.0] * 3
    assert profile.edges.tolist() == [[0, 1], [1, 2]] and profile.stage.tolist() == [-1, 0, 1]


def test_order_of_lines_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    nodes, edges = SOUND.splitlines()[:3], SOUND.splitlines()[3:]
    turned = "\ufeff" + "\r\n".join([*edges, "", *nodes, "  "])
    assert render(read_profile(written(tmp_path, turned))) == render(read_profile(written(tmp_path, SOUND)))


def test_trimmed_profile_has_neither_inputs_nor_unused_items(tmp_path: Path) -> None:
    """The item of the tuple is a sink; the input is a source. A node named so in between stays."""
    profile = read_profile(written(tmp_path, SOUND)).trimmed()
    assert profile.ids == ("node2",) and len(profile.edges) == 0 and profile.stage.tolist() == [0]
    inner = SOUND.replace("LSTM(4, 4)", "Input1").replace("__getitem__(0)", "Linear")
    assert read_profile(written(tmp_path, inner)).trimmed().ids == ("node2", "node3")
    kept = read_profile(written(tmp_path, inner)).trimmed()
    assert kept.edges.tolist() == [[0, 1]] and kept.activation.tolist() == [96.5, 64.0]


@pytest.mark.parametrize(
    ("old", "new", "flaw"),
    [
        ("node1 -- Input0 -- forward", "node1 -- forward", "line 1: 'node1 -- forward"),
        ("node3 -- __get", "node2 -- __get", "line 3: id = 'node2': is given to more than one node"),
        ("=64.0", "=64.0x", "line 1: activation_size = '64.0x': must be a number"),
        ("=64.0", "=-64.0", "line 1: activation_size = '-64.0': must be a finite number of at least 0"),
        ("=64.0", "=[64.0; ]", "line 1: activation_size = '[64.0; ]': must be a number; so must each"),
        ("=64.0", "=1e-200", "line 1: activation_size = '1e-200': must be 0, or from 1e-100 to 1e+100"),
        ("=2.25", "=nan", "line 1: backward_compute_time = 'nan': must be a number"),
        ("=2.25", "=1e999", "line 1: backward_compute_time = '1e999': must be a finite number"),
        (", backward_compute_time=2.25", "", "line 1: backward_compute_time: is missing"),
        ("backward_compute_time", "Backward_compute_time", "(found Backward_compute_time; upper and lower"),
        ("=2.25", "=2.25, colour=3", "line 1: colour = '3': is not a field; known are forward_compute_time"),
        ("=2.25", "=2.25, backward_compute_time=1", "line 1: backward_compute_time = '1': is given twice"),
        ("=2.25", "=2.25, more", "line 1: 'more': must be `name=value`"),
        ("stage_id=1", "stage_id=-1", "line 3: stage_id = '-1': must be a whole number of at least 0"),
        ("\tnode1 -- node2", "\tnode1 node2", "line 4: 'node1 node2': must be an edge"),
        ("\tnode1 -- node2", "\tnode1 -- node9", "line 4: target = 'node9': is not the id of a node"),
        ("\tnode1 -- node2", "\tnode2 -- node2", "line 4: edge = 'node2 -- node2': must join two different"),
        ("\tnode1 -- node2", "\tnode3 -- node2", "edges: node3 -> node2 -> node3: is a cycle"),
        (SOUND, "\n", "file: nodes: there must be at least one"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, old: str, new: str, flaw: str) -> None:
    assert old in SOUND
    path = written(tmp_path, SOUND.replace(old, new, 1))
    with pytest.raises(WorkloadError) as caught:
        read_profile(path)
    assert flaw in str(caught.value) and len(caught.value.flaws) <= 2
    assert all(line.startswith(f"{path}: ") for line in str(caught.value).splitlines())


def test_all_flaws_are_named_at_once(tmp_path: Path) -> None:
    text = SOUND.replace("=1.500", "=x").replace("node2 -- node3", "node2 -- node4")
    with pytest.raises(WorkloadError) as caught:
        read_profile(written(tmp_path, text))
    assert [flaw.where for flaw in caught.value.flaws] == ["line 1", "line 2", "line 3", "line 5"]


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path, written(tmp_path, b"\xff\xfe")):
        with pytest.raises(WorkloadError, match="file"):
            read_profile(path)


AMOUNT = st.floats(1e-100, 1e100) | st.just(0.0)
WORD = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=6).map(str.strip)
WORDS = WORD.filter(lambda word: " -- " not in f" {word} " and not word.startswith("stage_id="))


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A sound profile of a few nodes."""
    ids = draw(st.lists(WORDS.filter(bool), min_size=1, max_size=5, unique=True))
    n = len(ids)
    pairs = [(u, v) for v in range(n) for u in range(v) if draw(st.booleans())]
    amounts = st.lists(AMOUNT, min_size=n, max_size=n).map(np.array)
    return Profile(
        ids=tuple(ids),
        descriptions=tuple(draw(st.lists(WORDS, min_size=n, max_size=n))),
        forward=draw(amounts),
        backward=draw(amounts),
        activation=draw(amounts),
        parameters=draw(amounts),
        edges=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        stage=np.array(draw(st.lists(st.integers(-1, 9), min_size=n, max_size=n))),
    )


@FEW
@given(profiles())
def test_what_is_written_is_read(tmp_path: Path, profile: Profile) -> None:
    assert_read_again(tmp_path, profile)


@pytest.mark.slow
@MANY
@given(profiles())
def test_what_is_written_is_read_often(tmp_path: Path, profile: Profile) -> None:
    assert_read_again(tmp_path, profile)


def assert_read_again(tmp_path: Path, profile: Profile) -> None:
    """Write a profile, read it, and compare every field."""
    again = read_profile(written(tmp_path, render(profile)))
    assert again.ids == profile.ids and again.descriptions == profile.descriptions
    for name in ("forward", "backward", "activation", "parameters", "edges", "stage"):
        assert getattr(again, name).tolist() == getattr(profile, name).tolist(), name


def read_or_refuse(path: Path) -> bool:
    """Whether the file is read; anything but a profile or a `WorkloadError` escapes."""
    try:
        return isinstance(read_profile(path), Profile)
    except WorkloadError as error:
        assert error.flaws and str(error).strip()
        return False


@MANY
@given(st.text() | st.binary())
def test_arbitrary_text_is_read_or_refused(tmp_path: Path, text: str | bytes) -> None:
    assert not read_or_refuse(written(tmp_path, text))


SYNTAX = (" -- ", "\t", "\n", "node1", "node2", "stage_id=", "[1; 2]", ", ", "=", "0", "1e400")
PIECE = st.sampled_from((*SYNTAX, *NUMBERS.split(", ")))


@MANY
@given(st.lists(PIECE | st.text(max_size=2), max_size=30).map("".join))
def test_pieces_of_profiles_are_read_or_refused(tmp_path: Path, text: str) -> None:
    read_or_refuse(written(tmp_path, text))


def test_mutated_profiles_are_read_or_refused(tmp_path: Path) -> None:
    """Pieces of a sound file cut out or doubled, or a character changed: both ends are met."""
    rng, sound = random.Random(1), 0
    for _ in range(1500):
        start = rng.randrange(len(SOUND))
        end = min(len(SOUND), start + rng.choice((0, 1, 1, 3, 30)))
        middle = rng.choice(("", "", SOUND[start:end] * 2, rng.choice("\t\n -=;,[]x9.\u2028\x1c\0é")))
        sound += read_or_refuse(written(tmp_path, SOUND[:start] + middle + SOUND[end:]))
    assert 200 < sound < 1300
