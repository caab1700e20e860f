"""Colors of groups: up to a hundred, and those of lines, frames and unknown labels."""

from __future__ import annotations

INK = "#22223b"  # lines and frames: near black, softer beside colored points
UNKNOWN = "#c8c8c8"  # points whose label is -1 or missing

# Eight of the ten colors that Petroff (2021, arXiv:2107.02270) found by optimization under a bound
# on their distance for readers with any of the common color-vision deficiencies. His two grays
# would vanish among edges and points of unknown label; a green and a pink are in their places.
GROUPS = (
    "#3f90da", "#ffa90e", "#bd1f01", "#006443", "#832db6", "#a96b59", "#e76300", "#b9ac70",
    "#e64aad", "#92dadd",
)  # fmt: skip
# Each is as far as possible from those before it, for all readers: `tools/palette.py` found them. A
# palette of n colors therefore begins every longer one: a group that is added changes no other.
MORE = (
    "#43f485", "#f490ff", "#374e85", "#009085", "#de90a6", "#7a64f4", "#219b00", "#a6006f",
    "#00bcc8", "#855990", "#2c4ed3", "#c8de4e", "#bc7aff", "#7a9b59", "#852c21", "#b143b1",
    "#64d39b", "#9b7abc", "#6f5900", "#b14364", "#debcff", "#85b1e9", "#64d343", "#c86485",
    "#5921b1", "#6f3759", "#436fd3", "#ffb1a6", "#377a37", "#a6a600", "#00b190", "#ff7ac8",
    "#f46464", "#64439b", "#de64de", "#852c85", "#c8c87a", "#a60037", "#a68537", "#854e4e",
    "#006f85", "#d3377a", "#b15900", "#4e64a6", "#0bf4bc", "#2cbcff", "#e99037", "#9059c8",
    "#d39bde", "#d37ab1", "#6fbc4e", "#00a6c8", "#d3907a", "#ff599b", "#ff906f", "#4ed3e9",
    "#9b6fff", "#6f90f4", "#d34e4e", "#f49bc8", "#ff7a90", "#6f169b", "#00de85", "#2c7a6f",
    "#21b143", "#5959de", "#217aa6", "#c8164e", "#b1599b", "#ffc800", "#164eb1", "#59436f",
    "#9bc800", "#90d3b1", "#a64385", "#e9bc59", "#009ba6", "#856fc8", "#1637bc", "#9b3764",
    "#9be96f", "#006fbc", "#007a00", "#d37a6f", "#9b0b00", "#598537", "#6f37c8", "#901659",
    "#a6de16", "#a659de",
)  # fmt: skip


def palette(n: int) -> list[str]:
    """Colors of n groups as hexadecimal strings; more than a hundred cannot be told apart."""
    colors = GROUPS + MORE
    return [colors[k % len(colors)] for k in range(n)]
