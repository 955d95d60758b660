"""Digits with separators, and what they may mean: English, French, Swiss and German forms, fractions."""

from __future__ import annotations

import re

_ENGLISH = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GERMAN = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_EITHER = re.compile(r"\d{1,3}\.\d{3}")
_POINT = re.compile(r"\d*\.?\d+")
_COMMA = re.compile(r"\d+,\d+")


def values_of(body: str) -> tuple[float, ...]:
    """What digits with separators may mean, likeliest first; nothing when they are no number (a version, a time)."""
    body = body.rstrip(".,:/ '’⁄").replace("⁄", "/")
    groups = re.split(r"[ '’]", body)
    if len(groups) > 1:  # ``1 000``, or two numbers side by side
        return (*values_of("".join(groups)), *(value for group in groups for value in values_of(group)))
    if "/" in body:
        above, _, below = body.partition("/")
        whole = above.isdecimal() and below.isdecimal() and float(below) != 0
        return (float(above) / float(below),) if whole else ()
    return _of_one(body)


def _of_one(body: str) -> tuple[float, ...]:
    if _ENGLISH.fullmatch(body):
        return (float(body.replace(",", "")),)
    if _GERMAN.fullmatch(body):
        return (float(body.replace(".", "").replace(",", ".")),)
    if _EITHER.fullmatch(body):  # an English decimal, or a German thousand
        return (float(body), float(body.replace(".", "")))
    if _POINT.fullmatch(body):
        return (float(body),)
    if _COMMA.fullmatch(body):  # a decimal, or two numbers
        return (float(body.replace(",", ".")), *map(float, body.split(",")))
    return ()
