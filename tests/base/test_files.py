"""Files are read strictly and written as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partitioner import PartitionerError, WorkloadError
from partitioner.base.files import check_writable, read_json, write_text
from tests.instances import write


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, "é"]}', ' {"a": [1, 2.5, null, "\\u00e9"]}\r\n'])
def test_json_is_read(tmp_path: Path, text: str) -> None:
    assert read_json(write(tmp_path, text)) == {"a": [1, 2.5, None, "é"]}


def test_a_byte_order_mark_is_forgiven(tmp_path: Path) -> None:
    assert read_json(write(tmp_path, b"\xef\xbb\xbf[1]")) == [1]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("", "is not JSON: Expecting value: line 1 column 1"),
        ("{'a': 1}", "is not JSON: Expecting property name enclosed in double quotes"),
        ('{"a": 1', "is not JSON: Expecting ',' delimiter: line 1 column 8"),
        ("[1] [2]", "is not JSON: Extra data: line 1 column 5"),
        ("[NaN]", "NaN: numbers must be finite"),
        ("[-Infinity]", "-Infinity: numbers must be finite"),
        ("[" + "9" * 5000 + "]", "is not JSON: Exceeds the limit"),
        ("[" * 100_000, "is nested too deeply"),
        (b'{"a": "\xff"}', "is not a UTF-8 text file"),
        ("[1]".encode("utf-16"), "is not a UTF-8 text file"),
        ('{"a": {"x": 1, "x": 2}}', "file: x: is given twice in one object"),
        ('{"nodes": [{"id": 7, "size": 1, "size": 1}]}', "node 7: size: is given twice in one object"),
        ('[{"sourceId": 1, "destId": "b", "cost": 1, "cost": 2}]', "edge 1 -> 'b': cost: is given twice"),
    ],
)
def test_what_is_not_strict_json_is_refused(tmp_path: Path, content: str | bytes, rule: str) -> None:
    """The error names the file and what is wrong with it, and where if that can be told."""
    path = write(tmp_path, content)
    with pytest.raises(WorkloadError) as caught:
        read_json(path)
    assert caught.value.source == str(path)
    assert str(caught.value).startswith(f"{path}: ") and rule in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError) as caught:
        read_json(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'}: file: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="file: Is a directory"):
        read_json(tmp_path)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(WorkloadError, match="embedded null byte"):
        read_json("a\0b")
    with pytest.raises(PartitionerError, match="cannot be written: embedded null byte"):
        write_text("a\0b", "text")


def test_text_is_written_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_text(path, "first")
    write_text(path, "é")
    assert path.read_text(encoding="utf-8") == "é"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """As if it had been opened and written, not as a temporary file."""
    (tmp_path / "usual").write_text("")
    write_text(tmp_path / "plan", "")
    assert (tmp_path / "plan").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("name", ["missing/plan.json", "."])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(PartitionerError) as caught:
        write_text(tmp_path / name, "text")
    assert str(caught.value).startswith(f"{tmp_path / name}: cannot be written: ")


def test_a_failed_writing_leaves_the_old_file(tmp_path: Path) -> None:
    """A text that cannot be encoded is no OSError; the file stays and nothing lies beside it."""
    path = tmp_path / "plan.json"
    write_text(path, "old")
    with pytest.raises(PartitionerError, match="cannot be written"):
        write_text(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_regular_file_is_written_to_directly() -> None:
    """The null device is not replaced by a file."""
    write_text(os.devnull, "text")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["missing/file.json", ".", "file.json/x", "x" * 300, "a\0b"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.json").write_text("old", encoding="utf-8")
    with pytest.raises(PartitionerError, match="cannot be written: "):
        check_writable(tmp_path / "good.json", tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_checking_a_place_changes_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old", encoding="utf-8")
    check_writable(old, tmp_path / "new.json", "/dev/null", None)
    assert list(tmp_path.iterdir()) == [old] and old.read_text(encoding="utf-8") == "old"


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.txt", tmp_path / "link.txt"
    real.write_text("old", encoding="utf-8")
    link.symlink_to(Path("folder") / "real.txt")
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "new"
    assert [each.name for each in (tmp_path / "folder").iterdir()] == ["real.txt"]


def test_a_link_to_no_file_makes_the_file(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "made.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "made.txt").read_text(encoding="utf-8") == "new"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(PartitionerError, match="cannot be written: Too many levels of symbolic links"):
        write_text(tmp_path / "a", "new")


def test_the_permissions_of_a_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o600)
    write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_umask_of_the_process_never_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread's files would be made without it for a moment."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
    write_text(tmp_path / "file.txt", "new")


def test_a_redirected_standard_output_is_written_to_and_kept(tmp_path: Path) -> None:
    """The file gets the content in addition to what is printed, and the device stays a device."""
    program = "from partitioner.base.files import write_text\nprint('before', flush=True)\n"
    program += "write_text('/dev/stdout', 'content')\n"
    with (tmp_path / "out.txt").open("wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "before\ncontent"
    assert Path("/dev/stdout").is_symlink()


def test_many_keys_are_checked_in_a_moment(tmp_path: Path) -> None:
    """A check that compares all pairs would take minutes."""
    keys = ", ".join(f'"{i}": 1' for i in range(200_000))
    with pytest.raises(WorkloadError, match="199999: is given twice in one object"):
        read_json(write(tmp_path, f'{{{keys}, "199999": 1}}'))
