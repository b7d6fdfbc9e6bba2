"""Conversion of values to payloads and back, by their types."""

import dataclasses
import datetime as dt
import enum
import json
import typing
import uuid
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NewType, TypedDict

import msgspec
import pydantic
import pytest

from pyff.codecs import DecodeError, EncodeError, codec_of, register_type


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Item:
    sku: str
    price: Decimal
    tags: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class Order:
    id: int
    items: list[Item]
    due: dt.datetime | None = None
    colour: Colour = Colour.RED
    parent: "Order | None" = None


class Point(NamedTuple):
    x: int
    y: float


class Level(enum.IntEnum):
    LOW = 1


class Patch(TypedDict, total=False):
    x: int


@dataclasses.dataclass
class Picky:
    x: int

    def __post_init__(self) -> None:
        if self.x > 1:
            raise LookupError("too much")


Cents = NewType("Cents", int)
ORDER = Order(
    7,
    [Item("a", Decimal("1.50"), {"x", "y"})],
    dt.datetime(2030, 1, 2, 3, tzinfo=dt.UTC),
    parent=Order(6, []),
)

VALUES = [
    (Any, {"a": [1, None, True, "é"]}),
    (dict[str, int], {"a": 1}),
    (dict[int, str], {1: "a"}),
    (dict[uuid.UUID, Point], {uuid.UUID(int=5): Point(1, 2.5)}),
    (list[Point], [Point(1, 2.0)]),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (frozenset[int], frozenset({1, 2})),
    (int | str | None, "a"),
    (int | str | None, None),
    (Item | Point, Point(1, 2.0)),
    (Literal["a", "b"], "b"),
    (Cents, Cents(5)),
    (float, 3.0),
    (dt.date, dt.date(2030, 1, 1)),
    (dt.time, dt.time(1, 2)),
    (dt.timedelta, dt.timedelta(seconds=1.5)),
    (uuid.UUID, uuid.UUID(int=1)),
    (list[bytes], [b"\x00\xff"]),
    (Colour, Colour.RED),
    (Order, ORDER),
    (list[Order], [ORDER]),
    (None, None),
    (uuid.UUID | int, 5),
    (Patch | None, {"x": 1}),
    (dict[float, str], {1.5: "a"}),
    (dict[bool, str], {True: "a"}),
    (dict[Level, str], {Level.LOW: "a"}),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(i) for i in range(len(VALUES))])
def test_a_value_comes_back_as_it_was(kind, value):
    codec = codec_of(kind)
    assert codec.encoding == "json"
    back = codec.decode(codec.encode(value))
    assert back == value
    assert type(back) is type(value)


def test_a_dataclass_is_an_object_that_other_languages_can_read_and_write():
    codec = codec_of(Order)
    assert json.loads(codec.encode(Order(1, [Item("a", Decimal("2.5"))]))) == {
        "id": 1,
        "items": [{"sku": "a", "price": "2.5", "tags": []}],
        "due": None,
        "colour": "red",
        "parent": None,
    }
    assert codec.decode(b'{"id": 1, "items": []}') == Order(1, [])


def test_bytes_alone_are_stored_as_they_are():
    codec = codec_of(bytes)
    assert codec.encoding == "bytes"
    assert codec.encode(b"\x00\xff") == b"\x00\xff"
    assert codec.decode(b"\x00\xff") == b"\x00\xff"
    with pytest.raises(EncodeError):
        codec.encode("text")


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (Order, b"[]", "Order: expected an object"),
        (Order, b'{"id": 1, "items": [], "nmae": 1}', "unknown nmae"),
        (Order, b'{"id": "x", "items": []}', "expected int, got str"),
        (Order, b'{"id": 1}', "items"),
        (Order, b'{"id": 1, "items": [{"sku": "a", "price": "much"}]}', "Decimal"),
        (int, b"true", "expected int, got bool"),
        (int, b"{", "not JSON"),
        (Colour, b'"green"', "Colour"),
        (Literal["a"], b'"b"', "none of"),
        (int | None, b'"b"', "none of"),
        (tuple[int, str], b"[1]", "an array of 2"),
        (list[int], b'{"a": 1}', "expected an array"),
        (dict[str, int], b"[1]", "expected an object"),
        (uuid.UUID, b'"no"', "UUID"),
        (uuid.UUID, b"5", "UUID"),
        (dt.timedelta, b"1e300", "timedelta"),
        (Picky, b'{"x": 5}', "Picky: .*too much"),
        (dict[float, str], b'{"a": "b"}', "float"),
    ],
)
def test_data_of_another_shape_is_refused_with_what_is_wrong(kind, data, said):
    with pytest.raises(DecodeError, match=said):
        codec_of(kind).decode(data)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Any, ORDER),
        (Any, float("nan")),
        (Order, "x"),
        (int | str, 1.5),
        (list[int], "abc"),
        (list[int], 5),
        (dict[str, int], [1]),
        (tuple[int, str], (1,)),
        (dt.date, "2030-01-01"),
        (Colour, "red"),
    ],
)
def test_a_value_that_is_not_what_it_was_said_to_be_is_refused(kind, value):
    with pytest.raises(EncodeError):
        codec_of(kind).encode(value)


def test_the_order_of_a_union_decides_how_it_is_read_whichever_was_seen_first():
    """Python takes int | str and str | int for equal."""
    number = uuid.UUID(int=7)
    for text, known in (
        (codec_of(str | uuid.UUID), codec_of(uuid.UUID | str)),
        (codec_of(tuple[str | uuid.UUID]), codec_of(tuple[uuid.UUID | str])),
    ):
        value = number if text is codec_of(str | uuid.UUID) else (number,)
        assert known.decode(known.encode(value)) == value
        assert text.decode(text.encode(value)) in (str(number), (str(number),))


@pytest.mark.parametrize(
    "kind", [dt.date | dt.datetime, dt.datetime | dt.date, list[dt.date | dt.datetime | None]]
)
def test_a_union_of_date_and_datetime_keeps_both_as_they_are(kind):
    codec = codec_of(kind)
    for value in (
        dt.date(2026, 3, 1),
        dt.datetime(2026, 3, 1, 12, 30),
        dt.datetime(2026, 3, 1, tzinfo=dt.UTC),
    ):
        given = [value, None] if typing.get_origin(kind) is list else value
        found = codec.decode(codec.encode(given))
        assert found == given
        assert type(found) is type(given)


def test_a_text_that_looks_like_a_date_stays_text_where_text_comes_first():
    codec = codec_of(str | dt.datetime | dt.date)
    assert codec.decode(codec.encode("2026-03-01")) == "2026-03-01"


def test_where_a_date_is_expected_a_datetime_is_its_date():
    codec = codec_of(dt.date)
    assert codec.decode(codec.encode(dt.datetime(2030, 1, 2, 3, tzinfo=dt.UTC))) == dt.date(2030, 1, 2)


def test_types_of_ones_own_can_be_registered():
    class Money:
        def __init__(self, cents: int) -> None:
            self.cents = cents

    register_type(Money, lambda money: money.cents, Money)
    codec = codec_of(list[Money])
    assert codec.encode([Money(5)]) == b"[5]"
    assert codec.decode(b"[5]")[0].cents == 5


class Model(pydantic.BaseModel):
    n: int
    when: dt.date | None = None


class Struct(msgspec.Struct):
    n: int
    more: list[int] = []


@pytest.mark.parametrize(
    "value", [Model(n=3, when=dt.date(2030, 1, 1)), Struct(3, [1])], ids=["pydantic", "msgspec"]
)
def test_models_of_other_libraries_are_read_and_written_by_them(value):
    codec = codec_of(dict[str, type(value)])
    assert codec.decode(codec.encode({"a": value})) == {"a": value}
    assert codec.decode(b'{"a": {"n": 5}}')["a"].n == 5
    with pytest.raises(DecodeError, match=type(value).__name__):
        codec.decode(b'{"a": {"n": "x"}}')


class Aliased(pydantic.BaseModel):
    """Aliases, for JSON in camel case."""

    model_config = pydantic.ConfigDict(extra="forbid")
    order_id: int = pydantic.Field(alias="orderId")
    unit: str = pydantic.Field("g", serialization_alias="unitOfMeasure")
    size: int = pydantic.Field(1, validation_alias="itemSize")
    lines: list["Aliased"] = []

    @pydantic.computed_field
    def double(self) -> int:
        return 2 * self.order_id


def test_a_model_with_other_names_in_json_comes_back_too():
    model = Aliased(orderId=5, itemSize=3, lines=[Aliased(orderId=6)])
    codec = codec_of(Aliased)
    assert codec.decode(codec.encode(model)) == model
    assert codec.decode(b'{"orderId": 5}').order_id == 5
    with pytest.raises(EncodeError, match="Aliased"):
        codec.encode({"orderId": 5})


def test_a_type_of_ones_own_that_cannot_read_or_write_a_value_says_so():
    """An exception of its functions is a DecodeError: such a payload is not retried."""

    class Odd:
        pass

    register_type(Odd, lambda odd: odd.missing, lambda plain: plain["missing"])
    codec = codec_of(Odd)
    with pytest.raises(EncodeError, match="Odd: AttributeError"):
        codec.encode(Odd())
    with pytest.raises(DecodeError, match="Odd: KeyError"):
        codec.decode(b"{}")


def test_a_payload_that_is_nested_beyond_reason_is_refused():
    with pytest.raises(DecodeError):
        codec_of(list).decode(b"[" * 100_000)
