"""The plan of the house (design.md 5), read off the source: floors, rooms, what may be imported where."""

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import openagent
from openagent.protocols import ADAPTERS

ROOT = Path(openagent.__file__).parent

# Lowest floor first: an import goes to a lower floor, never sideways or up. A package that is one room to the
# others has a plan of its own below, its door (the package itself) on top.
HOUSE = [
    "errors codec interrupt chunked values testing",
    "folders images readable limits retry presets connection schema waiting partial_json answer_schema",
    "messages faults translation sse forms",
    "events hooks history tools approval conversation talk",
    "assembly markup keeping options running",
    "decoding export keys local showing abilities adapters.openai_chat_plain",
    "adapters profiles extraction",
    "record",
    "logs",
    "adapters.openai_chat_messages adapters.openai_chat_turn adapters.openai_responses_items adapters.anthropic_turn"
    " transport calls rescue decisions",
    "loop emulation adapters.openai_responses_turn adapters.anthropic_conversation",
    "adapters.openai_chat adapters.openai_responses adapters.anthropic",
    "cursor protocols",
    "client",
    "batch doctor notebook",
    "__init__",
    "cli",
    "__main__",
]
PLANS = {
    "schema": [
        "leaves docs patterns",
        "notes shorthand objects validation",
        "walk",
        "containers foreign",
        "types",
        "signatures",
        "__init__",
    ],
    "batch": [
        "cache pace prompts results table",
        "ledger progress rounds",
        "crew",
        "desk",
        "mapping",
        "filling",
        "__init__",
    ],
    "cli": [
        "completion conversations decoded demo_tools output shapes terminal wire",
        "arguments keyboard",
        "markdown tools",
        "batch chat doctor key models profiles",
        "ask",
        "__init__",
    ],
    "doctor": ["report", "bench", "identity quirks", "places speaking", "abilities", "__init__"],
    "local": ["process model", "server", "__init__"],
    "testing": [
        "script",
        "http strict wire",
        "chat responses_rules anthropic_rules",
        "responses anthropic",
        "reply",
        "server",
        "__init__",
    ],
}
# Slow to import, so only on first use; and each the business of few rooms.
TYPED = {f"adapters.{name}" for name in ("openai_chat_plain", "openai_responses_turn", "anthropic_turn")}
HEAVY = {
    "requests": {"connection", "translation", "transport"},
    "urllib3": {"connection", "translation"},
    "sseclient": {"sse"},
    "msgspec": {"codec", "schema", *TYPED},
    "jsonschema": {"schema"},
    "regex": {"schema"},
    "jsonschema_specifications": {"schema"},
    "referencing": {"schema"},
    "docstring_parser": {"schema"},
    "xllamacpp": {"local"},
    "prompt_toolkit": {"cli"},
    "rich": {"cli"},
    "IPython": {"showing", "waiting"},
    "tqdm": {"batch"},
    "tomli": {"keys"},
    "tomllib": {"keys"},
}
# What a first chat loads; each room costs 0.1 to 3.6 ms.
TALKING = """
abilities assembly chunked client codec connection cursor decoding errors events faults history hooks images interrupt
limits logs loop messages options presets protocols record retry sse talk translation transport values
adapters adapters.openai_chat adapters.openai_chat_messages adapters.openai_chat_plain adapters.openai_chat_turn
"""
NETWORK = {"socket", "ssl", "http", "select", "selectors", "socketserver", "urllib.request"}
NETWORKED = {"connection", "chunked", "translation", "local", "testing"}


def name_of(path):
    """``adapters/openai_chat.py`` is ``adapters.openai_chat``, ``adapters/__init__.py`` is ``adapters``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


SOURCES = {name_of(path): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(source) for name, source in SOURCES.items()}


def room_of(name):
    """The room of the house that a module is, or is in."""
    head = name.partition(".")[0]
    return head if head in PLANS else name


def package_of(name):
    path = ROOT.joinpath(*name.split("."))
    if name == "__init__" or path.is_dir():
        return [] if name == "__init__" else name.split(".")
    return name.split(".")[:-1]


def targets(name, node):
    """The modules that an import statement asks for: ours as ``.name``, others as they are."""
    if isinstance(node, ast.Import):
        return [
            "." + alias.name.partition("openagent.")[2] if is_ours(alias.name) else alias.name for alias in node.names
        ]
    if node.level == 0 and not is_ours(node.module):
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    if node.level == 0:
        base = node.module.split(".")[1:]
    else:
        package = package_of(name)
        base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
    whole = [".".join([*base, alias.name]) for alias in node.names]
    return ["." + (module if module in TREES else ".".join(base) or "__init__") for module in whole]


def is_ours(module):
    return module == "openagent" or module.startswith("openagent.")


def imports(name):
    """(target, is it inside a function, is it for the type checker only) of every import in a module."""

    def walk(node, in_function, for_types):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for target in targets(name, node):
                yield target, in_function, for_types
        inside = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        typed = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside, for_types or typed)

    return list(walk(TREES[name], False, False))


def floors(plan):
    return {room: floor for floor, rooms in enumerate(plan) for room in rooms.split()}


def inner(name):
    """A module of a package with a plan, as that plan calls it."""
    return name.partition(".")[2] or "__init__"


def test_every_module_has_its_place_in_the_plan():
    planned = set(floors(HOUSE)) - set(PLANS)
    planned |= {f"{room}.{name}" for room, plan in PLANS.items() for name in floors(plan)}
    there = {f"{name}.__init__" if name in PLANS else name for name in TREES}
    assert there == planned


@pytest.mark.parametrize("name", TREES)
def test_an_import_goes_to_a_lower_floor(name):
    """design.md 5: never sideways or up, so there is no circle; and another package is entered by its door."""
    wrong = []
    for target, _, for_types in imports(name):
        if not target.startswith(".") or for_types:
            continue
        target = target[1:]
        if room_of(name) == room_of(target):
            plan = floors(PLANS[room_of(name)])
            is_right = plan[inner(target)] < plan[inner(name)]
        else:
            plan = floors(HOUSE)
            is_right = target in plan and plan[target] < plan[room_of(name)]
        if not is_right:
            wrong.append(target)
    assert wrong == []


def test_only_what_a_first_chat_can_do_without_is_imported_on_first_use():
    """Design.md 5 has no lazy imports of our own rooms, for they hide circles; the test above looks into functions too.

    Issue 6 wants a first token soon: the rooms that talk load the others when they are used.
    """
    lazy = {name for name in TREES for target, inside, _ in imports(name) if inside and target.startswith(".")}
    assert lazy == {"client", "loop", "options", "protocols", "adapters.openai_chat"}
    assert {name for name in TREES if 'import_module(f"' in SOURCES[name]} == {"__init__", "cli"}


def test_a_first_chat_loads_only_the_rooms_that_it_needs():
    told = child(
        "import sys; from openagent import Client; from openagent.testing import ScriptedServer\n"
        "with ScriptedServer('Hi') as server: print(Client(model='m', base_url=server.url).ask('Hello'))\n"
        "print(*(name for name in sys.modules if name.startswith(('openagent.', 'msgspec', 'jsonschema'))))"
    )
    text, loaded = told.splitlines()
    rooms = {name.removeprefix("openagent.") for name in loaded.split()}
    assert text == "Hi"
    assert {name for name in rooms if room_of(name) != "testing"} == set(TALKING.split())


def test_a_client_and_its_adapter_load_neither_dataclasses_nor_inspect():
    """Together they are a twentieth of what a first token takes (``values``)."""
    told = child(
        "import sys, openagent.client, openagent.adapters.openai_chat\n"
        "print({'dataclasses', 'inspect'} & {*sys.modules}, end='')"
    )
    assert told == "set()"


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_long_answer_loads_the_fast_decoder_on_its_way(protocol):
    told = child(
        "import sys; from openagent import Client; from openagent.testing import ScriptedServer\n"
        "with ScriptedServer('word ' * 100) as server:\n"
        f"    for piece in Client(model='m', base_url=server.url, protocol={protocol!r}).stream('Hello'):\n"
        "        print(repr(piece), 'msgspec' in sys.modules)"
    )
    pieces = [line.rpartition(" ") for line in told.splitlines()]
    loaded = [is_loaded for _, _, is_loaded in pieces]
    assert [ast.literal_eval(piece) for piece, _, _ in pieces] == ["word "] * 100
    assert loaded[-1] == "True"
    assert loaded == sorted(loaded)


def test_the_package_loads_a_room_when_something_of_it_is_asked_for():
    shown = child(
        "import sys, openagent; print(sum(name.startswith('openagent.') for name in sys.modules));"
        "print(openagent.Tool.__module__, openagent.errors.__name__, 'openagent.client' in sys.modules)"
    )
    assert shown.split() == ["0", "openagent.tools", "openagent.errors", "False"]


def test_the_package_has_the_names_that_it_promises():
    """The same for a type checker, for ``from openagent import *`` and at run time."""
    checked = {
        alias.name
        for node in ast.walk(TREES["__init__"])
        if isinstance(node, ast.ImportFrom) and node.module not in ("importlib", "typing")
        for alias in node.names
    }
    assert checked - {"register_if_there"} == set(openagent.__all__)
    assert [name for name in openagent.__all__ if not hasattr(openagent, name)] == []
    assert set(openagent.__all__) <= set(dir(openagent))
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        _ = openagent.Clint


@pytest.mark.parametrize("name", TREES)
def test_a_heavy_library_is_imported_on_first_use_in_the_rooms_that_use_it(name):
    """design.md 5."""
    wrong = []
    for target, in_function, for_types in imports(name):
        library = target.partition(".")[0]
        is_known = library in HEAVY or target.startswith(".") or library in sys.stdlib_module_names
        is_right = library not in HEAVY or ((in_function or for_types) and room_of(name) in HEAVY[library])
        if not (is_known and is_right):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("provider", ["openai_chat", "openai_responses", "anthropic"])
def test_an_adapter_does_not_know_the_other_providers(provider):
    """design.md 5."""
    mine = [name for name in TREES if name.startswith(f"adapters.{provider}")]
    known = {target for name in mine for target, *_ in imports(name) if target.startswith(".adapters.")}
    assert {target for target in known if not target.startswith(f".adapters.{provider}")} == set()


@pytest.mark.parametrize("name", [name for name in TREES if room_of(name) not in NETWORKED])
def test_only_few_rooms_touch_the_network(name):
    """design.md 5."""
    asked = {target for target, *_ in imports(name)}
    assert {target for target in asked if target in NETWORK or target.partition(".")[0] in NETWORK} == set()


@pytest.mark.parametrize("name", [name for name in TREES if name != "options"])
def test_one_room_reads_the_environment(name):
    """design.md 3, 5: the one function that reads it is in ``options``."""
    reads = [
        ast.unparse(node)
        for node in ast.walk(TREES[name])
        if (isinstance(node, ast.Attribute) and node.attr == "getenv")
        or (
            isinstance(node, ast.Subscript)
            and ast.unparse(node.value) == "os.environ"
            and isinstance(node.ctx, ast.Load)
        )
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.environ.items"))
    ]
    assert reads == []


def own_names(tree):
    """What a module binds at its own level."""
    bound = set()
    for node in tree.body:
        aims = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        bound |= {aim.id for aim in aims if isinstance(aim, ast.Name)}
    return bound


CHANGES = {"append", "add", "update", "clear", "pop", "popitem", "setdefault", "extend", "insert", "remove", "discard"}


@pytest.mark.parametrize("name", [name for name in TREES if room_of(name) != "local"])
def test_no_module_has_state(name):
    """design.md 5: what stands in a module is never changed by a function; the embedded model's process is."""
    own = own_names(TREES[name])
    wrong = []
    for function in [node for node in ast.walk(TREES[name]) if isinstance(node, (ast.FunctionDef, ast.Lambda))]:
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                wrong.append(ast.unparse(node))
            changed = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                changed = node.func.value
            elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
                changed = node.value
            if isinstance(changed, ast.Name) and changed.id in own and changed.id not in locals_of(function):
                wrong.append(ast.unparse(node))
    assert wrong == []


def locals_of(function):
    parameters = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    return parameters | {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def code_lines(source):
    """The lines that hold code: not blank, no comment, no docstring."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    prose = set()
    for node in [node for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)]:
        prose |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in blank:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def test_no_file_is_too_long_to_be_read():
    """design.md 5: none over 300 lines of code, and most under 250."""
    sizes = {name: code_lines(source) for name, source in SOURCES.items()}
    assert {name: size for name, size in sizes.items() if size > 300} == {}
    assert sum(size < 250 for size in sizes.values()) > 0.9 * len(sizes)


def test_every_module_says_what_it_owns():
    """design.md 8."""
    without = [name for name, tree in TREES.items() if not ast.get_docstring(tree)]
    assert without == []


def child(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_all_names_loads_no_heavy_library():
    """design.md 5."""
    loaded = child("import sys; from openagent import *; import openagent.testing; print(*sys.modules)").split()
    assert "openagent.client" in loaded
    assert set(HEAVY) & {module.partition(".")[0] for module in loaded} == set()


def test_importing_the_client_costs_less_than_importing_requests(tmp_path, monkeypatch):
    """In one run, side by side, with compiled files kept as usual: a notebook's first cell must not have to wait."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))

    def seconds(module):
        return float(child(f"import time; s = time.process_time(); import {module}; print(time.process_time() - s)"))

    seconds("openagent.client"), seconds("requests")  # compiles
    ours, theirs = zip(*[(seconds("openagent.client"), seconds("requests")) for _ in range(7)], strict=True)
    assert min(ours) < min(theirs)


def test_the_help_of_the_command_line_is_cheap(tmp_path, monkeypatch):
    """Issue 7: at most 0.6 times ``import requests`` over bare Python, and no network library."""
    told = child(
        "import sys; from openagent.cli import main\ntry: main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    )
    assert "ask a question" in told
    modules = set(told.split("\n")[-2].split())
    assert {module.partition(".")[0] for module in modules} & (NETWORK | set(HEAVY)) == set()
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    code = "import time, sys; s = time.process_time()\ntry: {}\nexcept SystemExit: pass\nprint(time.process_time() - s)"

    def seconds(statement):
        return float(child(code.format(statement)).splitlines()[-1])

    ours, theirs = "from openagent.cli import main; main(['--help'])", "import requests"
    seconds(ours), seconds(theirs)  # compiles
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(5)]
    assert min(pair[0] for pair in pairs) <= 0.6 * min(pair[1] for pair in pairs)
