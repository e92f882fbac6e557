"""What mkdocs asks while it builds: the navigation holds the pages that are there."""

from pathlib import Path


def on_config(config):
    """Leave out of the navigation what is not written; what is written and not named in it is a warning of mkdocs."""
    config.nav = present(config.nav, Path(config.docs_dir))
    return config


def present(entries, folder):
    """The entries whose page is in the folder; sections by the same rule."""
    kept = []
    for entry in entries:
        if isinstance(entry, dict):
            kept.append({title: present(pages, folder) for title, pages in entry.items()})
        elif (folder / entry).is_file():
            kept.append(entry)
    return kept
