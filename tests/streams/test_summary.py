"""Summaries: JSON merge patches, exactly as RFC 7396 has them, and what is no patch."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql import one, refused, rows, table, take, violations
from tests.streams.support import RETRY, append, attempt, info, patch, summary, where

NULL = object()

# RFC 7396, appendix A: original, patch, result. A patch at the root of ours is an object: each goes one level down.
APPENDIX_A = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, NULL),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


def escaped(value):
    """A value as a patch that sets it: null inside stands for deletion, so it is spelled."""
    if isinstance(value, dict):
        return {k: escaped(v) for k, v in value.items()}
    return "__ff_null__" if value is None else value


@pytest.mark.parametrize(("original", "change", "result"), APPENDIX_A)
def test_the_vectors_of_the_rfc(db, original, change, result):
    row = attempt(db)
    patch(db, row, {"x": escaped(original)})
    assert summary(db, row)["document"] == {"x": original}
    patch(db, row, {"x": change})
    assert summary(db, row)["document"] == ({} if result is NULL else {"x": result})


def test_the_vectors_at_the_root_where_they_are_objects(db):
    for original, change, result in APPENDIX_A:
        if isinstance(original, dict):
            row = attempt(db)
            patch(db, row, escaped(original))
            if isinstance(change, dict):
                patch(db, row, change)
                assert summary(db, row)["document"] == result
            else:
                with refused("invalid_patch"):
                    patch(db, row, change)
                assert summary(db, row)["document"] == original


def merged(target, change):
    """The pseudocode of RFC 7396, section 2."""
    if not isinstance(change, dict):
        return change
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def unspelled(value):
    if isinstance(value, dict):
        return {k: unspelled(v) for k, v in value.items()}
    if isinstance(value, list):
        return [unspelled(v) for v in value]
    return None if value == "__ff_null__" else value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "a", '"', "\\", "__ff_null__", ', "']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('abc"'), inner, max_size=3),
    max_leaves=8,
)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(patches=st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4), min_size=1, max_size=5))
def test_any_patches_give_what_the_algorithm_of_the_rfc_gives(db, patches):
    with db.transaction(force_rollback=True):
        row = attempt(db)
        document = {}
        for change in patches:
            patch(db, row, change)
            document = unspelled(merged(document, change))
        assert summary(db, row)["document"] == document
        assert summary(db, row)["version"] == len(patches)
        assert violations(db) == []


def test_an_empty_object_leaves_an_object_as_it_is_and_replaces_anything_else(db):
    row = attempt(db)
    patch(db, row, {"a": {"b": 1}, "c": 1, "d": [1]})
    patch(db, row, {"a": {}, "c": {}, "d": {}, "e": {}})
    assert summary(db, row)["document"] == {"a": {"b": 1}, "c": {}, "d": {}, "e": {}}


def test_the_spelled_null_is_stored_as_null_anywhere(db):
    row = attempt(db)
    patch(
        db,
        row,
        {"a": "__ff_null__", "b": ["__ff_null__", "__ff_null__", ["__ff_null__"], {"c": "__ff_null__"}]},
    )
    assert summary(db, row)["document"] == {"a": None, "b": [None, None, [None], {"c": None}]}
    append(db, row, b'{"z": "\\u005f_ff_null__"}', mode="durable_summary")
    assert summary(db, row)["document"]["z"] is None
    assert violations(db) == []


def test_nulls_inside_an_array_stay(db):
    row = attempt(db)
    patch(db, row, {"a": [None, {"b": None}]})
    assert summary(db, row)["document"] == {"a": [None, {"b": None}]}


@pytest.mark.parametrize(
    "document",
    [
        {"__ff_null__": 1},
        {"a": {"b": 1, "__ff_null__": 1}},
        {"a": "x__ff_null__"},
        {"a": ["__ff_null__ "]},
        {"a": '"__ff_null__'},
        {"a": ', "__ff_null__"'},
    ],
)
def test_the_word_for_null_is_reserved(db, document):
    row = attempt(db)
    with refused("invalid_patch") as refusal:
        patch(db, row, document)
    assert refusal.detail["reason"] == "reserved_word"
    assert violations(db) == []


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"a": 1} x', "not_json"),
        (b"\xff{}", "not_json"),
        (b'{"a": "\xc3\x28"}', "not_json"),
        (b'{"a": "\x00"}', "not_json"),
        (b'{"a": "\\u0000"}', "not_json"),
        (b'{"a": "\\ud800"}', "not_json"),
        (b'{"a": 1e999999}', "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b"[]", "not_an_object"),
        (b"null", "not_an_object"),
        (b"1", "not_an_object"),
        (b'"{}"', "not_an_object"),
    ],
)
def test_what_is_no_patch(db, payload, reason):
    row = attempt(db)
    with refused("invalid_patch") as refusal:
        append(db, row, payload, mode="durable_summary")
    assert refusal.detail["reason"] == reason
    assert rows(db, "ff_read_summary", **where(row)) == []
    assert info(db, row)["frame_count"] == 0


def nested(depth, leaf="1", brackets="{}"):
    opening, closing = ('{"a":', "}") if brackets == "{}" else ("[", "]")
    return (opening * depth + leaf + closing * depth).encode()


def test_sixteen_levels_are_allowed_and_seventeen_are_not(db):
    row = attempt(db)
    append(db, row, nested(16), mode="durable_summary")
    append(db, row, b'{"b":' + nested(15, brackets="[]") + b"}", mode="durable_summary")
    for payload in (
        nested(17),
        nested(16, "[]"),
        nested(16, "{}"),
        b'{"b":' + nested(16, brackets="[]") + b"}",
    ):
        with refused("invalid_patch") as refusal:
            append(db, row, payload, mode="durable_summary")
        assert refusal.detail["reason"] == "depth"


def test_a_payload_of_nothing_but_brackets_is_refused_in_order(db):
    row = attempt(db)
    for payload in (b"[" * 65536, b'{"a":' * 13107, nested(10_000), nested(30_000, "", "[]")):
        with refused("invalid_patch"):
            append(db, row, payload, mode="durable_summary")


def test_versions_count_patches_and_the_frame_carries_its_own(db, clock):
    now = clock.freeze()
    row = attempt(db)
    assert summary(db, row) is None
    assert patch(db, row, {"a": 1})["summary_version"] == 1
    clock.advance(5)
    append(db, row, b"between")
    assert patch(db, row, {"b": 2})["summary_version"] == 2
    assert summary(db, row) == {
        "document": {"a": 1, "b": 2},
        "version": 2,
        "patch_kind": "json_merge_patch",
        "first_applied_ms": now,
        "last_updated_ms": now + 5,
    }
    assert info(db, row)["summary_version"] == 2
    assert patch(db, row, {})["summary_version"] == 3
    assert summary(db, row)["document"] == {"a": 1, "b": 2}


def test_a_document_of_one_mebibyte_fits_and_a_byte_more_does_not(db):
    row = attempt(db)
    for n in range(16):
        patch(db, row, {f"k{n:02}": "x" * 65000})
    (size,) = table(db, "select octet_length(document::text) as n from ff_stream_summary")
    room = 1048576 - size["n"] - len(', "z": ""')
    patch(db, row, {"z": "x" * room})
    (size,) = table(db, "select octet_length(document::text) as n from ff_stream_summary")
    assert size["n"] == 1048576
    with refused("summary_too_large") as refusal:
        patch(db, row, {"z": "x" * (room + 1)})
    assert (refusal.detail["size"], refusal.detail["limit"]) == (1048577, 1048576)
    assert summary(db, row)["version"] == 17
    assert len(summary(db, row)["document"]["z"]) == room
    patch(db, row, {"z": None})
    assert violations(db) == []


def test_every_attempt_has_a_document_of_its_own(db):
    row = attempt(db, policy=RETRY)
    patch(db, row, {"a": 1})
    one(db, "ff_fail", handle=row["handle"])
    again = take(db)
    assert summary(db, again) is None
    patch(db, again, {"b": 1})
    assert summary(db, row)["document"] == {"a": 1}
    assert summary(db, again)["document"] == {"b": 1}


def test_numbers_keep_their_digits(db):
    row = attempt(db)
    append(db, row, b'{"n": 12345678901234567890.123456789, "e": 1e30}', mode="durable_summary")
    (found,) = table(db, "select document::text as t from ff_stream_summary")
    assert json.loads(found["t"], parse_float=str, parse_int=str)["n"] == "12345678901234567890.123456789"
