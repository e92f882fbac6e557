"""``openagent completion bash|zsh|fish``: a script that lets Tab complete commands, options and their values.

Owns: the scripts, made from the parsers themselves. Does not know: what the commands do.
Source: https://www.gnu.org/software/bash/manual/html_node/Programmable-Completion.html,
https://zsh.sourceforge.io/Doc/Release/Completion-System.html, https://fishshell.com/docs/current/completions.html
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..presets import PRESETS


@dataclass(frozen=True)
class Option:
    """An option of a command: its spellings, and what may follow."""

    names: tuple[str, ...]
    about: str
    takes: bool
    values: tuple[str, ...]


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    """The options of a parser, and its sub-commands as the values of an option without a name."""
    return [_option(action) for action in parser._actions if action.help != argparse.SUPPRESS]


def _option(action: argparse.Action) -> Option:
    values = tuple(map(str, action.choices or ()))
    if "--provider" in action.option_strings:
        values = tuple(PRESETS)
    takes = action.nargs != 0
    about = (action.help or "").replace("%%", "%")
    return Option(tuple(action.option_strings), about, takes, values)


def script(shell: str, commands: Mapping[str, tuple[str, list[Option]]]) -> str:
    """The script for a shell; ``commands`` holds what each command is about, and its options."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


def _bash(commands: Mapping[str, tuple[str, list[Option]]]) -> str:
    words = "\n".join(f'        {name}) words="{_words(options)}" ;;' for name, (_, options) in commands.items())
    values = "\n".join(
        f'        "{name} {spelling}") words="{" ".join(option.values)}" ;;'
        for name, (_, options) in commands.items()
        for option in options
        for spelling in option.names
        if option.values
    )
    free = "\n".join(
        f"        {pattern}) words= ;;" for name, (_, options) in commands.items() if (pattern := _free(name, options))
    )
    return f"""# bash completion for openagent: eval "$(openagent completion bash)"
_openagent() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{words}
    esac
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
{free}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _openagent openagent
"""


def _words(options: Iterable[Option]) -> str:
    return " ".join(word for option in options for word in (option.names or option.values))


def _free(name: str, options: Iterable[Option]) -> str:
    """The bash pattern of the options whose value only the user knows, or is a file."""
    named = [f'"{name} {word}"' for one in options if one.takes and not one.values for word in one.names]
    return " | ".join(named)


def _zsh(commands: Mapping[str, tuple[str, list[Option]]]) -> str:
    named = "\n".join(f"        {_quoted(f'{name}:{about}')}" for name, (about, _) in commands.items())
    cases = "\n".join(
        f"        {name}) _arguments {' '.join(_zsh_option(one) for one in options)} ;;"
        for name, (_, options) in commands.items()
    )
    return f"""#compdef openagent
# zsh completion for openagent: source <(openagent completion zsh)
_openagent() {{
    local -a commands=(
{named}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    words=($words[2,-1])
    (( CURRENT -= 1 ))
    case $command in
{cases}
    esac
}}
compdef _openagent openagent
"""


def _zsh_option(option: Option) -> str:
    value = f":value:({' '.join(option.values)})" if option.values else ":value:_files"
    if not option.names:
        return _quoted(f"*{value}")
    about = option.about.translate({ord("["): "(", ord("]"): ")", ord(":"): ","})
    return " ".join(_quoted(f"*{name}[{about}]{value if option.takes else ''}") for name in option.names)


def _fish(commands: Mapping[str, tuple[str, list[Option]]]) -> str:
    lines = ["# fish completion for openagent: openagent completion fish | source", "complete -c openagent -e"]
    for name, (about, options) in commands.items():
        lines.append(f"complete -c openagent -n __fish_use_subcommand -f -a {name} -d {_quoted(about, fish=True)}")
        where = f"complete -c openagent -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{where} {_fish_option(option)}" for option in options if option.names or option.values]
    return "\n".join(lines) + "\n"


def _fish_option(option: Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    values = [f"-f -a {_quoted(' '.join(option.values), fish=True)}"] if option.values else []
    takes = ["-r"] if option.takes and names else []
    return " ".join([*names, *takes, *values, f"-d {_quoted(option.about, fish=True)}"])


def _quoted(text: str, *, fish: bool = False) -> str:
    """The text in single quotes, as the shell reads it."""
    if fish:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"
