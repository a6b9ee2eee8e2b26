"""Pictures carry their caption and text alternative, escaped, and no date in their bytes."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from seams_lab.picture import Picture


def test_an_image_has_its_text_alternative_and_caption() -> None:
    html = Picture(b"\x89PNG", "image/png", 'a "b" <c>', "5 > 4 & <b>").to_html()
    assert 'alt="5 &gt; 4 &amp; &lt;b&gt;"' in html
    assert "a &quot;b&quot; &lt;c&gt;</figcaption>" in html
    assert "data:image/png;base64,iVBORw==" in html


def test_an_svg_is_shown_inline() -> None:
    picture = Picture.from_svg('<svg role="img"/>', caption="c", alt="a")
    assert '<svg role="img"/>' in picture.to_html()


def test_a_figure_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    figure = Figure(figsize=(1, 1))
    one = Picture.from_figure(figure, caption="c", alt="a")
    two = Picture.from_figure(figure, caption="c", alt="a")
    assert one == two
    assert one.save(tmp_path / "p.png").read_bytes() == one.data
    assert repr(one) == "<Picture: c>\na"
