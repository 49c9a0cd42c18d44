"""Where the indirect jumps of some functions may lead.

Jump tables are found as BOLT finds them; labels whose address a program takes (`&&label` in C)
stand in its data, where the loader relocates them or, in a program that is not moved, as they are.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.bolt.context import idioms_of
from lbr2pgo.profiles.bolt.disassembly import disassembled
from lbr2pgo.profiles.bolt.functions import discover
from lbr2pgo.profiles.bolt.jump_tables import find_jump_tables
from lbr2pgo.profiles.bolt.references import read_references
from lbr2pgo.program.code.code_graph import IndirectTargets
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.distinct import among, distinct

_POINTER_SIZE = 8


def indirect_targets(program: Program, addresses: ImageAddresses) -> IndirectTargets:
    """Places that indirect jumps of the functions that hold these addresses may lead to."""
    image, idioms = program.image, idioms_of(program.image)
    functions, references = discover(image, program.symbols), read_references(image)
    code = disassembled(image, functions, program.instructions_for(addresses))
    tables = find_jump_tables(image, idioms.normalized(code), references, idioms)
    labels = references.labels if image.layout.is_pie else _stored_addresses(image)
    labels = distinct(labels)
    labels = labels[~among(labels, program.regions.start)]
    anywhere = image_addresses(np.zeros(len(labels), np.uint64))
    return IndirectTargets(
        np.concatenate([tables.jump, anywhere]), np.concatenate([tables.target, labels])
    )


def _stored_addresses(image: Image) -> ImageAddresses:
    """What data holds that may be an address."""
    found = [image_addresses(np.empty(0, np.uint64))]
    for section in image.sections:
        content = image.contents(section) if section.is_alloc and not section.is_code else None
        if content is not None:
            words = np.frombuffer(content, "<u8", count=len(content) // _POINTER_SIZE)
            found.append(image_addresses(words))
    return np.concatenate(found)
