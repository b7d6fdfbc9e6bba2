"""Generates sync code from async code by replacing words; the async modules are written to allow it."""

import re

_WORDS = {
    r"^    @overload\n    async def step\([^@]*?: \.\.\.\n": "",  # the overload for coroutines
    r"^.*\bimport await_if_needed\n": "",
    r"\bawait await_if_needed\((.*)\)$": r"\1",
    r"\bawait asyncio\.to_thread\((\S+)\)": r"\1()",
    r"\bAwaitable\[(\w+)\](?: \| \1\b)?": r"\1",
    r"\basync (def|with|for)\b": r"\1",
    r"^( *|.*\breturn |.*= |.*\()await ": r"\1",  # in code, not in prose
    r"^import asyncio$": "import threading\nimport time",
    r"\basyncio\.Lock\b": "threading.Lock",
    r"\basyncio\.sleep\b": "time.sleep",
    r"^.*\blost_cancel\b.*\n": "",  # only a task can be cancelled
    r"\basynccontextmanager\b": "contextmanager",
    r"\b__a(enter|exit)__\b": r"__\1__",
    r"\bAsyncGenerator\[(\w+), None\]": r"Generator[\1, None, None]",
    r"\bAsync(Connection|ConnectionPool|Cursor|Wakeup|Engine|Generator|Iterator|Methods|StoredCursor)\b": r"\1",
    r"\bAsync(Call|Child|Ctx|Exposed|Handle)\b": r"\1",
    r"\basync_(context|engine|follow|handle|methods)\b": r"\1",
    r"\brequire_current_async\b": "require_current",
}


def unasync(text: str) -> str:
    for pattern, replacement in _WORDS.items():
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text
