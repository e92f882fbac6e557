"""What mkdocs asks while it builds: the navigation holds the pages that are there."""

from pathlib import Path


def on_config(config):
    """Leave out of the navigation what is not written; what is written and not named in it is a warning of mkdocs."""
    config.nav = present(config.nav, Path(config.docs_dir))
    return config


def present(entries, folder):
    """The entries whose page is in the folder; sections and titled pages by the same rule."""
    kept = []
    for entry in entries:
        title, page = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(page, list):
            kept.append({title: present(page, folder)})
        elif (folder / page).is_file():
            kept.append(entry)
    return kept
