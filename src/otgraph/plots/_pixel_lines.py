"""Draw millions of lines with a kernel, as pixels instead of paths.

All lines have one color. Painting them over each other in any order therefore gives a pixel the
opacity 1 - prod(1 - alpha_e · covered share). One pass over the lines adds up the logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist, allow_rasterization
from matplotlib.colors import to_rgb

from otgraph._kernels.lines import add_lines
from otgraph.plots._density import POINTS_PER_INCH

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase
    from matplotlib.typing import ColorType

    from otgraph.typing import FloatArray, IndexArray

MOST_OPAQUE = 1.0 - 1e-9  # keeps the logarithm of 1 - opacity finite


class PixelLines(Artist):
    """Lines between positions i and j, drawn as one image in the resolution of the output.

    Positions are in data coordinates. Every line has its opacity alpha; color and width, in points,
    are the same for all.
    """

    def __init__(
        self,
        positions: FloatArray,
        i: IndexArray,
        j: IndexArray,
        alpha: FloatArray,
        *,
        color: ColorType,
        width: float,
    ) -> None:
        super().__init__()
        self.positions, self.i, self.j, self.alpha = positions, i, j, alpha
        self.rgb, self.width = to_rgb(color), width
        self.set_rasterized(True)

    @allow_rasterization  # type: ignore[untyped-decorator]
    def draw(self, renderer: RendererBase) -> None:
        """Paint the part inside the axes."""
        assert self.axes is not None  # it was added to some
        if not self.get_visible():
            return
        box = self.axes.bbox
        left, bottom = int(np.floor(box.x0)), int(np.floor(box.y0))
        shape = int(np.ceil(box.y1)) - bottom, int(np.ceil(box.x1)) - left
        pixels = self.axes.transData.transform(self.positions) - (left, bottom)
        shining_through = np.zeros(shape)
        add_lines(
            np.ascontiguousarray(pixels[:, 0]),
            np.ascontiguousarray(pixels[:, 1]),
            self.i,
            self.j,
            np.log1p(-np.minimum(self.alpha, MOST_OPAQUE)),
            0.5 * self.width * self.axes.figure.dpi / POINTS_PER_INCH,
            shining_through,
        )
        image = np.empty((*shape, 4), dtype=np.uint8)
        image[:, :, :3] = np.round(255 * np.array(self.rgb))
        image[:, :, 3] = np.round(255 * -np.expm1(shining_through))
        gc = renderer.new_gc()
        gc.set_clip_rectangle(box)
        renderer.draw_image(gc, left, bottom, image)
        gc.restore()
