"""What is written in a chart."""

from typing import Any


def texts(axes: Any) -> list[str]:
    """The texts of a chart; the rows of its legend whole, and their values and names by themselves."""
    written = [text.get_text() for text in axes.texts]
    legend = axes.get_legend()
    if legend is not None:
        written.append(legend.get_title().get_text())
        for row in legend.get_texts():
            values, _, name = row.get_text().rpartition(": ")
            written += [row.get_text(), name, *values.split(", ")]
    return written
