"""OpenTelemetry's profiles, as its own classes write them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders.protobuf import field, otlp, pprof

from lbr2pgo.replay.recorded_program import recorded_program
from lbr2pgo.sources import format_of, open_source
from lbr2pgo.sources.otlp_profile import FORMAT
from lbr2pgo.sources.processor_samples import ProcessorSamples
from lbr2pgo.support.errors import InputError

profiles = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
TEXTS = ("", "samples", "count", "cpu", "nanoseconds", "/bin/app", "/lib/so", "build", "off_cpu")
BUILD_ID = "process.executable.build_id.gnu"


class Data:
    """A file of two mappings and three stacks of two locations each."""

    def __init__(self) -> None:
        self.data = profiles.ProfilesData()
        self.tables = tables = self.data.dictionary
        tables.string_table.extend([*TEXTS, BUILD_ID])
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(tables, f"{table}_table").add()
        made = tables.attribute_table.add(key_strindex=len(TEXTS))
        made.value.string_value = "ABCD"
        tables.attribute_table.add(key_strindex=7).value.string_value = "12"
        tables.mapping_table.add(
            memory_start=0x1000, memory_limit=0x9000, file_offset=0x200, filename_strindex=5,
            attribute_indices=[2, 1],
        )  # fmt: skip
        tables.mapping_table.add(filename_strindex=6)
        for mapping, address in ((1, 0x1010), (1, 0x1020), (2, 0x40)):
            tables.location_table.add(mapping_index=mapping, address=address)
        for leaf in (1, 2, 3):
            tables.stack_table.add(location_indices=[leaf, 1])
        self.scope = self.data.resource_profiles.add().scope_profiles.add()

    def profile(
        self, kind: tuple[int, int], samples: Sequence[dict[str, Any]], **told: Any
    ) -> None:
        profile = self.scope.profiles.add(**told)
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = kind
        for sample in samples:
            profile.samples.add(**sample)

    def open(self, path: Path) -> ProcessorSamples:
        path.write_bytes(self.data.SerializeToString())
        source = open_source(path)
        assert isinstance(source, ProcessorSamples)
        return source


def rows(source: ProcessorSamples) -> list[tuple[int, int, int]]:
    (batch,) = source.batches()
    columns = (batch.pid, batch.ip, batch.weight)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_leaves_of_all_profiles_are_added_up(tmp_path: Path) -> None:
    data = Data()
    data.profile((1, 2), [{"stack_index": 1, "values": [3]}, {"stack_index": 3, "values": [2]}])
    data.profile((1, 2), [{"stack_index": 1, "timestamps_unix_nano": [7, 8]}])
    data.profile((8, 4), [{"stack_index": 2, "values": [1 << 40]}])
    source = data.open(tmp_path / "a.otlp")
    assert rows(source) == [(1, 0x1010, 5), (2, 0x40, 2)]
    assert source.info.format == "otlp"
    assert source.info.build_ids == {"/bin/app": "abcd"}
    first, second = source.space_events()
    assert (first.start, first.length, first.file_offset) == (0x1000, 0x8000, 0x200)
    assert second.is_as_linked


def test_which_file_is_a_program_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no mappings of a program\nName the program with --bin"):
        recorded_program([with_sample(**GOOD).open(tmp_path / "a.otlp")])


def test_nanoseconds_are_counted_by_the_period(tmp_path: Path) -> None:
    data = Data()
    samples = [{"stack_index": 2, "values": [40_000_000, 20_000_000]}]
    data.profile((3, 4), samples, period=20_000_000)
    assert rows(data.open(tmp_path / "a.otlp")) == [(1, 0x1020, 3)]


def test_a_period_of_something_else_is_none_of_times(tmp_path: Path) -> None:
    data, counts = Data(), profiles.ValueType(type_strindex=1, unit_strindex=2)
    samples = [{"stack_index": i, "values": [i * 20_000_000]} for i in (1, 2)]
    data.profile((3, 4), samples, period=7, period_type=counts)
    assert rows(data.open(tmp_path / "a.otlp")) == [(1, 0x1010, 1), (1, 0x1020, 2)]


def test_a_file_may_begin_with_its_tables_and_hold_empty_messages(tmp_path: Path) -> None:
    data = Data()
    data.profile((1, 2), [{"stack_index": 1, "values": [3]}])
    path = tmp_path / "a.otlp"
    tables = field(2, data.tables.SerializeToString())
    profile = data.data.resource_profiles[0].SerializeToString()
    for content in (tables + field(1, profile), field(1, field(1, b"") + profile) + tables):
        path.write_bytes(content)
        assert format_of(path) is FORMAT
        source = open_source(path)
        assert isinstance(source, ProcessorSamples)
        assert rows(source) == [(1, 0x1010, 3)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_messages_in_a_row_have_their_lengths_in_front(tmp_path: Path, pack: Any) -> None:
    one, other = with_sample(stack_index=1, values=[3]), Data()
    other.tables.string_table[5] = "/bin/other"
    for stack, value in ((1, 4), (3, 2)):
        other.profile((1, 2), [{"stack_index": stack, "values": [value]}])
    path = tmp_path / "a.otlp"
    path.write_bytes(pack(framed(one) + framed(other)))
    source = open_source(path)
    assert isinstance(source, ProcessorSamples)
    assert rows(source) == [(1, 0x1010, 3), (3, 0x1010, 4), (2, 0x40, 2)]
    found = [(event.pid, event.path) for event in source.space_events()]
    assert found == [(1, "/bin/app"), (2, "/lib/so"), (3, "/bin/other")]


def test_the_export_request_is_the_same_message(tmp_path: Path) -> None:
    service = pytest.importorskip(
        "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2"
    )
    data = with_sample(stack_index=1, values=[3]).data
    request = service.ExportProfilesServiceRequest(
        resource_profiles=data.resource_profiles, dictionary=data.dictionary
    )
    (tmp_path / "a").write_bytes(request.SerializeToString())
    assert rows(FORMAT.open(tmp_path / "a")) == [(1, 0x1010, 3)]


def test_negative_values_are_none_whatever_else_a_sample_tells(tmp_path: Path) -> None:
    data = with_sample(stack_index=1, values=[-3, 2], timestamps_unix_nano=[5, 6])
    data.profile((1, 2), [{"stack_index": 2, "values": [-1], "timestamps_unix_nano": [5]}])
    source = data.open(tmp_path / "a.otlp")
    assert rows(source) == [(1, 0x1010, 2)]
    assert list(source.health().values()) == [2]


def test_profiles_of_other_measures_may_lack_what_is_needed(tmp_path: Path) -> None:
    data = with_sample(**GOOD)
    data.profile((8, 4), [{"stack_index": 2, "values": [7]}])
    assert rows(data.open(tmp_path / "a.otlp")) == [(1, 0x1010, 3)]


def test_the_fields_are_those_of_the_specification() -> None:
    def fields(name: str) -> dict[str, int]:
        message = getattr(profiles, name).DESCRIPTOR
        return {field.name: field.number for field in message.fields}

    assert fields("ProfilesData") == {"resource_profiles": 1, "dictionary": 2}
    tables = fields("ProfilesDictionary")
    names = ("mapping", "location", "string", "attribute", "stack")
    assert [tables[f"{name}_table"] for name in names] == [1, 2, 5, 6, 7]
    profile, sample = fields("Profile"), fields("Sample")
    wanted = ("sample_type", "samples", "time_unix_nano", "period")
    assert [profile[name] for name in wanted] == [1, 2, 3, 6]
    wanted = ("stack_index", "link_index", "values", "timestamps_unix_nano")
    assert [sample[name] for name in wanted] == [1, 3, 4, 5]


def test_pprof_and_text_are_others(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(pprof([(16, 1)]))
    assert format_of(path).name == "pprof"
    for content in (
        b"\n\n\n\n\n\n",
        b"\n\x04text",
        b"\n\x08\n\x0atoo long",
        b"\n",
        b"\x12\x02\x42\x00",
        b"\x00\x00\x00\x04text",
        b"\x00\x00\x00",
        b"\x00\x00\x00\x03\n\x02\n\x00",
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no profile of a known format"):
            format_of(path)


def test_the_plain_writer_s_profile_is_read(tmp_path: Path) -> None:
    content = otlp([(16, 3), (32, 4)])
    assert profiles.ProfilesData.FromString(content).SerializeToString() == content
    (tmp_path / "a").write_bytes(content)
    source = open_source(tmp_path / "a")
    assert isinstance(source, ProcessorSamples)
    assert rows(source) == [(1, 16, 3), (1, 32, 4)]


def without(data: Data, table: str) -> bytes:
    data.tables.ClearField(table)
    return bytes(data.data.SerializeToString())


def with_sample(*, kind: tuple[int, int] = (1, 2), **sample: Any) -> Data:
    data = Data()
    data.profile(kind, [sample])
    return data


def with_index(table: str, **told: Any) -> bytes:
    """With an entry that names another that is not there."""
    data = with_sample(**GOOD)
    getattr(data.tables, table).add(**told)
    return bytes(data.data.SerializeToString())


def framed(data: Data) -> bytes:
    """As the collector's file exporter writes it."""
    content: bytes = data.data.SerializeToString()
    return len(content).to_bytes(4, "big") + content


GOOD = {"stack_index": 1, "values": [3]}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (Data().data.SerializeToString(), "it has no profiles"),
        (without(with_sample(**GOOD), "stack_table"), "no table of stacks: another version"),
        (without(with_sample(**GOOD), "string_table"), "text 0 is named here"),
        (
            with_sample(stack_index=9, values=[3]).data.SerializeToString(),
            "a.otlp@0xe: .*: stack 9 is named here, and the file has 4",
        ),
        (
            field(1, field(2, field(2, field(3, b"\x01")))) + Data().data.SerializeToString(),
            "@0x8: .* another version of the format",
        ),
        (
            field(1, field(2, field(2, field(1, b"\x08\1\x10\2") + field(2, field(3, b"\1")))))
            + Data().data.SerializeToString(),
            "@0x10: .* another version of the format",
        ),
        (with_sample(kind=(0, 0), **GOOD).data.SerializeToString(), "it tells of no named type,"),
        (with_sample(**GOOD).data.SerializeToString() * 2, "a second dictionary"),
        (with_index("stack_table", location_indices=[9]), "location 9 is named"),
        (with_index("location_table", mapping_index=9), "mapping 9 is named"),
        (with_index("mapping_table", attribute_indices=[9]), "attribute 9 is named"),
        (with_index("attribute_table", key_strindex=99), "text 99 is named"),
        (framed(with_sample(**GOOD))[:-1], "@0x0: .* a message is cut off"),
        (framed(with_sample(**GOOD)) + bytes(3), "a message is cut off"),
        (with_sample(stack_index=1, values=[-3]).data.SerializeToString(), "has no samples"),
        (with_sample(stack_index=0, values=[3]).data.SerializeToString(), "no addresses"),
        (
            with_sample(kind=(8, 4), **GOOD).data.SerializeToString(),
            "it tells of off_cpu, and not of processors",
        ),
        (with_sample(**GOOD).data.SerializeToString()[:-3], "is cut off"),
        (with_sample(**GOOD).data.SerializeToString() + field(1, 5), "field 1 holds a number"),
    ],
    ids=range(19),
)
def test_what_can_not_be_used(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "a.otlp"
    path.write_bytes(content)
    with pytest.raises(InputError, match=why) as caught:
        FORMAT.open(path)
    assert "a.otlp" in str(caught.value)
