"""Written profiles in BOLT's YAML: recognised, read, shown as text, and asked as fdata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata
from lbr2pgo.profiles.bolt.fdata.written import FDATA
from lbr2pgo.profiles.bolt.yaml import yaml_sums, yaml_text
from lbr2pgo.profiles.bolt.yaml.placed_yaml import fdata_of_yaml
from lbr2pgo.profiles.bolt.yaml.yaml_text import YamlProfile
from lbr2pgo.profiles.reader import Merging, Reader
from lbr2pgo.program.program import Program


class YamlReader(Reader[YamlProfile]):
    """See `Reader`."""

    kind = "BOLT YAML"
    has_counts = True
    merging = Merging(yaml_sums.merged, yaml_text.write)

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return yaml_text.is_yaml(head)

    def read(self, path: Path) -> YamlProfile:
        """See `Reader`."""
        return yaml_text.read(path)

    def lines(self, content: YamlProfile) -> Iterator[str]:
        """See `Reader`."""
        return yaml_text.lines(content)

    def of_function(self, content: YamlProfile, function: str) -> Iterator[str] | None:
        """Lines of a function; None if it is not there.

        A local one is found without what BOLT puts behind its name (`name/file.c/1`), too.
        """
        held = content.functions
        found = [own for name, own in held if function in (name, name.partition("/")[0])]
        return (line for own in found for line in own) if found else None

    def functions(self, content: YamlProfile) -> tuple[str, ...]:
        """All names."""
        return tuple(name for name, _ in content.functions)

    def placed(
        self, content: YamlProfile, program: Program, where: str
    ) -> tuple[Reader[Fdata], Fdata]:
        """Blocks have numbers alone: see `placed_yaml`."""
        return FDATA, fdata_of_yaml(content, program, where)


YAML = YamlReader()
