"""Where a platform keeps what belongs to a user, and files there that appear whole or not at all.

Owns: the rule for such folders, the writing. Does not know: what is kept.
Source: https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_folder(
    platform: str, variables: Mapping[str, str | None], *, windows: str, mac: str, other: str, on_windows: str = ""
) -> Path:
    """Our folder of one kind; it need not exist yet.

    ``variables`` are the environment's ``XDG`` and, on Windows, ``WINDOWS`` place, if they are set; the texts are the
    usual places below the home folder, ``on_windows`` what stands behind our name there.
    """
    chosen = variables["XDG"]
    if chosen and os.path.isabs(chosen):
        return Path(chosen, "openagent")
    if platform == "win32":
        return Path(variables["WINDOWS"] or os.path.expanduser(f"~/{windows}"), "openagent", on_windows)
    return Path(os.path.expanduser(f"~/{mac if platform == 'darwin' else other}/openagent"))


def write_whole(path: Path, content: bytes) -> None:
    """Put the content in the file's place, for nobody but the user to read: it is the old one or the new one.

    ``OSError`` if it cannot be written.
    """
    import tempfile  # slow to import

    descriptor, fresh = tempfile.mkstemp(prefix=".writing-", dir=path.parent)  # made with mode 0600
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
