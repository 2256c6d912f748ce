"""Models of Hugging Face's transformers, really launched with the newest release."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torchcompile_suite import matrix, workloads
from torchcompile_suite.cell import Cell
from torchcompile_suite.releases import apart
from torchcompile_suite.request import Request
from torchcompile_suite.workloads import WorkloadError, hugging_face

from .conftest import BRIEF, ReleaseEnvironment

NAMES = [name for name in workloads.names() if workloads.get(name).family == "hf"]


def test_each_needs_transformers_and_a_bare_run_measures_none() -> None:
    """A bare run must not get longer: the families that it measures are enough."""
    assert len(NAMES) >= 24
    for name in NAMES:
        assert workloads.libraries(name) == (hugging_face.LIBRARY,)
        assert hugging_face.LIBRARY in apart.read()
    assert not {cell.workload for cell in matrix.core_cells()} & set(NAMES)
    assert {cell.workload for cell in matrix.cells_matching("Inference.*'default'")} >= set(NAMES)


class Config(SimpleNamespace):
    """Stands for a configuration of transformers."""

    def get_text_config(self) -> Config:
        return getattr(self, "text_config", self)


class Kind:
    """Stands for a model of transformers."""

    def __init__(self, config: Config) -> None:
        self.config, self.dtype = config, "that of the configuration"

    def float(self) -> Kind:
        self.dtype = "float32"
        return self

    def forward(self, input_ids: Any, pixel_values: Any = None, mask: Any = None) -> None: ...


class Images(Kind):
    def forward(self, pixel_values: Any, input_ids: Any = None) -> None: ...  # type: ignore[override]


def of_folder(
    monkeypatch: pytest.MonkeyPatch, config: Config | Exception, batch_size: int | None = 2
) -> tuple[Any, Any]:
    """The model and the inputs (their shapes) of that configuration."""

    def from_pretrained(_: str, local_files_only: bool) -> Config:
        assert local_files_only
        if isinstance(config, Exception):
            raise config
        return config

    transformers = SimpleNamespace(
        __version__="4.57.3",
        AutoConfig=SimpleNamespace(from_pretrained=from_pretrained),
        PretrainedConfig=Config,
        Kind=Kind,
        Images=Images,
    )
    torch = SimpleNamespace(randn=lambda *shape: shape, randint=lambda *given: given[2])
    monkeypatch.setattr(hugging_face, "library", lambda _: transformers)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return hugging_face.of_folder("folder", batch_size)


def test_the_parts_of_a_model_have_no_cache_no_download_and_one_dtype(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backbone = Config(use_pretrained_backbone=True)
    text = Config(use_cache=True, vocab_size=9, backbone_config=backbone)
    config = Config(architectures=["Kind"], text_config=text, use_pretrained_backbone=None)
    model, _ = of_folder(monkeypatch, config)
    assert not text.use_cache
    assert backbone.use_pretrained_backbone is False
    assert config.use_pretrained_backbone is None, "False would mean that there is one"
    assert model.dtype == "float32"


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("Kind", {}, {"input_ids": (2, 128)}),
        ("Kind", {"max_position_embeddings": 77}, {"input_ids": (2, 77)}),
        ("Kind", {"max_position_embeddings": -1}, {"input_ids": (2, 128)}),
        ("Kind", {"image_size": 8}, {"input_ids": (2, 128), "pixel_values": (2, 3, 8, 8)}),
        ("Kind", {"image_size": 8, "image_token_id": 5}, {"input_ids": (2, 128)}),
        ("Kind", {"image_size": 8, "image_token_index": 5}, {"input_ids": (2, 128)}),
        (
            "Images",
            {"image_size": 8, "image_token_id": 5},
            {"pixel_values": (2, 3, 8, 8), "input_ids": (2, 128)},
        ),
    ],
)
def test_the_inputs_are_those_that_a_random_text_goes_with(
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    given: dict[str, int],
    expected: dict[str, tuple[int, ...]],
) -> None:
    config = Config(architectures=[kind], vocab_size=9, **given)
    assert of_folder(monkeypatch, config)[1] == expected
    assert of_folder(monkeypatch, config, None)[1] == {}, "--input replaces them"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            Config(architectures=None),
            'config.json has no "architectures"; add the class, such as ["LlamaForCausalLM"]',
        ),
        (
            Config(architectures=["Other"]),
            "its architecture is Other, which transformers 4.57.3 does not have",
        ),
        (
            ValueError("It contains custom code.\nPlease pass `trust_remote_code=True`."),
            "It contains custom code.; make the model in a factory of your own: try FILE.py:make",
        ),
        (ValueError("Unrecognized model.\nUpdate."), "Unrecognized model."),
        (
            ValueError("Should have a `model_type`, or contain one of these: " + "bert, " * 1000),
            "Should have a `model_type`",
        ),
    ],
)
def test_a_configuration_of_no_model_is_one_line(
    monkeypatch: pytest.MonkeyPatch, config: Config | Exception, message: str
) -> None:
    with pytest.raises(WorkloadError) as raised:
        of_folder(monkeypatch, config)
    assert str(raised.value) == f"folder: {message}"


# Small models, saved as on Hugging Face's hub: each is built and called.
SAVED = """
import json, sys
import torch
from torchcompile_suite.workloads import hugging_face, library

transformers = library(hugging_face.LIBRARY)
small = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 1}
small |= {"num_attention_heads": 4, "dtype": "bfloat16"}
text = {**small, "model_type": "llama", "num_key_value_heads": 2, "vocab_size": 99}
vision = {**small, "model_type": "clip_vision_model", "image_size": 32, "patch_size": 8}
layers = {"encoder_layers": 1, "decoder_layers": 1, "num_queries": 4}
configs = {
    "LlavaForConditionalGeneration": transformers.LlavaConfig(
        text_config=text, vision_config=vision, image_token_index=98
    ),
    "DetrForObjectDetection": transformers.DetrConfig(d_model=32, **layers),
    "XLNetLMHeadModel": transformers.XLNetConfig(
        vocab_size=99, d_model=32, n_layer=1, n_head=4, d_inner=37
    ),
}
for name, config in configs.items():
    config.architectures = [name]
    config.save_pretrained(name)
    model, inputs = hugging_face.of_folder(name, 2)
    given = inputs or {"pixel_values": torch.randn(2, 3, 64, 64)}
    with torch.no_grad():
        logits = model.eval()(**given).logits
    print(json.dumps([name, list(inputs), str(logits.dtype)]))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_saved_configurations_are_models_of_float32_without_a_download(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    environment = newest.with_apart(hugging_face.LIBRARY)
    variables = environment.variables(HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "hub"))
    done = environment.run("-c", SAVED, cwd=tmp_path, env=variables)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["LlavaForConditionalGeneration", ["input_ids"], "torch.float32"],
        ["DetrForObjectDetection", [], "torch.float32"],
        ["XLNetLMHeadModel", ["input_ids"], "torch.float32"],
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("DistilBertForMaskedLM", "eager"),
        pytest.param("llama_decode_static_cache", "inductor", marks=pytest.mark.nightly),
    ],
)
def test_a_model_is_measured_with_the_library_that_lies_apart(
    newest: ReleaseEnvironment, tmp_path: Path, name: str, backend: str
) -> None:
    environment = newest.with_apart(hugging_face.LIBRARY)
    cell = Cell(name, 1, "default", backend=backend, device="cpu")
    launch = environment.launch(Request(cell, "cold", str(tmp_path / "cache"), BRIEF))
    assert launch.outcome.ok, launch.outcome
    assert launch.preloaded == [hugging_face.LIBRARY], "timm would bring another huggingface-hub"
    assert launch.environment is not None
    pin = apart.read()[hugging_face.LIBRARY].pins[0]
    assert f"transformers=={launch.environment.packages['transformers']}" == pin
    assert launch.environment.packages["timm"], "the lock is as it was"
    assert launch.compiled is not None
    assert launch.compiled.graphs == 1
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
