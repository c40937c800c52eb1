"""The README's picture is drawn from the workload that its text is about, and is small enough for a page."""

from __future__ import annotations

import re
from pathlib import Path

import readme_pictures
from PIL import Image

MOST_BYTES = 150_000


def test_the_picture_is_a_small_file_with_both_parts(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    assert readme_pictures.main(["--output", str(path)]) == 0
    assert path.stat().st_size < MOST_BYTES
    with Image.open(path) as picture:
        width, height = picture.size
        colours = picture.convert("RGB").getcolors(width * height)
        assert 800 <= width <= 1600 and colours is not None and len(colours) > 10


def test_the_readme_shows_the_picture_of_the_repository() -> None:
    readme = (readme_pictures.ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", readme)
    assert readme_pictures.ROOT / shown == readme_pictures.PICTURE
    assert readme_pictures.PICTURE.stat().st_size < MOST_BYTES
    assert str(readme_pictures.WORKLOAD.relative_to(readme_pictures.ROOT)) in readme
