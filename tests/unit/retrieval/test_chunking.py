import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.retrieval.chunking import MAX_WORDS, TARGET_WORDS, first_heading, passages, pieces
from serving.retrieval.documents import Document

word = st.text(st.characters(categories=["Ll", "Lu"], max_codepoint=0x17F), min_size=1, max_size=9)
sentence = st.lists(word, min_size=1, max_size=40).map(lambda words: " ".join(words).capitalize() + ".")
paragraph = st.lists(sentence, min_size=1, max_size=15).map(" ".join)
text = st.lists(paragraph, min_size=1, max_size=8).map("\n\n".join)

# Long texts take a while to draw on a busy machine.
patient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@patient
@given(text)
def test_pieces_hold_every_word_in_order_and_keep_to_the_size(body: str) -> None:
    found = pieces(body)
    assert " ".join(found).split() == body.split()
    assert all(0 < len(piece.split()) <= MAX_WORDS for piece in found)


@patient
@given(text)
def test_sentences_stay_whole(body: str) -> None:
    assert all(piece.endswith(".") for piece in pieces(body))


@patient
@given(st.text(max_size=3000))
def test_any_text_keeps_its_words(body: str) -> None:
    assert "".join("".join(pieces(body)).split()) == "".join(body.split())


def test_paragraphs_are_filled_up_to_the_target() -> None:
    paragraphs = [" ".join([f"word{number}"] * 50) + "." for number in range(7)]
    found = pieces("\n\n".join(paragraphs))
    assert [len(piece.split()) for piece in found] == [150, 150, 50]
    assert found[0] == "\n\n".join(paragraphs[:3])


def test_a_tiny_last_piece_joins_the_one_before() -> None:
    assert len(pieces(" ".join(["word"] * 175) + ".\n\nThe very short end of it.")) == 1


def test_list_items_and_rows_are_seams_inside_a_paragraph() -> None:
    items = "\n".join(f"- item {number} " + "of a list without full stops " * 3 for number in range(30))
    assert all(piece.startswith("- item") for piece in pieces(items))


def test_abbreviations_do_not_end_a_sentence() -> None:
    body = " ".join(["Use a tool, e.g. Ruff, i.e. A linter, for it."] * 40)
    assert all(piece.startswith("Use") for piece in pieces(body))


def test_code_is_left_whole_up_to_twice_the_target() -> None:
    code = "```python\n" + "\n\n".join(f"line {number} = 1" for number in range(TARGET_WORDS // 3)) + "\n```"
    assert pieces(f"Before it.\n\n{code}\n\n" + "After it. " * 60)[1] == code


def test_longer_code_is_cut_at_lines_and_each_part_is_fenced() -> None:
    lines = [f"line {number} = 1" for number in range(400)]
    found = pieces("```python\n" + "\n".join(lines) + "\n```")
    assert len(found) > 1
    assert all(piece.startswith("```python\n") and piece.endswith("\n```") for piece in found)
    assert [line for piece in found for line in piece.split("\n")[1:-1]] == lines


@pytest.mark.parametrize("body", ["x" * 50_000, "語" * 20_000, "語。" * 9000, "`" * 9000, "a " * 20_000])
def test_text_without_seams_is_cut_all_the_same(body: str) -> None:
    found = pieces(body)
    assert max(len(piece) for piece in found) < 8_000
    assert "".join("".join(found).split()) == "".join(body.split())


def test_passages_of_a_document() -> None:
    document = Document("# Top\n\nOne.\n\n## Sub\n\nTwo.\n\n## Empty\n", "Top", "docs", "a.md", "https://x.y/a")
    found = list(passages(document))
    assert [(passage.heading_path, passage.text) for passage in found] == [(("Top",), "One."), (("Top", "Sub"), "Two.")]
    assert {(passage.title, passage.source, passage.source_path, passage.url) for passage in found} == {
        ("Top", "docs", "a.md", "https://x.y/a")
    }
    assert len({passage.id for passage in found}) == 2
    assert found == list(passages(document))


def test_the_first_heading_is_of_level_one() -> None:
    assert first_heading("## Sub\n\n# Top\n\n# Other") == "Top"
    assert first_heading("No heading") is None
