"""Merge the options of several sources: of each option the strongest source decides.

The rights of clients have an older and a newer option each, such as `publish` and
`allow_publish_for_client`. Within one source the newer one counts. Of two sources the stronger one
counts, whatever name it uses: otherwise a `server_side` in the environment would leave open what a
file opens under the newer name.

Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from realtime.config.channel_rights import outranked, replacing
from realtime.config.names import counting_name, options_in

Origin: TypeAlias = Literal["environment", "settings", "defaults", "file", "override"]
"""A source; "defaults" is REALTIME_DEFAULTS, and "override" is `Configuration.override`."""

PLACES: Mapping[str | None, str] = {
    "environment": "the environment",
    "settings": "settings",
    "defaults": "settings",
    "file": "the config file",
}
"""Source → its name in messages."""


class Merged:
    """The options of the sources that were added, the weakest one first."""

    def __init__(self) -> None:
        self.options: dict[str, object] = {}
        self.origins: dict[str, Origin] = {}
        """Option → the source of its value."""
        self.without_effect: dict[str, str] = {}
        """Option that is given and does not count → the option that does, in words."""
        self._assumed: set[str] = set()

    def add(self, origin: Origin, source: Mapping[str, Any], assumed: Container[str] = ()) -> None:
        """Add a source that is stronger than those before.

        Args:
            origin: what the source is.
            source: its options, by any of their names.
            assumed: options in it that follow from others, and are not written there themselves.
        """
        given = {known: value for known, _name, value in options_in(source)}
        for older in given:
            for newer in outranked(older):
                if newer in self.options and newer not in given:
                    del self.options[newer], self.origins[newer]
                    if newer not in self._assumed:
                        self.without_effect[newer] = f"{older} from {PLACES.get(origin, origin)}"
        for name, value in given.items():
            self.options[name] = value
            self.origins[name] = origin
            self.without_effect.pop(name, None)
            self._assumed.discard(name)
            if name in assumed:
                self._assumed.add(name)
        self.without_effect |= doubled(source)


def doubled(source: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of one source for which a newer name counts → that name.

    Options in namespaces are written as "publish of namespace chat".
    """
    found = dict(_doubled(source))
    namespaces = source.get("namespaces")
    for item in namespaces if isinstance(namespaces, list | tuple) else ():
        if isinstance(item, Mapping):
            found |= {
                f"{name} of namespace {item.get('name')}": newer for name, newer in _doubled(item)
            }
    return found


def _doubled(source: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in source:
        if newer := counting_name(name, source) or replacing(name, source):
            yield name, newer
