"""Python types and JSON: a schema for a type, a value for its JSON, a complaint if they differ.

``types`` walks a type with the help of ``leaves``, ``signatures`` does the same for a function's
parameters, ``validation`` applies a schema to a value, ``shorthand`` reads the short form of a
schema.

Owns: JSON Schema. Does not know: what the values are for.
Source: JSON Schema Draft 2020-12, https://json-schema.org/draft/2020-12
"""

from .leaves import Mismatch, Shape
from .shorthand import TYPE_NAMES, expand, expand_property
from .signatures import Signature, function_schema, takes_self
from .types import convert, type_schema
from .validation import check, check_schema, without_nulls

__all__ = [
    "TYPE_NAMES",
    "Mismatch",
    "Shape",
    "Signature",
    "check",
    "check_schema",
    "convert",
    "expand",
    "expand_property",
    "function_schema",
    "takes_self",
    "type_schema",
    "without_nulls",
]
