"""What the checks share: the repository's files, and code without comments."""

import pathlib
import re
import subprocess

CODE = {".c", ".h", ".cpp", ".def", ".inc"}
_COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_TD_DOCS = re.compile(r"\b(?:let\s+)?(?:description|summary)\s*=\s*(\[\{.*?\}\]|\"(?:\\.|[^\"\\])*\")", re.DOTALL)


def files(root, *folders, suffixes=None):
    """Paths below `root`, as text with '/', that git knows or would add
    (every file, where there is no git)."""
    root = pathlib.Path(root)
    git = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    result = subprocess.run(git, capture_output=True, text=True) if (root / ".git").exists() else None
    if result and result.returncode == 0:
        names = result.stdout.splitlines()
    else:
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")]
    for name in sorted(set(names)):
        path = pathlib.PurePosixPath(name)
        if folders and path.parts[0] not in folders:
            continue
        if (suffixes is None or path.suffix in suffixes) and (root / name).is_file():
            yield name


def read(root, name):
    return (pathlib.Path(root) / name).read_text(errors="replace")


def _blank(text):
    """The same number of lines, and nothing else."""
    return "\n" * text.count("\n")


def without_comments(text, is_td=False):
    """Code with comments (and the documentation of .td files) blanked out;
    string literals and line numbers stay."""
    if is_td:
        text = _TD_DOCS.sub(lambda m: _blank(m[0]), text)
    return _COMMENTS.sub(lambda m: m[0] if m[0].startswith('"') else _blank(m[0]), text)


def under(path, folder):
    """Whether `path` is `folder` or lies below it; '*' stands for one name."""
    parts, wanted = path.split("/"), folder.split("/")
    return len(parts) >= len(wanted) and all(w in ("*", p) for w, p in zip(wanted, parts))
