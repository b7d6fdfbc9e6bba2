"""send_signal: what it does with a token that is not one, or not this one."""

import base64
import json

import pytest

from pyff import App, AsyncEngine, Ctx, InvalidToken, Token, send_signal
from pyff.testing import drain

EXECUTION = "{fp:0}:00000000-0000-7000-8000-000000000000"
WAITPOINT = "00000000-0000-7000-8000-000000000000"


def word(*fields):
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def read(text):
    """The bytes in a word; digits of a uuid count the same in either case."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).lower()


@pytest.fixture
def token(app: App, engine, db):
    tokens = []

    @app.task()
    def wait(ctx: Ctx) -> str:
        return ctx.wait("approval", on_token=tokens.append).name

    wait.enqueue()
    drain(app, db)
    return tokens[0]


@pytest.mark.parametrize(
    "garbled",
    [
        "",
        "nonsense",
        "=",
        "ä",
        "a\x00b",
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        word(),
        word(1),
        word(EXECUTION, WAITPOINT),
        word(EXECUTION, WAITPOINT, "k:00", "more"),
        word(EXECUTION, "nonsense", "k:00"),
        word(EXECUTION, 7, "k:00"),
        word(EXECUTION, WAITPOINT, ""),
        word(EXECUTION, WAITPOINT, None),
        word(EXECUTION, WAITPOINT, "nonsense"),
        word(EXECUTION, WAITPOINT, "k:\x00"),
        word(EXECUTION, WAITPOINT, "k:\ud800"),
        word(EXECUTION, WAITPOINT, "k:" + "0" * 100_000),
        word("nonsense", WAITPOINT, "k:00"),
        word("{fp:99999}:" + WAITPOINT, WAITPOINT, "k:00"),
        word("", WAITPOINT, "k:00"),
    ],
    ids=lambda text: text[:24],
)
def test_a_word_that_is_no_token_is_an_invalid_token(engine, garbled):
    with pytest.raises(InvalidToken):
        send_signal(garbled, "approve", conn=engine)


def test_a_token_with_one_letter_changed_is_an_invalid_token(engine, token):
    good = token.url_param
    for place in range(0, len(good), 7):
        for letter in "A_9":
            changed = good[:place] + letter + good[place + 1 :]
            if read(changed) != read(good):
                with pytest.raises(InvalidToken):
                    send_signal(changed, "approve", conn=engine)
    assert send_signal(good, "approve", conn=engine).resumed


def test_a_token_object_with_wrong_parts_is_an_invalid_token(engine, token):
    for wrong in (
        Token("nonsense", token.waitpoint_id, token.secret),
        Token(token.execution_id, token.waitpoint_id, ""),
        Token(token.execution_id, token.waitpoint_id, "k:00"),
    ):
        with pytest.raises(InvalidToken):
            send_signal(wrong, "approve", conn=engine)


def test_an_engine_of_the_wrong_kind_is_refused(dsn, token):
    for wrong in (AsyncEngine(dsn), None):
        with pytest.raises(TypeError, match=r"expected an Engine, .* got"):
            send_signal(token, "approve", conn=wrong)
