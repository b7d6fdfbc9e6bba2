"""Conversion of values to payloads and results: JSON text, or raw bytes.

The type decides. Plain JSON values, dataclasses, named tuples, enums, datetimes, UUIDs, Decimals, sets and tuples are
built in; pydantic models and msgspec structs are converted by their own libraries. Only `bytes` are stored raw. The
format is language-neutral: any SQL client can write a payload that a task can read.
"""

from pyff.codecs.codec import BYTES, JSON, Codec, codec_of
from pyff.codecs.shapes import DecodeError, EncodeError, register_type

__all__ = ["BYTES", "JSON", "Codec", "DecodeError", "EncodeError", "codec_of", "register_type"]
