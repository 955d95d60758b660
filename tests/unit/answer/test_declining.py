"""Declines speak the question's language where it is known, and English where it is not."""

from __future__ import annotations

import pytest

from models.language import NgramLanguage
from serving.answer.declining import LANGUAGES, message
from serving.answer.types import DeclineReason, RefusalCause
from tests.unit.answer.fakes import FakeRetriever, FakeVerifier
from tests.unit.answer.test_engine import ask, parts

REASONS = [*DeclineReason, *RefusalCause]
QUESTIONS = {
    "ar": "متى بُني البرج ومن صممه؟",
    "cs": "Kdy byla postavena ta věž a kdo ji navrhl?",
    "de": "Wann wurde der Turm gebaut?",
    "en": "When was the tower built?",
    "es": "¿Cuándo se construyó la torre?",
    "fr": "Quand la tour a-t-elle été construite ?",
    "hi": "यह मीनार कब बनाई गई थी और इसे किसने बनाया था?",
    "it": "Quando è stata costruita la torre?",
    "ja": "塔はいつ建てられましたか？",
    "ko": "탑은 언제 지어졌나요?",
    "nl": "Wanneer is de toren gebouwd?",
    "pl": "Kiedy zbudowano wieżę?",
    "pt": "Quando foi construída a torre?",
    "ru": "Когда была построена башня?",
    "sv": "När byggdes det här tornet och vem ritade det?",
    "tr": "Kule ne zaman inşa edildi?",
    "uk": "Коли була збудована ця вежа і хто її спроєктував?",
    "zh": "这座塔是什么时候建的？",
}


@pytest.fixture(scope="module")
def language() -> NgramLanguage:
    return NgramLanguage(LANGUAGES)


def test_every_reason_has_a_sentence_of_its_own_in_every_language() -> None:
    said = [message(reason, language) for language in LANGUAGES for reason in REASONS]
    assert all(sentence.strip() == sentence and len(sentence) > 10 for sentence in said)
    assert len(set(said)) == len(said) == 18 * 6


def test_a_language_without_sentences_is_told_in_english() -> None:
    assert message(DeclineReason.NOTHING_RETRIEVED, "eo") == message(DeclineReason.NOTHING_RETRIEVED, "en")


def test_there_is_a_question_for_every_language() -> None:
    assert set(QUESTIONS) == set(LANGUAGES)


@pytest.mark.parametrize(("code", "question"), QUESTIONS.items(), ids=QUESTIONS)
def test_a_question_in_a_language_is_known_for_it(language: NgramLanguage, code: str, question: str) -> None:
    assert language(question) == code


@pytest.mark.parametrize(
    "text",
    ["", "?", "ok", "1234", "json", "pandas merge", "Hotel Sacher Wien", "Angela Merkel", "Eiffel",
     "def f(x): return x", "pypi login", "\ud800", "Hvornår blev tårnet bygget?", "Quan es va construir la torre?"],
)  # fmt: skip
def test_what_is_short_or_ambiguous_or_in_another_language_is_english(language: NgramLanguage, text: str) -> None:
    assert language(text) == "en"


@pytest.mark.parametrize("code", ["de", "ja", "en"])
async def test_a_decline_is_told_in_the_language_of_the_question(language: NgramLanguage, code: str) -> None:
    declined = await ask(parts(language=language, retriever=FakeRetriever([])), QUESTIONS[code])
    assert declined.decline is not None
    assert declined.decline.message == message(DeclineReason.NOTHING_RETRIEVED, code)
    refused = await ask(parts("Uncited.", language=language), QUESTIONS[code])
    assert refused.decline is not None
    assert refused.decline.message == message(RefusalCause.UNGROUNDED, code)
    assert refused.passages


async def test_the_language_is_asked_for_only_by_a_decline() -> None:
    asked: list[str] = []

    def fake_language(text: str) -> str:
        asked.append(text)
        return "de"

    assert (await ask(parts(language=fake_language))).outcome == "answered"
    assert asked == []
    declined = await ask(parts(language=fake_language, verifier=FakeVerifier({})))
    assert declined.decline is not None
    assert declined.decline.message == message(DeclineReason.NOTHING_PROVEN, "de")
    assert asked == ["When was the tower built?"]
