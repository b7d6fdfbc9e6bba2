"""Builds the site from the files of the repository in their places; see mkdocs.yml."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Completes the navigation: the chapters of the reference, and pages that it does not list."""
    parts = {name: pages for part in config.nav or [] for name, pages in part.items() if name != "Home"}
    chapters = re.findall(r"\]\((reference/\w+\.md)#", (DOCS / "functions.md").read_text())
    parts["SQL and Python"][1:1] = dict.fromkeys(chapters)
    listed = str(config.nav)
    parts["Guides"] += [page.name for page in sorted(DOCS.glob("*.md")) if page.name not in listed]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The README is the first page; what the pages link to outside docs/ belongs to the site as well."""
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text()))
    examples = [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    for path in [*ROOT.glob("[CS]*.md"), ROOT / "LICENSE", *examples]:
        relative = path.relative_to(ROOT)
        if not {"node_modules", "target", "__pycache__"} & {*relative.parts}:
            files.append(File.generated(config, str(relative), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:  # noqa: ANN401
    """Links as they are from inside docs/."""
    if page.file.src_uri in ("index.md", "SECURITY.md"):
        return markdown.replace("](docs/", "](")
    if page.file.src_uri.startswith("examples/polyglot/"):
        return markdown.replace("](../../docs/", "](../../")
    if "/" not in page.file.src_uri:
        return re.sub(r"\]\(\.\./(?=examples/|[CLS])", "](", markdown)
    return markdown
