"""Sums found in a sentence and worked out, so that an answer can be checked."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

_WORDS = (
    (r"\bmultiplied by\b|\btimes\b|×|·", "*"),
    (r"\bdivided by\b|÷", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
    (r"(?<=\d)\s*x\s*(?=\d)", "*"),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"\^", "**"),
)
_SUM = re.compile(r"\(?-?\d[\d\s+\-*/().]*[+\-*/][\d\s+\-*/().]*\d\)?")
_OF = re.compile(r"\b(sum|product|difference) of (-?\d+(?:\.\d+)?) and (-?\d+(?:\.\d+)?)", re.IGNORECASE)
_SIGNS = {"sum": "+", "product": "*", "difference": "-"}
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}


def solve(text: str) -> str | None:
    """Return the value of the sum that `text` asks for, or None when it asks for none."""
    text = _OF.sub(lambda found: f"{found[2]} {_SIGNS[found[1].lower()]} {found[3]}", _DATE.sub(" ", text))
    for pattern, sign in _WORDS:
        text = re.sub(pattern, sign, text, flags=re.IGNORECASE)
    for found in sorted(_SUM.findall(text), key=len, reverse=True):
        value = _value(found.strip())
        if value is not None:
            return value
    return None


def _value(expression: str) -> str | None:
    try:
        number = _walk(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return str(int(number)) if float(number).is_integer() else f"{number:.6g}"


def _walk(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_walk(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        first, second = _walk(node.left), _walk(node.right)
        if isinstance(node.op, ast.Pow) and (abs(second) > 64 or abs(first) > 10**6):
            raise ValueError("too large")
        return _OPERATORS[type(node.op)](first, second)
    raise ValueError("not a sum")
