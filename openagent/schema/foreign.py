"""Classes of other libraries, which know their own schema: pydantic's, msgspec's, those of attrs.

Owns: the rules for them. pydantic is known by what it can do, and never imported.
"""

from __future__ import annotations

from typing import Any, get_origin

from .leaves import Mismatch, Schema, Shape
from .walk import Walk, name_of


def pydantic_model(walk: Walk, kind: Any) -> Shape | None:
    """A model of pydantic, which knows its own schema and its own conversion."""
    if not (isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")):
        return None

    def convert(value: Any) -> Any:
        try:
            return kind.model_validate(value)
        except ValueError as exc:
            first = exc.errors()[0] if hasattr(exc, "errors") else {"msg": str(exc)}
            where = ".".join(map(str, first.get("loc", ())))
            raise Mismatch(f"a valid {kind.__name__} ({first['msg']})", first.get("input", value), where) from exc

    def build(name: str) -> Shape:
        schema = kind.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
        return Shape(_hoisted(walk, name, schema, schema.pop("$defs", {})), convert)

    return walk.named(kind, build)


def known_to_msgspec(walk: Walk, kind: Any) -> Shape | None:
    """What else msgspec knows: its own structs, the classes of attrs."""
    if not isinstance(get_origin(kind) or kind, type):
        return None
    import msgspec

    def build(name: str) -> Shape:
        (schema,), parts = msgspec.json.schema_components([kind], ref_template=f"#/$defs/{name}.{{name}}")
        return Shape(_hoisted(walk, name, schema, parts), convert)

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind)
        except ValueError as exc:
            raise Mismatch(f"a valid {name_of(kind)} ({exc})", value) from exc

    try:
        return walk.named(kind, build)
    except (TypeError, RuntimeError):
        return None


def _hoisted(walk: Walk, name: str, schema: Schema, parts: dict[str, Schema]) -> Schema:
    """The schema, its own definitions moved to ours under names that cannot clash."""
    walk.defs.update({f"{name}.{part}": definition for part, definition in parts.items()})
    return schema
