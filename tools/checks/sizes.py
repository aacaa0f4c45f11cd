"""No file over 800 lines, no function over 80 (CONTRIBUTING.md, rule 3)."""

import ast
import pathlib
import re

import source

FILE_LINES, FUNCTION_LINES = 800, 80
SUFFIXES = {".c", ".h", ".cpp", ".td", ".py", ".mlir", ".fbs", ".cmake", ".txt", ".sh", ".def", ""}

# path -> why it may be longer; path:function -> why it may be longer
EXCEPTIONS = {
    "LICENSE": "a legal text",
}

_STRINGS = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)


def plain(text):
    """C++ text without anything whose braces would mislead."""
    keep_lines = lambda m: "\n" * m[0].count("\n")
    text = source.without_comments(text)
    text = _STRINGS.sub(lambda m: '""' + keep_lines(m), text)
    return _PREPROCESSOR.sub(keep_lines, text)


def kind_of(header):
    """What a '{' opens, given the text before it."""
    if re.search(r'\b(?:namespace\s*[\w:]*|extern\s*"")\s*$', header):
        return "scope"
    if "(" in header and not header.rstrip().endswith("="):
        return "function"
    if re.search(r"\b(class|struct|union)\b", header):
        return "scope"
    return "other"


def function_name(header):
    match = re.search(r"([~\w:]+|operator\s*[^\s(]+)\s*\(", header)
    return match[1] if match else "?"


def cpp_functions(text):
    """Yields (name, first line, lines) of each function that is not local."""
    text = plain(text)
    stack, start, line = [], 0, 1
    for at, letter in enumerate(text):
        if letter == "\n":
            line += 1
        inside = any(kind != "scope" for kind, _, _ in stack)
        if letter == "{":
            header = "" if inside else text[start:at]
            first = line - header.lstrip().count("\n")
            stack.append(("other" if inside else kind_of(header), header, first))
        elif letter == "}" and stack:
            kind, header, first = stack.pop()
            if kind == "function":
                yield function_name(header), first, line - first + 1
        if letter in "{};" and not any(kind != "scope" for kind, _, _ in stack):
            start = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def problems(root):
    for path in source.files(root, suffixes=SUFFIXES):
        text = source.read(root, path)
        lines = text.count("\n")
        if lines > FILE_LINES and path not in EXCEPTIONS:
            yield f"{path}: {lines} lines, more than {FILE_LINES}: split it"
        suffix = pathlib.PurePosixPath(path).suffix
        functions = ()
        if suffix in {".c", ".h", ".cpp"}:
            functions = cpp_functions(text)
        elif suffix == ".py":
            functions = python_functions(text)
        for name, first, length in functions:
            if length > FUNCTION_LINES and f"{path}:{name}" not in EXCEPTIONS:
                yield f"{path}:{first}: {name} has {length} lines, more than {FUNCTION_LINES}: split it"
