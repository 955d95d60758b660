"""The lexicon of units: what each spelling means, its dimension and its size in the dimension's base unit.

Sizes are SI's and, for customary units, those of NIST Handbook 44, appendix C. Months and years are kept apart from
days: they are not a fixed number of them. Currencies and data units of powers of ten and of two never convert.
"""

from __future__ import annotations

from typing import NamedTuple


class Unit(NamedTuple):
    """A unit: its canonical name, what it measures, and how many base units it is."""

    name: str
    dimension: str
    size: float


def _table(dimension: str, rows: dict[str, tuple[float, str]]) -> dict[str, Unit]:
    return {
        spelling: Unit(name, dimension, size)
        for name, (size, spellings) in rows.items()
        for spelling in (name, *spellings.split())
    }


UNITS: dict[str, Unit] = {
    **_table(
        "length",
        {
            "metre": (1, "metres meter meters m"),
            "kilometre": (1e3, "kilometres kilometer kilometers km kms"),
            "centimetre": (1e-2, "centimetres centimeter centimeters cm"),
            "millimetre": (1e-3, "millimetres millimeter millimeters mm"),
            "mile": (1609.344, "miles mi"),
            "foot": (0.3048, "feet ft"),
            "inch": (0.0254, "inches"),
            "yard": (0.9144, "yards yd yds"),
        },
    ),
    **_table(
        "mass",
        {
            "kilogram": (1, "kilograms kilogramme kilogrammes kg kgs kilo kilos"),
            "gram": (1e-3, "grams gramme grammes g"),
            "milligram": (1e-6, "milligrams mg"),
            "microgram": (1e-9, "micrograms mcg μg"),
            "pound_weight": (0.45359237, "lb lbs"),
            "ounce": (0.028349523125, "ounces oz"),
            "tonne": (1e3, "tonnes"),
        },
    ),
    **_table("mass or count", {"ton": (1, "tons")}),
    **_table(
        "volume",
        {
            "litre": (1, "litres liter liters l"),
            "millilitre": (1e-3, "millilitres milliliter milliliters ml"),
            "gallon": (3.785411784, "gallons gal"),
        },
    ),
    **_table("area", {"hectare": (1e4, "hectares ha"), "acre": (4046.8564224, "acres")}),
    **_table(
        "time",
        {
            "millisecond": (1e-3, "milliseconds ms"),
            "second": (1, "seconds sec secs s"),
            "minute": (60, "minutes min mins"),
            "hour": (3600, "hours hr hrs h"),
            "day": (86400, "days"),
            "week": (604800, "weeks wk wks"),
        },
    ),
    **_table(
        "months",
        {
            "month": (1, "months"),
            "year": (12, "years yr yrs"),
            "decade": (120, "decades"),
            "century": (1200, "centuries"),
        },
    ),
    **_table(
        "data",
        {
            "byte": (1, "bytes"),
            "kilobyte": (1e3, "kilobytes kb"),
            "megabyte": (1e6, "megabytes mb"),
            "gigabyte": (1e9, "gigabytes gb"),
            "terabyte": (1e12, "terabytes tb"),
        },
    ),
    **_table("binary data", {"kibibyte": (1, "kib"), "mebibyte": (2**10, "mib"), "gibibyte": (2**20, "gib")}),
    **_table("power", {"watt": (1, "watts w"), "kilowatt": (1e3, "kilowatts kw"), "megawatt": (1e6, "megawatts mw")}),
    **_table("frequency", {"hertz": (1, "hz"), "megahertz": (1e6, "mhz"), "gigahertz": (1e9, "ghz")}),
    **_table("speed", {"km/h": (1, "kmh kph"), "mph": (1.609344, "")}),
    **_table("energy", {"calorie": (1, "calories cal"), "kilocalorie": (1e3, "kilocalories kcal")}),
    **_table("celsius", {"celsius": (1, "°c")}),
    **_table("fahrenheit", {"fahrenheit": (1, "°f")}),
    **_table("degrees", {"degree": (1, "degrees °")}),
    **_table("share", {"percent": (1, "% percentage pct")}),
    **_table("dollars", {"dollar": (1, "dollars $ usd"), "cent": (0.01, "cents")}),
    **_table("euros", {"euro": (1, "euros € eur")}),
    **_table("pounds sterling", {"sterling": (1, "£ gbp")}),
    **_table("pounds, of money or weight", {"pound": (1, "pounds")}),
    **_table("yen", {"yen": (1, "¥ jpy")}),
    **_table("rupees", {"rupee": (1, "rupees ₹ inr")}),
}

CURRENCY_SIGNS = frozenset("$€£¥₹")
ATTACHED_ONLY = frozenset(("m", "g", "l", "s", "h", "w"))
"""One letter is a unit right after digits, and a letter elsewhere."""


def compatible(one: Unit, other: Unit) -> bool:
    """Whether two units may be the same thing said in two ways: a pound is money or weight, a degree either scale."""
    if one.name == other.name or (
        "degree" in (one.name, other.name) and {one.name, other.name} & {"celsius", "fahrenheit"}
    ):
        return True
    pair = {one.name, other.name}
    return pair in ({"pound", "sterling"}, {"pound", "pound_weight"}, {"ton", "tonne"})
