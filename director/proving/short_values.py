"""Finds what a whole run read of a page in part, where the bench has read the whole with the same node. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodes.values import Json

LEAST = 20  # least length of a text whose part is reported, in characters: shorter ones, such as numbers, contain each other by chance


def hints(run: Mapping[str, Json], bench: Mapping[str, Json], *, lists: bool) -> Iterator[str]:
    """Yield a hint for each value whose longer form the bench has, by the key of its node. ``lists`` are only compared if asked."""
    for key, value in run.items():
        whole = bench.get(key)
        if isinstance(value, str) and isinstance(whole, str):
            part, of, unit = " ".join(value.split()), " ".join(whole.split()), "characters"
            found = len(of) >= LEAST and len(part) < len(of) and part in of
        elif lists and isinstance(value, list) and isinstance(whole, list):
            part, of, unit = value, whole, "items"
            found = len(part) < len(of) and of[: len(part)] == part
        else:
            continue
        if found:
            early = "is it read too early (`rest: true` on the action before it)?"
            yield f"hint: `{key}` has {len(part)} of the {len(of)} {unit} that the bench read: {early}"
