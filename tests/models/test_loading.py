"""Claims about loading a pair from folders and GGUF files; transformers' own load is the oracle."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    FalconConfig,
    MistralConfig,
    PreTrainedConfig,
    T5Config,
)

from sidecar_core.__main__ import main
from sidecar_core.decoding.engine import Engine
from sidecar_core.errors import SidecarError
from sidecar_core.events import LoadProgress
from sidecar_core.models import convert, loading
from sidecar_core.models.cache import silent
from sidecar_core.models.kernels.attention import NAME
from sidecar_core.models.loading import load_network, load_pair, load_plain
from sidecar_core.models.registry import pair_spec
from sidecar_core.models.sources import resolve
from sidecar_core.report import RunReport
from sidecar_core.settings import RunSettings
from tests.models.tiny_weights import save_folder, save_gguf
from tests.toy_tokenizers import CORPUS, toy_tokenizer

SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 64}
IDS = torch.arange(30)[None]
SPREAD_REST = ("model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb", "lm_head")
ARTICLES = Path(__file__).parents[2] / "assets" / "examples"


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(tmp_path_factory.mktemp("gguf") / "Tiny-Q8_0.gguf")


@pytest.fixture(scope="session")
def converted(gguf_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which `gguf_file` has been converted to fp32."""
    folder = tmp_path_factory.mktemp("converted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDECAR_CACHE", str(folder))
        load_pair(f"{gguf_file},{gguf_file}", precision="fp32")
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return save_folder(tmp_path / "target"), save_folder(tmp_path / "draft", seed=1, layers=1)


def logits(network: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return network(input_ids=IDS).logits


def test_a_pair_of_folders_gives_what_transformers_gives(folders: tuple[Path, Path]) -> None:
    seen: list[LoadProgress] = []
    pair = load_pair(f"{folders[0]},{folders[1]}", precision="fp32", progress=seen.append)
    for model, folder in zip((pair.target, pair.draft), folders, strict=True):
        plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        torch.testing.assert_close(logits(model.network), logits(plain), atol=1e-5, rtol=1e-4)
        assert not model.network.training
        assert not any(p.requires_grad for p in model.network.parameters())
        assert model.network.config._attn_implementation == NAME
        assert model.precision == "fp32"
        assert model.name == folder.name
    assert pair.target.fingerprint != pair.draft.fingerprint
    said = [p.message for p in seen if not p.message.startswith("Timing")]
    assert said[-2:] == ["Loading target", "Loading draft"]
    plain_tokenizer = AutoTokenizer.from_pretrained(folders[0])
    for text in CORPUS:
        assert pair.tokenizer(text)["input_ids"] == plain_tokenizer(text)["input_ids"]


def test_plain_networks_are_transformers_own(folders: tuple[Path, Path]) -> None:
    for network, folder in zip(load_plain(f"{folders[0]},{folders[1]}"), folders, strict=True):
        plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        assert network.config._attn_implementation == "sdpa"
        assert torch.equal(logits(network), logits(plain))


def test_widths_may_differ(tmp_path: Path) -> None:
    wide = save_folder(tmp_path / "wide", vocab=448)
    narrow = save_folder(tmp_path / "narrow", vocab=430)
    pair = load_pair(f"{wide},{narrow}", precision="fp32")
    assert (pair.target.vocab_size, pair.draft.vocab_size, pair.vocab_size) == (448, 430, 430)


def test_the_fingerprint_is_the_same_after_a_move_and_another_for_other_weights(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    first = load_pair(f"{folders[0]},{folders[1]}", precision="fp32")
    moved = shutil.copytree(folders[0], tmp_path / "moved")
    again = load_pair(f"{moved},{folders[1]}", precision="fp32")
    assert again.target.fingerprint == first.target.fingerprint
    weights = load_file(moved / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"] * 2
    save_file(weights, moved / "model.safetensors", metadata={"format": "pt"})
    other = load_pair(f"{moved},{folders[1]}", precision="fp32")
    assert other.target.fingerprint != first.target.fingerprint


def test_a_gguf_file_loads_as_transformers_loads_it(
    gguf_file: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIDECAR_CACHE", str(converted))
    pair = load_pair(f"{gguf_file},{gguf_file}", precision="fp32")
    options = {"gguf_file": gguf_file.name}
    plain = AutoModelForCausalLM.from_pretrained(
        gguf_file.parent, dtype=torch.float32, attn_implementation=NAME, **options
    )
    ours = dict(pair.target.network.named_parameters())
    assert ours.keys() == dict(plain.named_parameters()).keys()
    for name, weight in plain.named_parameters():
        assert torch.equal(ours[name], weight), name
    torch.testing.assert_close(logits(pair.target.network), logits(plain), atol=1e-5, rtol=1e-4)
    output, embedding = (
        module.weight
        for module in (pair.target.network.lm_head, pair.target.network.model.embed_tokens)
    )
    assert output.data_ptr() != embedding.data_ptr()
    tokenizer = AutoTokenizer.from_pretrained(gguf_file.parent, **options)
    assert pair.tokenizer.chat_template == tokenizer.chat_template == toy_tokenizer().chat_template
    assert pair.tokenizer.get_vocab() == tokenizer.get_vocab()
    for text in [*CORPUS, "<|start|>user\nné 日本 🎈<|end|>", "  two  spaces\t1234"]:
        ids = pair.tokenizer(text)["input_ids"]
        assert ids == tokenizer(text)["input_ids"]
        assert pair.tokenizer.decode(ids) == tokenizer.decode(ids)


def test_a_text_ends_with_the_files_end_token_and_with_the_end_of_turn(
    gguf_file: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIDECAR_CACHE", str(converted))
    pair = load_pair(f"{gguf_file},{gguf_file}", precision="fp32")
    named = {pair.tokenizer.convert_tokens_to_ids(t) for t in ("<|bos|>", "<|end|>")}
    assert pair.target.eos_ids == pair.draft.eos_ids == named
    assert pair.target.network.generation_config.eos_token_id in named


def test_a_second_load_converts_nothing(
    gguf_file: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIDECAR_CACHE", str(converted))
    monkeypatch.setattr(convert, "_run_worker", None)
    load_pair(f"{gguf_file},{gguf_file}", precision="fp32")


def test_a_copy_of_the_file_elsewhere_is_the_same_model(
    gguf_file: Path, converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIDECAR_CACHE", str(converted))
    monkeypatch.setattr(convert, "_run_worker", None)
    copy = shutil.copy(gguf_file, tmp_path / gguf_file.name)
    load_pair(f"{copy},{copy}", precision="fp32")


@pytest.mark.parametrize("harm", ["cut", "one byte", "no marker", "foreign", "file gone"])
def test_a_damaged_cache_entry_is_never_taken_for_a_whole_one(
    gguf_file: Path, converted: Path, cache: Path, harm: str
) -> None:
    shutil.copytree(converted, cache)
    spec = pair_spec(f"{gguf_file},{gguf_file}").target
    weights = resolve(spec, silent)
    folder = convert.converted_folder(weights, "fp32")
    assert convert.is_converted(weights, "fp32")
    tensors = folder / "model.safetensors"
    good = tensors.read_bytes()
    if harm == "cut":
        tensors.write_bytes(good[:-100])
    elif harm == "one byte":
        tensors.write_bytes(good[:-100] + b"\x55" + good[-99:])
        os.utime(tensors, ns=(1, tensors.stat().st_mtime_ns + 1))
    elif harm == "no marker":
        (folder / convert.MARKER).unlink()
    elif harm == "foreign":
        marker = json.loads((folder / convert.MARKER).read_text())
        (folder / convert.MARKER).write_text(json.dumps(marker | {"source": "sha256:other"}))
    else:
        (folder / "tokenizer.json").unlink()
    assert not convert.is_converted(weights, "fp32")


@pytest.mark.slow
def test_a_damaged_cache_entry_is_made_again(gguf_file: Path, converted: Path, cache: Path) -> None:
    shutil.copytree(converted, cache)
    weights = resolve(pair_spec(f"{gguf_file},{gguf_file}").target, silent)
    folder = convert.converted_folder(weights, "fp32")
    good = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(good[:-100])
    (folder.with_name(folder.name + ".tmp")).mkdir()  # as a killed process leaves it
    convert.convert(weights, "fp32", silent)
    assert (folder / "model.safetensors").read_bytes() == good
    assert convert.is_converted(weights, "fp32")
    assert [f.name for f in folder.parent.iterdir()] == [folder.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "told"),
    [(b"", "is not a GGUF file"), (b"PK\x03\x04", "is not a GGUF file"), (None, "cannot be read")],
)
def test_a_damaged_gguf_file_is_one_clear_line_and_leaves_nothing(
    gguf_file: Path, tmp_path: Path, cache: Path, data: bytes | None, told: str
) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(gguf_file.read_bytes()[:40_000] if data is None else data)
    with pytest.raises(SidecarError, match=told) as error:
        load_pair(f"{bad},{bad}", precision="fp32")
    assert "\n" not in str(error.value)
    assert not list((cache / "models").glob("*"))


@pytest.mark.slow
def test_a_stopped_conversion_ends_at_once_and_leaves_nothing(
    gguf_file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Exception):
        pass

    def stop(progress: LoadProgress) -> None:
        if progress.done:
            raise Stop

    workers: list[subprocess.Popen[str]] = []
    original = subprocess.Popen

    def watched(*args, **more):  # type: ignore[no-untyped-def]
        workers.append(original(*args, **more))
        return workers[-1]

    monkeypatch.setattr(convert.subprocess, "Popen", watched)
    with pytest.raises(Stop):
        load_pair(f"{gguf_file},{gguf_file}", precision="fp32", progress=stop)
    assert [worker.poll() for worker in workers] == [-signal.SIGKILL]
    assert not list((cache / "models").glob("*"))


@pytest.mark.slow
def test_on_a_machine_with_a_gpu_the_cpus_form_can_be_fetched(
    gguf_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    pair = f"{gguf_file},{gguf_file}"
    assert main(["fetch", pair, "--precision", "int8"]) == 2
    assert "int8 runs on the CPU only" in capsys.readouterr().err
    assert main(["fetch", pair, "--precision", "int8", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ready"] is True
    assert convert.is_converted(resolve(pair_spec(pair).target, silent), "int8")


ODD_WORKER = """
import sys
from sidecar_core.models import convert_worker
def odd(*_):
    raise KeyError("rope_theta")
convert_worker.work = odd
convert_worker.main(*sys.argv[3:])
"""


@pytest.mark.parametrize(
    ("worker", "told"),
    [
        (f"exec {sys.executable} -c '{ODD_WORKER}' \"$@\"", r"failed \(KeyError: 'rope_theta'\);"),
        ("kill -9 $$", r"cut off \(exit code -9\), most likely for lack of memory"),
        ("exit 137", r"cut off \(exit code 137\), most likely for lack of memory"),
        ("echo MemoryError >&2; exit 1", r"cut off .*, most likely for lack of memory"),
        ("printf 'Traceback:\\n  line 1\\nImportError: no torch\\n' >&2; exit 1",
         r"failed \(ImportError: no torch\); fetch the model again"),
        ("exit 3", r"failed \(exit code 3\)"),
    ],
)  # fmt: skip
def test_how_a_conversion_ended_is_told(
    gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: str, told: str
) -> None:
    shell = tmp_path / "python"
    shell.write_text(f"#!/bin/sh\n{worker}\n")
    shell.chmod(0o700)
    monkeypatch.setattr(convert.sys, "executable", str(shell))
    with pytest.raises(SidecarError, match=told) as error:
        load_pair(f"{gguf_file},{gguf_file}", precision="fp32")
    assert "\n" not in str(error.value)


def test_tokenizers_that_differ_are_refused_with_an_example(tmp_path: Path) -> None:
    ours = save_folder(tmp_path / "ours")
    other = toy_tokenizer(added_in_vocabulary=True)
    theirs = save_folder(tmp_path / "theirs", other)
    with pytest.raises(SidecarError, match=r"tokenizers differ \(id \d+ is '.+' in the target's"):
        load_pair(f"{ours},{theirs}", precision="fp32")


def test_a_draft_too_narrow_for_the_tokenizers_special_tokens_is_refused(tmp_path: Path) -> None:
    ours = save_folder(tmp_path / "ours")
    narrow = save_folder(tmp_path / "narrow", vocab=300)
    with pytest.raises(SidecarError, match="knows only 300 tokens"):
        load_pair(f"{ours},{narrow}", precision="fp32")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"architectures": ["Qwen2ForTokenClassification"]}, "not a causal language model"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "full attention in every layer"),
        (MistralConfig(sliding_window=64, **SMALL).to_dict(), "sliding window of 64"),
        (FalconConfig(alibi=True, **SMALL).to_dict(), "columns of its cache"),
        ({**T5Config().to_dict(), "architectures": ["T5Model"]}, "not a causal language model"),
        ({"model_type": "no-such-model"}, "cannot be loaded"),
        ({"auto_map": {"AutoConfig": "evil.Config"}, "model_type": "evil"}, "cannot be loaded"),
    ],
)
def test_a_model_that_masks_would_break_is_refused(
    folders: tuple[Path, Path], change: dict[str, object], told: str
) -> None:
    file = folders[0] / "config.json"
    change = {**change, "architectures": change.get("architectures") or ["SomeForCausalLM"]}
    ran = folders[0] / "ran"
    (folders[0] / "evil.py").write_text(f"open({str(ran)!r}, 'w')")
    before = {} if "model_type" in change else json.loads(file.read_text())
    file.write_text(json.dumps({**before, **change}))
    with pytest.raises(SidecarError, match=told):
        load_pair(f"{folders[0]},{folders[1]}", precision="fp32")
    assert not ran.exists()


def test_a_model_that_masks_would_break_is_refused_before_it_is_converted(
    folders: tuple[Path, Path], cache: Path
) -> None:
    make_another_kind(MistralConfig(sliding_window=64, **SMALL), folders[0])
    with pytest.raises(SidecarError, match="sliding window of 64"):
        load_pair(f"{folders[0]},{folders[1]}", precision="int8")
    assert not (cache / "models").exists()


def test_a_model_that_masks_would_break_is_refused_once_its_file_is_unpacked(
    folders: tuple[Path, Path], gguf_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_another_kind(MistralConfig(sliding_window=64, **SMALL), folders[0])
    monkeypatch.setattr(loading, "convert", lambda *_: folders[0])
    with pytest.raises(SidecarError, match="sliding window of 64"):
        load_pair(f"{gguf_file},{gguf_file}", precision="int8")


def make_another_kind(config: PreTrainedConfig, folder: Path) -> None:
    """Make the model in `folder` one of another kind."""
    described = config.to_dict() | {"architectures": ["SomeForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(described))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_told_which(folders: tuple[Path, Path], file: str) -> None:
    (folders[1] / file).unlink()
    with pytest.raises(SidecarError, match=f"has no {file}"):
        load_pair(f"{folders[0]},{folders[1]}", precision="fp32")


def test_pickled_weights_are_never_read(folders: tuple[Path, Path]) -> None:
    file = folders[1] / "model.safetensors"
    torch.save(load_file(file), folders[1] / "pytorch_model.bin")
    file.unlink()
    with pytest.raises(SidecarError, match="safetensors"):
        load_pair(f"{folders[0]},{folders[1]}", precision="fp32")
    with pytest.raises(SidecarError, match="safetensors"):
        load_network(folders[1], "fp32", torch.device("cpu"))


def test_weights_that_lack_a_tensor_are_refused_rather_than_made_up(
    folders: tuple[Path, Path],
) -> None:
    weights = load_file(folders[0] / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folders[0] / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SidecarError, match=r"lack model\.layers\.1\.mlp\.up_proj\.weight"):
        load_pair(f"{folders[0]},{folders[1]}", precision="fp32")


def test_cut_safetensors_are_refused(folders: tuple[Path, Path]) -> None:
    file = folders[0] / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-500])
    with pytest.raises(SidecarError, match="cannot be loaded"):
        load_pair(f"{folders[0]},{folders[1]}", precision="fp32")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"precision": "int3"}, "no precision 'int3'; choose auto, fp32, bf16, int8"),
        ({"device": "warp"}, "no device 'warp'"),
        ({"device": "meta"}, "no device 'meta'"),
        ({"name": "nope"}, "no pair named 'nope'; choose one of auto, small, big, coder, smol"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_fetched(
    options: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "resolve", None)
    with pytest.raises(SidecarError, match=told):
        load_pair(**{"name": "coder", **options})  # type: ignore[arg-type]


def test_left_out_layers_are_those_named_and_the_rest_is_untouched(tmp_path: Path) -> None:
    folder = save_folder(tmp_path / "four", layers=4)
    whole = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    part = loading.load_network(folder, "fp32", torch.device("cpu"), without_layers=(1, 2))
    assert part.config.num_hidden_layers == len(part.model.layers) == 2
    assert [layer.self_attn.layer_idx for layer in part.model.layers] == [0, 1]
    for ours, theirs in ((0, 0), (1, 3)):
        ours_state = part.model.layers[ours].state_dict()
        for name, weight in whole.model.layers[theirs].state_dict().items():
            assert torch.equal(ours_state[name], weight)
    with torch.no_grad():
        step = part(input_ids=IDS, use_cache=True)
        assert len(step.cache.layers) == 2
        again = part(input_ids=IDS[:, :1], cache=step.cache, position_ids=torch.tensor([[30]]))
        whole_again = part(input_ids=torch.cat([IDS, IDS[:, :1]], 1))
    torch.testing.assert_close(again.logits[:, -1], whole_again.logits[:, -1], atol=1e-5, rtol=1e-4)


def overlap(ours: torch.nn.Module, theirs: torch.nn.Module, ids: torch.Tensor = IDS) -> float:
    """Mean Σ min(p, q) over all positions."""
    with torch.no_grad():
        p, q = (network(input_ids=ids).logits.softmax(-1) for network in (ours, theirs))
    return float(torch.minimum(p, q).sum(-1).mean())


@pytest.mark.slow
def test_a_folder_in_int8_is_converted_once_and_keeps_the_distribution(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{folders[0]},{folders[1]}"
    exact, pair = load_pair(name, precision="fp32"), load_pair(name, precision="int8")
    assert pair.target.precision == "int8"
    assert pair.target.fingerprint != exact.target.fingerprint
    assert pair.target.weight_bytes < 0.4 * exact.target.weight_bytes
    for ours, theirs in ((pair.target, exact.target), (pair.draft, exact.draft)):
        assert overlap(ours.network, theirs.network) > 0.9
        assert ours.eos_ids == theirs.eos_ids
    monkeypatch.setattr(convert, "_run_worker", None)
    again = load_pair(name, precision="int8")
    assert torch.equal(logits(again.target.network), logits(pair.target.network))


@pytest.mark.slow
def test_bf16_of_a_gguf_file_is_its_fp32_form_rounded(gguf_file: Path) -> None:
    pair = load_pair(f"{gguf_file},{gguf_file}", precision="bf16")
    plain = AutoModelForCausalLM.from_pretrained(
        gguf_file.parent, dtype=torch.float32, gguf_file=gguf_file.name
    )
    ours = dict(pair.target.network.named_parameters())
    for name, weight in plain.named_parameters():
        assert torch.equal(ours[name], weight.bfloat16()), name


@pytest.mark.slow
def test_weights_that_lack_a_tensor_are_not_converted(folders: tuple[Path, Path]) -> None:
    weights = load_file(folders[0] / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, folders[0] / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SidecarError, match=r"lacks model\.norm\.weight"):
        load_pair(f"{folders[0]},{folders[1]}", precision="int8")


@pytest.mark.slow
@pytest.mark.smol
def test_smol_in_int8_keeps_the_distribution_on_real_text(smol) -> None:  # type: ignore[no-untyped-def]
    article = ARTICLES / "seawater-heat.txt"
    quick = load_pair("smol", precision="int8", device="cpu")
    ids = smol.tokenizer(article.read_text("utf-8")[:2000], return_tensors="pt")["input_ids"]
    assert overlap(quick.target.network, smol.target.network, ids) > 0.95
    assert overlap(quick.draft.network, smol.draft.network, ids) > 0.95


@pytest.mark.coder
def test_coder_in_int8_keeps_the_distribution_on_real_text(coder) -> None:  # type: ignore[no-untyped-def]
    article = ARTICLES / "airport-bees.txt"
    quick = load_pair("coder", precision="int8", device="cpu")
    ids = coder.tokenizer(article.read_text("utf-8")[:1200], return_tensors="pt")["input_ids"]
    for ours, exact in ((quick.target, coder.target), (quick.draft, coder.draft)):
        assert overlap(ours.network, exact.network, ids) > 0.97
        assert ours.weight_bytes < 0.35 * exact.weight_bytes


@pytest.mark.smol
def test_smol_is_the_pinned_file_and_talks(smol) -> None:  # type: ignore[no-untyped-def]
    assert smol.vocab_size == 49_152
    assert smol.draft.network.config.num_hidden_layers == 28
    assert smol.target.eos_ids == smol.draft.eos_ids == {2}
    turns = [{"role": "user", "content": "What is the capital of France?"}]
    ids = smol.tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")
    said = smol.target.network.generate(**ids, max_new_tokens=12, do_sample=False)
    assert "Paris" in smol.tokenizer.decode(said[0, ids["input_ids"].shape[1] :])


def test_a_target_laid_over_several_places_decodes_as_one_in_one_place(
    folders: tuple[Path, Path],
) -> None:
    """There is one device here, so the second layer lies on the disk and comes when it is used."""
    target, draft = folders
    whole = load_pair(f"{target},{draft}", precision="fp32")
    places = {"model.layers.1": "disk", **dict.fromkeys(SPREAD_REST, "cpu")}
    network = load_network(target, "fp32", torch.device("cpu"), device_map=places)
    assert {p.device.type for p in network.parameters()} == {"cpu", "meta"}
    spread = dataclasses.replace(
        whole, target=dataclasses.replace(whole.target, network=network, fingerprint="spread")
    )
    settings = RunSettings(max_tokens=12, gamma=2)
    first, second = (
        RunReport.of(Engine(pair).stream("One or two words.", settings)) for pair in (whole, spread)
    )
    assert first.ids == second.ids
    assert first.alpha == pytest.approx(second.alpha, abs=1e-6)


def test_a_model_that_is_its_own_draft_is_loaded_once(folders: tuple[Path, Path]) -> None:
    pair = load_pair(f"{folders[0]},{folders[0]}", precision="fp32")
    assert pair.draft.network is pair.target.network
    settings = RunSettings(draft_prompt="identical", max_tokens=12, gamma=2)
    report = RunReport.of(Engine(pair).stream("One or two words.", settings))
    assert report.alpha == pytest.approx(1, abs=1e-5)


def test_a_target_cannot_be_spread_without_a_gpu(folders: tuple[Path, Path]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(SidecarError, match="no device 'spread' here"):
        load_pair(f"{folders[0]},{folders[1]}", device="spread")
