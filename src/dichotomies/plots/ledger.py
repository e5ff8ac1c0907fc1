"""`LedgerDisplay`: the NLL of every node, drawn on the tree as an icicle; narrow nodes are merged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies.diagnostics.ledger import Ledger, ledger
from dichotomies.metrics._input import check_choice
from dichotomies.metrics.binning import sums_by_index
from dichotomies.plots import style
from dichotomies.plots.style import scaled_text

#: Share of the rows below which nodes at the same depth are merged with their neighbours.
NARROW = 1 / 250


class Cells(NamedTuple):
    """Rectangles, each one depth high.

    Attributes
    ----------
    left, right : ndarray of shape (n_cells,)
        Edges, as shares of all rows.
    depth : ndarray of shape (n_cells,)
        Depth of the node, or of the merged nodes.
    value : ndarray of shape (n_cells,)
        The displayed amount per row; the mean over merged nodes.
    node : ndarray of shape (n_cells,)
        The node that a rectangle represents, or -1 for merged nodes.
    """

    left: FloatArray
    right: FloatArray
    depth: IntArray
    value: FloatArray
    node: IntArray


def leaf_edges(ledger: Ledger) -> FloatArray:
    """Return the left edge of each leaf, and the right end, as shares of all rows."""
    edges = np.concatenate([[0.0], np.cumsum(ledger.class_rows)])
    edges /= edges[-1]
    return edges


def cells_of(ledger: Ledger, amounts: FloatArray, narrow: float = NARROW) -> Cells:
    """Return the rectangles of the nodes that have rows, with those narrower than `narrow` merged.

    Parameters
    ----------
    ledger : Ledger
    amounts : ndarray of shape (n_nodes,)
        Shares of the mean over all rows, such as ``ledger.nll``.
    narrow : float
        Share of the rows below which a node is merged with other such nodes: those at the same depth whose
        midpoints are in the same interval of that width.
    """
    edges, tree = leaf_edges(ledger), ledger.tree
    left, right = edges[tree.start], edges[tree.stop]
    nodes = np.flatnonzero(right > left)
    is_narrow = right[nodes] - left[nodes] < narrow
    stretch = ((left[nodes] + right[nodes]) / 2 / narrow).astype(np.intp)
    # Wide nodes keep their own cells; ids of merged cells follow.
    n_stretches = int(1 / narrow) + 2
    key = np.where(is_narrow, tree.n_nodes + tree.depth[nodes] * n_stretches + stretch, nodes)
    _, first, cell, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    starts, stops = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(starts, cell, left[nodes])
    np.maximum.at(stops, cell, right[nodes])
    width = sums_by_index(cell, right[nodes] - left[nodes], len(first))
    return Cells(
        left=starts,
        right=stops,
        depth=tree.depth[nodes[first]],
        value=sums_by_index(cell, amounts[nodes], len(first)) / width,
        node=np.where(size == 1, nodes[first], -1),
    )


#: Quantities that colours can show, with the label of the colour bar; all per row that reaches the node.
_COLOURS = {
    "nll": "NLL of the node, nats per row that reaches it (line: ln 2, a coin toss)",
    "internal_gain": "gain of internal calibration, nats per row that reaches the node",
    "recoverable": "possible gain of recalibration, nats per row that reaches the node",
}

#: Extension of the colour bar, by the presence of values below and above its range.
_EXTENDED = {
    (False, False): "neither",
    (True, False): "min",
    (False, True): "max",
    (True, True): "both",
}

#: Minimum width, as a share of all rows, for a number, and for each letter of a label.
_ROOM_FOR_NUMBER = 0.05
_ROOM_PER_LETTER = 0.014

#: Maximum of the NLL before calibration that is drawn to scale, relative to the current NLL.
_MAX_RATIO = 3.0

#: Minimum share of the NLL for which a node shows a number.
_MIN_SHARE = 0.005

#: Number of rectangles above which they are rasterised, to limit the file size.
_MAX_VECTORS = 500


class LedgerDisplay:
    """Icicle plot of the tree, root on top: nodes are as wide as their rows and coloured by NLL.

    A second panel shows the NLL added at each depth with 95 % intervals and, with internal calibration, the
    value before it. Nodes too narrow to be seen are merged with their neighbours.

    Parameters
    ----------
    ledger : Ledger
        The result of `dichotomies.diagnostics.ledger`.

    Attributes
    ----------
    ax_, depth_ax_ : matplotlib axes
        The icicle, and the NLL by depth.
    figure_ : matplotlib figure
        The figure.
    cells_ : Cells
        The rectangles drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.plots import LedgerDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> len(LedgerDisplay.from_estimator(clf, X[1000:] / 16, y[1000:]).cells_.node)
    9
    """

    ax_: Any
    depth_ax_: Any
    figure_: Any
    cells_: Cells

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        colour: str = "nll",
        ax: Any = None,
    ) -> LedgerDisplay:
        """Compute the ledger of a fitted nested dichotomy and plot it.

        Parameters
        ----------
        clf : fitted nested dichotomy, or a pipeline that ends in one
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
        colour, ax
            As of `plot`.
        """
        return cls(ledger(clf, X, y, sample_weight=sample_weight)).plot(ax, colour=colour)

    def plot(self, ax: Any = None, *, colour: str = "nll") -> LedgerDisplay:
        """Draw the tree and the totals by depth.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; they are divided in two. By default a new figure.
        colour : {"nll", "internal_gain", "recoverable"}
            Quantity shown by a node's colour, per row that reaches it: its NLL, the gain of internal
            calibration, or the gain that recalibration would bring.
        """
        self.cells_ = cells_of(self.ledger, self._amounts(colour))
        size = 7.2, min(2.0 + 0.32 * self.ledger.tree.max_depth, 6.5)
        ax = style.axes_or_new(ax, size)
        with scaled_text(ax, size):
            self.figure_ = ax.figure
            space = {"wspace": 0.02 if style.has_layout_engine(ax.figure) else 0.1}
            ((self.ax_, self.depth_ax_),) = style.divided(ax, 1, 2, width_ratios=[4.2, 1], **space)
            self._draw_cells(colour)
            self._draw_leaves()
            self._draw_depths()
            self._finish()
            self.ax_.set_title(self._summary(), loc="left", fontsize="medium")
        return self

    def _amounts(self, colour: str) -> FloatArray:
        check_choice("colour", colour, _COLOURS)
        amounts: FloatArray | None = getattr(self.ledger, colour)
        if amounts is None:
            raise ValueError("There is no internal gain to show: the classifier has no internal calibration.")
        return amounts

    # ------------------------------------------------------------------ tree

    def _draw_cells(self, colour: str) -> None:
        cells = self.cells_
        corners = _corners(cells.left, cells.right, cells.depth)
        edge = np.where(cells.right - cells.left > 0.01, 0.6, 0.0)
        patches = style.matplotlib("collections").PolyCollection(
            corners,
            array=cells.value,
            edgecolors="white",
            linewidths=edge,
            rasterized=len(corners) > _MAX_VECTORS,
        )
        _set_scale(patches, colour)
        self.ax_.add_collection(patches)
        axes = [self.ax_, self.depth_ax_]
        lowest, highest = patches.get_clim()
        ends = bool(cells.value.min() < lowest), bool(cells.value.max() > highest)
        pad = 0.02 if style.has_layout_engine(self.figure_) else 0.25
        bar = self.figure_.colorbar(
            patches, ax=axes, location="bottom", aspect=60, pad=pad, shrink=0.8, extend=_EXTENDED[ends]
        )
        bar.set_label(_COLOURS[colour], fontsize="small")
        bar.outline.set_visible(False)
        if colour == "nll":
            bar.ax.axvline(np.log(2), color="white", linewidth=1.5)
        self._write_shares(patches)

    def _write_shares(self, patches: Any) -> None:
        """Write each wide node's share of the total, in a legible colour."""
        cells, total = self.cells_, self.ledger.total
        share = np.where(cells.node >= 0, self.ledger.nll[cells.node], 0.0) / (total or 1.0)
        roomy = np.flatnonzero((share >= _MIN_SHARE) & (cells.right - cells.left > _ROOM_FOR_NUMBER))
        for cell, rgba in zip(roomy, patches.to_rgba(cells.value[roomy]), strict=True):
            middle = (cells.left[cell] + cells.right[cell]) / 2
            ink = "black" if rgba[:3] @ [0.299, 0.587, 0.114] > 0.5 else "white"
            place = middle, cells.depth[cell] + 0.5
            self.ax_.text(
                *place, f"{share[cell]:.0%}", ha="center", va="center", fontsize="x-small", color=ink
            )

    def _draw_leaves(self) -> None:
        """Label the classes that are wide enough, in pale rectangles below the last node."""
        tree, edges = self.ledger.tree, leaf_edges(self.ledger)
        names = [str(label) for label in tree.leaf_labels.tolist()]
        width = np.diff(edges)
        needed = np.maximum(_ROOM_PER_LETTER * np.array([len(name) for name in names]), 2 * _ROOM_PER_LETTER)
        roomy = np.flatnonzero(width > needed)
        corners = _corners(edges[roomy], edges[roomy + 1], tree.leaf_depth[roomy])
        leaves = style.matplotlib("collections").PolyCollection(
            corners, facecolors="#F2F2F2", edgecolors="white", linewidths=0.6
        )
        self.ax_.add_collection(leaves)
        for leaf in roomy:
            place = (edges[leaf] + edges[leaf + 1]) / 2, tree.leaf_depth[leaf] + 0.5
            self.ax_.text(*place, style.plain(names[leaf]), ha="center", va="center", fontsize="x-small")

    # ------------------------------------------------------------------ depths

    def _draw_depths(self) -> None:
        table = self.ledger.by_depth()
        middle = table["depth"] + 0.5
        error = style.Z_95 * table["standard_error"]
        whisker = {"elinewidth": 0.8, "ecolor": style.GREY}
        self.depth_ax_.barh(
            middle,
            table["nll"],
            xerr=error,
            height=0.72,
            color=style.COLOURS[5],
            error_kw=whisker,
            label="now",
        )
        if self.ledger.raw_nll is not None:
            self._draw_raw(table["raw_nll"], middle, most=_MAX_RATIO * float((table["nll"] + error).max()))

    def _draw_raw(self, raw: FloatArray, middle: FloatArray, most: float) -> None:
        """Mark the NLL before internal calibration; values off the scale are written at the edge."""
        near = raw <= most
        style_of = {"color": style.BEFORE, "markerfacecolor": "white", "markersize": 3.5, "linestyle": "none"}
        label = "before internal\ncalibration"
        self.depth_ax_.plot(raw[near], middle[near], marker="D", **style_of, label=label)
        self.depth_ax_.plot(np.full((~near).sum(), most), middle[~near], marker=">", **style_of)
        for value, place in zip(raw[~near], middle[~near], strict=True):
            self.depth_ax_.annotate(
                f"{value:.2g}", (most, place), (-6, 0), textcoords="offset points",
                ha="right", va="center", fontsize="x-small", color=style.BEFORE,
            )  # fmt: skip
        self.depth_ax_.legend(frameon=False, fontsize="x-small", loc="lower right")

    def _finish(self) -> None:
        bottom = self.ledger.tree.max_depth + (1 if len(self.ax_.texts) and self._names_classes() else 0)
        for ax in (self.ax_, self.depth_ax_):
            ax.set_ylim(bottom, 0)
            ax.spines[["top", "right", "left"]].set_visible(False)
            ax.tick_params(axis="y", length=0)
        depths = style.evenly_spaced(self.ledger.tree.max_depth, most=12)
        self.ax_.set(xlim=(0, 1), ylabel="depth", yticks=depths + 0.5, yticklabels=depths.tolist())
        self.ax_.set(xlabel=f"rows ({self.ledger.class_rows.sum():,.0f} in all)")
        self.ax_.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        self.depth_ax_.set(yticks=[], xlabel="NLL, nats")
        self.depth_ax_.set_xlim(left=0)

    def _names_classes(self) -> bool:
        return len(self.ax_.collections) > 1 and len(self.ax_.collections[1].get_paths()) > 0

    def _summary(self) -> str:
        book = self.ledger
        n_nodes = book.tree.n_nodes
        text = f"NLL {book.total:.3f}, the sum over {n_nodes:,} node{'s' if n_nodes > 1 else ''}"
        if book.final_nll != book.total:
            text += f"; {book.final_nll:.3f} after external calibration"
        return text


def _corners(left: FloatArray, right: FloatArray, depth: Any) -> Any:
    """Return the corners of rectangles, shape (n, 4, 2)."""
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([depth, depth, depth + 1, depth + 1], axis=1)
    return np.stack([x, y], axis=2)


def _set_scale(patches: Any, colour: str) -> None:
    """Set the colours: sequential from 0 for amounts, diverging around 0 for gains."""
    value = np.asarray(patches.get_array())
    if colour == "internal_gain":
        limit = max(float(np.quantile(np.abs(value), 0.98)), 1e-6)
        patches.set(cmap="PuOr", clim=(-limit, limit))
        return
    highest = float(np.quantile(value, 0.98)) if len(value) else 0.0
    patches.set(cmap="magma_r", clim=(0, 1.25 * max(highest, 0.7) if colour == "nll" else max(highest, 1e-6)))
