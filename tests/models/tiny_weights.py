"""Weights small enough to make on the spot: a folder as the Hub keeps it, a GGUF file, wheels."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import gguf
import torch
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from sidecar_core.models.registry import WheelModel, WheelPart
from tests.toy_tokenizers import toy_tokenizer

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
}


def tiny_network(seed: int = 0, vocab: int = 448, layers: int = 2, **more: object):  # type: ignore[no-untyped-def]
    """A random Qwen2, with weights of a size that gives distinct distributions."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        **{
            "vocab_size": vocab,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "initializer_range": 0.2,
            "tie_word_embeddings": False,
            **more,
        }
    )
    return Qwen2ForCausalLM(config).eval()


def save_folder(
    folder: Path, tokenizer: PreTrainedTokenizerFast | None = None, seed: int = 0, **more: object
) -> Path:
    """A model folder as the Hub keeps it."""
    tokenizer = tokenizer or toy_tokenizer()
    network = tiny_network(seed, **more)  # type: ignore[arg-type]
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_gguf(path: Path, seed: int = 0, tied: bool = False) -> Path:
    """A Qwen2 GGUF file with 8-bit blocks, a tokenizer and a chat template."""
    tokenizer = toy_tokenizer()
    network = tiny_network(seed, tie_word_embeddings=tied)
    config = network.config
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)  # type: ignore[arg-type]
    added = tokenizer.get_added_vocab()
    control = {*added, "<|endoftext|>"}
    kinds = gguf.TokenType
    vocabulary += [f"[PAD{i}]" for i in range(len(vocabulary), config.vocab_size - 1)]
    vocabulary.append("<|endoftext|>")  # which every Qwen tokenizer must have
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([kinds.CONTROL if t in control else kinds.NORMAL for t in vocabulary])
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    writer.add_token_merges([" ".join(pair) for pair in backend["model"]["merges"]])
    writer.add_bos_token_id(added["<|bos|>"])
    writer.add_eos_token_id(added["<|bos|>"])  # as if it were end-of-text, not end-of-turn
    writer.add_chat_template(tokenizer.chat_template or "")
    for name, tensor in network.state_dict().items():
        if tied and name == "lm_head.weight":
            continue
        for theirs, ours in GGUF_NAMES.items():
            name = name.replace(theirs, ours)
        values = tensor.numpy()
        kind = gguf.GGMLQuantizationType.Q8_0 if values.ndim == 2 else None
        if kind is not None:
            values = gguf.quantize(values, kind)
        writer.add_tensor(name, values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def save_wheel(folder: Path, name: str, member: str, data: bytes) -> Path:
    """A wheel of version 1.0 that holds `data` under `name`/`member`, as pip wants it."""
    folder.mkdir(parents=True, exist_ok=True)
    package, info = name.replace("-", "_"), f"{name.replace('-', '_')}-1.0.dist-info"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    files = {
        f"{package}/__init__.py": b"raise RuntimeError('weights are data, not code')\n",
        f"{package}/{member}": data,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        "Requires-Dist: a-dependency-that-must-not-be-fetched\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(file, content)
    return path


def wheel_model(folder: Path, data: bytes, parts: int = 3, name: str = "weights") -> WheelModel:
    """`data` cut into wheels that lie in `folder`, and where the registry would say it is."""
    size = -(-len(data) // parts)
    slices = [data[i * size : (i + 1) * size] for i in range(parts)]
    for number, piece in enumerate(slices, 1):
        save_wheel(folder, f"{name}-part{number}", f"data/part{number:02d}.bin", piece)
    return WheelModel(
        file_name=f"{name}.gguf",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        parts=tuple(
            WheelPart(f"{name}-part{n}==1.0", f"{name}_part{n}/data/part{n:02d}.bin")
            for n in range(1, parts + 1)
        ),
    )
