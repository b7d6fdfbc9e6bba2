"""How values become payloads and results: JSON text, or bytes as they are.

The type says how. Plain JSON values, dataclasses, named tuples, enums, datetimes, UUIDs, Decimals, sets and tuples
need nothing; pydantic models and msgspec structs are read and written by their own libraries. `bytes` alone are
stored raw. What is on the wire is for everybody: any SQL client can write a payload that a task can read.
"""

from pyff.codecs.codec import BYTES, JSON, Codec, codec_of
from pyff.codecs.shapes import DecodeError, EncodeError, register_type

__all__ = ["BYTES", "JSON", "Codec", "DecodeError", "EncodeError", "codec_of", "register_type"]
