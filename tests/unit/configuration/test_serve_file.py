"""The part of a file that is Ray's: keys that Ray would ignore are refused, with the one that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from ray.serve.schema import HTTPOptionsSchema, ServeApplicationSchema, ServeDeploySchema, gRPCOptionsSchema

from serving.configuration import serve_file
from serving.settings import SettingsError, load


def test_the_keys_are_those_of_rays_schema() -> None:
    assert set(ServeDeploySchema.model_fields) == serve_file.FILE
    assert set(HTTPOptionsSchema.model_fields) == serve_file.HTTP_OPTIONS
    assert set(gRPCOptionsSchema.model_fields) == serve_file.GRPC_OPTIONS
    assert set(ServeApplicationSchema.model_fields) == serve_file.APPLICATION | set(serve_file.ELSEWHERE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("htpp_options: {port: 1}\napplications: [{}]", "htpp_options is no key .* did you mean http_options?"),
        ("http_options: {prot: 1}\napplications: [{}]", r"http_options\.prot is no key .* did you mean port?"),
        ("grpc_options: {prot: 1}\napplications: [{}]", r"grpc_options\.prot is no key .* did you mean port?"),
        ("applications: [{arsg: {}}]", r"applications\[0\]\.arsg is no key .* did you mean args?"),
        ("applications: [{zzz: 1}]", r"applications\[0\]\.zzz is no key .*; known here: args, "),
        ("applications: [{deployments: []}]", r"applications\[0\]\.deployments: write it under args\.deployments"),
        ("applications: [{port: 1}]", r"applications\[0\]\.port: write it under http_options"),
        ("http_options: [port]\napplications: [{}]", "http_options must hold keys such as host"),
        ("1: 2\napplications: [{}]", "1 is no key"),
    ],
)
def test_a_key_that_ray_would_ignore_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=said):
        load(path)


def test_every_fault_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("one: 1\nhttp_options: {two: 2}\napplications: [{three: 3}]")
    with pytest.raises(SettingsError, match=r"one.*two.*three"):
        load(path)


def test_every_key_of_rays_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "http_options: null\ngrpc_options: {port: 9000}\nlogging_config: {encoding: JSON}\napplications: [{}]"
    )
    assert load(path)[1]["grpc_options"] == {"port": 9000}
