"""Which language a text is in: py3langid's n-grams, which come with the package (BSD, 4.6 MB, no network)."""

from __future__ import annotations

from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

UNSURE = "en"
LEAST_CONFIDENCE = 0.7
"""Below it a text is taken for English: names and code (``Hotel Sacher Wien``, ``pandas merge``) stay under 0.65."""

_NEIGHBOURS = "bg ca da el fa fi he hu id mr no ro sk th ur vi".split()
"""What else a text may be in, so that Danish is not taken for Swedish where only Swedish is asked for."""


class NgramLanguage:
    """The seam :class:`~serving.answer.seams.Language`. Loads in a second; naming one takes some ten microseconds.

    ``languages`` are the ISO 639-1 codes that may be named; what is in another is called English.
    """

    def __init__(self, languages: Sequence[str], *, least_confidence: float = LEAST_CONFIDENCE) -> None:
        self._languages = frozenset(languages)
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._identifier.set_languages(sorted({*languages, UNSURE, *_NEIGHBOURS}))
        self._least_confidence = least_confidence

    def __call__(self, text: str) -> str:
        """The code of the text's language, ``"en"`` when that is not certain enough."""
        language, confidence = self._identifier.classify(text)
        known = language in self._languages and confidence >= self._least_confidence
        return str(language) if known else UNSURE
