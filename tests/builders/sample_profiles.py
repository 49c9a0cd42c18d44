"""Random LLVM sample profiles, within what the text form can say and LLVM reads back."""

import io

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_names import Frame
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile

with_tools = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def text(profile):
    stream = io.BytesIO()
    llvm_text.write(profile, stream)
    return stream.getvalue()


def has_marks(profile):
    """Whether contexts say of any copy that it was, or should be, inlined."""
    found = list(profile.functions.values())
    for function in found:
        found.extend(callee for _, callee in function.inlined())
    return any(function.attributes for function in found)


def parse(content):
    return llvm_text.parse(io.BytesIO(content), "x.prof")


counts = st.integers(0, 5) | st.integers(0, 10**6) | st.sampled_from([2**63, 2**64 - 1])
locations = st.tuples(
    st.integers(0, 20) | st.just(0xFFFF), st.just(0) | st.integers(0, 300) | st.just(0xFFFFFFFF)
)

# A name may hold blanks and colons, but no colon, number and blank in this order.
plain_names = st.sampled_from(["main", "_Z3fooi", "_Z3barv", "f.__uniq.123", "f.llvm.45", "x"])
odd_names = st.from_regex(
    r"[A-Za-z_$~é\\<-][ a-z:<>*&,.$@\"'é\u2028\xff(){}\t!#\[\]-]{0,8}", fullmatch=True
)
bytes_names = st.sampled_from(["caf\udcff", "\udc80\udc81x"])
names = plain_names | odd_names.filter(lambda name: not name.startswith("vtables ")) | bytes_names
vtable_names = plain_names

targets = st.dictionaries(names, counts, max_size=3)


@st.composite
def functions(draw, name, depth=0, *, is_probe_based=False, has_vtables=False, attributes=(0,)):
    """A function with up to two levels of inlined copies (fewer where `depth` says so)."""
    body = draw(st.dictionaries(locations, counts, max_size=4))
    function = FunctionSamples(name, total=draw(counts), body=body)
    function.call_targets = draw_at(draw, body, targets)
    kind = {"is_probe_based": is_probe_based, "has_vtables": has_vtables, "attributes": attributes}
    for location in draw(st.lists(locations, max_size=2)) if depth < 2 else ():
        callee = draw(functions(draw(names), depth + 1, **kind))
        function.callsites.setdefault(location, {})[callee.name] = callee
    if has_vtables:  # see llvm_text on those of a location with counts and inlined copies
        places = [location for location in body if location not in function.callsites]
        function.vtables = draw_at(draw, places, st.dictionaries(vtable_names, counts, max_size=2))
    function.checksum = draw(st.integers(1, 2**64 - 1)) if is_probe_based else 0
    function.attributes = draw(st.sampled_from(attributes))
    return function


def draw_at(draw, places, strategy):
    """Draw for each location; empty ones are left out."""
    drawn = {location: draw(strategy) for location in places}
    return {location: value for location, value in drawn.items() if value}


def not_a_context(name):
    return not name.startswith("[")


contexts = st.lists(
    st.builds(Frame, names.filter(lambda name: ":" not in name and " @ " not in name), locations),
    max_size=2,
)


@st.composite
def profiles(draw, *, is_probe_based=False, is_cs=False, has_vtables=False, attributes=(0,)):
    """A profile of one to four functions; the flags say which kind."""
    profile = SampleProfile(is_probe_based=is_probe_based, is_cs=is_cs)
    options = {"is_probe_based": is_probe_based, "has_vtables": has_vtables}
    for name in draw(st.lists(names.filter(not_a_context), min_size=1, max_size=4, unique=True)):
        if is_cs and (":" in name or " @ " in name):
            continue
        function = draw(functions(name, 2 * is_cs, attributes=attributes, **options))
        function.head = draw(counts)
        if is_cs:
            function.context = (*draw(contexts), Frame(name))
        profile.functions[function.key] = function
    if not profile.functions:
        profile.function((Frame("f"),) if is_cs else "f")
        for function in profile.functions.values():
            function.checksum = int(is_probe_based)
    everything = [f for top in profile.functions.values() for f in with_inlined(top)]
    profile.is_preinlined = any(f.attributes & 2 for f in everything)
    return profile


def with_inlined(function):
    """A function and all that is inlined into it."""
    yield function
    for _, callee in function.inlined():
        yield from with_inlined(callee)
