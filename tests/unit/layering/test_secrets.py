"""What is printed holds no secret, and hides nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.layering.secrets import MASK, masked, without_passwords
from serving.settings import Settings

SECRET = "hunter2"


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "key", "keys", "api_keys", "apikey", "password", "db_password", "passwd", "PASSWORD"),
        *("auth_token", "token", "tokens", "client_secret", "secrets", "credentials", "passphrase"),
    ],
)
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"a": SECRET}, {"a": [SECRET]}])
def test_a_secret_is_masked_by_the_name_of_its_key(name: str, value: Any) -> None:
    shown = str(masked({"part": {name: value}}))
    assert SECRET not in shown
    assert MASK in shown


def test_what_is_empty_shows_that_it_is() -> None:
    assert masked({"api_key": None, "password": "", "token": []}) == {"api_key": None, "password": "", "token": []}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://me:{SECRET}@db:5432/gaps?sslmode=on", f"postgresql://me:{MASK}@db:5432/gaps?sslmode=on"),
        (f"redis://:{SECRET}@cache", f"redis://:{MASK}@cache"),
        (f"postgresql://me:{SECRET}@ss@db/gaps", f"postgresql://me:{MASK}@db/gaps"),
        (f"https://h/x?a=1&api_key={SECRET}&b=2", f"https://h/x?a=1&api_key={MASK}&b=2"),
        ("https://h:8000/x@y", "https://h:8000/x@y"),
        ("hub:org/name@main", "hub:org/name@main"),
    ],
)
def test_a_password_in_a_url_is_masked(url: str, shown: str) -> None:
    assert without_passwords(url) == shown
    assert masked({"database": [url]}) == {"database": [shown]}


def test_no_setting_of_today_is_a_secret() -> None:
    tree = Settings().model_dump(mode="json")
    assert masked(tree) == tree


@given(st.dictionaries(st.sampled_from(["tokens", "max_reply_tokens", "key_file", "monkey", "turkeys"]), st.integers()))
def test_numbers_of_tokens_and_other_words_stay(tree: dict[str, int]) -> None:
    assert masked(tree) == tree
