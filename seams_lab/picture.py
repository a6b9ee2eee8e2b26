"""A picture that says what it shows: image, one-line caption, text alternative."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Picture:
    """An image for a notebook or a file.

    Parameters
    ----------
    data : bytes
        PNG bytes, or UTF-8 encoded SVG.
    mime : str
        ``"image/png"`` or ``"image/svg+xml"``.
    caption : str
        One line shown under the image.
    alt : str
        The text alternative: what a person who cannot see the image needs to know,
        with the numbers that matter.
    """

    data: bytes
    mime: str
    caption: str
    alt: str

    @classmethod
    def from_figure(cls, figure: Figure, *, caption: str, alt: str, dpi: int = 110) -> Picture:
        """Render a matplotlib figure (one that pyplot does not know) to PNG."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
        return cls(buffer.getvalue(), "image/png", caption, alt)

    @classmethod
    def from_svg(cls, svg: str, *, caption: str, alt: str) -> Picture:
        """Wrap an SVG document; its root should carry ``role="img"`` and ``aria-label``."""
        return cls(svg.encode(), "image/svg+xml", caption, alt)

    def to_html(self) -> str:
        """Return a ``<figure>`` with the image, its text alternative and its caption."""
        if self.mime == "image/svg+xml":
            image = self.data.decode()
        else:
            encoded = base64.b64encode(self.data).decode()
            image = (
                f'<img style="max-width:100%" alt="{html.escape(self.alt, quote=True)}" '
                f'src="data:{self.mime};base64,{encoded}">'
            )
        return (
            f'<figure style="margin:0">{image}'
            f'<figcaption style="font-size:90%;opacity:.8">{html.escape(self.caption)}</figcaption>'
            "</figure>"
        )

    def save(self, path: str | Path) -> Path:
        """Write the image to *path* and return it."""
        path = Path(path)
        path.write_bytes(self.data)
        return path

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return f"<Picture: {self.caption}>\n{self.alt}"
