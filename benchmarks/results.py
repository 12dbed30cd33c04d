"""What was measured: samples, their medians, and ratios within one round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

Sample = dict[str, float]


class Results:
    """Samples by measure and cell. Sample number n of every cell belongs to round n."""

    def __init__(self) -> None:
        self._samples: dict[str, dict[str, list[Sample]]] = {}
        self.notes: list[str] = []
        """What was not measured, and why."""

    def add(self, measure: str, cell: str, sample: Mapping[str, float]) -> None:
        """Keep one sample."""
        self._samples.setdefault(measure, {}).setdefault(cell, []).append(dict(sample))

    def note(self, text: str) -> None:
        """Keep a remark for the report."""
        if text not in self.notes:
            self.notes.append(text)

    def cells(self, measure: str) -> list[str]:
        """Cells of a measure, in the order in which they were measured."""
        return list(self._samples.get(measure, {}))

    def values(self, measure: str, cell: str, metric: str) -> list[float]:
        """The metric in every round; empty when not measured."""
        samples = self._samples.get(measure, {}).get(cell, [])
        return [sample[metric] for sample in samples if metric in sample]

    def median(self, measure: str, cell: str, metric: str) -> float | None:
        """Median over the rounds, None when not measured."""
        values = self.values(measure, cell, metric)
        return median(values) if values else None

    def ratio(
        self, measure: str, metric: str, ours: str, peer: str, *, peer_measure: str = ""
    ) -> float | None:
        """Ours divided by the peer's: the median of the ratios within each round."""
        pairs = zip(
            self.values(measure, ours, metric),
            self.values(peer_measure or measure, peer, metric),
            strict=False,
        )
        ratios = [mine / theirs for mine, theirs in pairs if theirs > 0]
        return median(ratios) if ratios else None

    def __iter__(self) -> Iterator[tuple[str, dict[str, list[Sample]]]]:
        return iter(self._samples.items())
