"""A sentence embedder behind the embeddings interface of OpenAI, on loopback. Its last line of output is the URL, with /v1.

The weights are those of all-MiniLM-L6-v2 (384 dimensions, Apache-2.0) in the package of requirements.txt; numpy computes the vectors.
A text takes 10 to 30 ms on one processor. The process ends when its standard input is closed.
"""
import io
import json
import os
import struct
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

import numpy as np
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH, MAX_TOKENS, BATCH, MAX_BODY = 6, 12, 384, 192, 32, 8 << 20


class MiniLm:
    def __init__(self) -> None:
        model = zipfile.ZipFile(io.BytesIO((files("all_minilm_l6_v2") / "model.zip").read_bytes()))
        self.weights = read_safetensors(model.read("model.safetensors"))
        self.tokenizer = Tokenizer.from_str(model.read("tokenizer.json").decode())
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts):
        """Unit vectors, shape (len(texts), 384), and the number of tokens read."""
        tokens = [self.tokenizer.encode(text).ids for text in texts]
        out = np.zeros((len(texts), WIDTH), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            length = max(len(tokens[i]) for i in batch)
            ids, mask = np.zeros((2, len(batch), length), np.int64)
            for row, i in enumerate(batch):
                ids[row, : len(tokens[i])], mask[row, : len(tokens[i])] = tokens[i], 1
            out[batch] = self._forward(ids, mask)
        return out, sum(map(len, tokens))

    def _forward(self, ids, mask):
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        hidden = ((1 - mask) * -1e9)[:, None, None, :].astype(np.float32)
        for layer in range(LAYERS):
            x = self._layer(x, hidden, f"encoder.layer.{layer}.")
        counted = mask[:, :, None].astype(np.float32)
        mean = (x * counted).sum(1) / counted.sum(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _layer(self, x, hidden, at):
        rows, length, _ = x.shape
        split = lambda y: y.reshape(rows, length, HEADS, -1).transpose(0, 2, 1, 3)
        query, key, value = (split(self._dense(x, f"{at}attention.self.{name}")) for name in ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS)) + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        context = (scores / scores.sum(-1, keepdims=True) @ value).transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
        x = self._norm(self._dense(context, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
        inner = gelu(self._dense(x, f"{at}intermediate.dense"))
        return self._norm(self._dense(inner, f"{at}output.dense") + x, f"{at}output.LayerNorm")

    def _dense(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return (scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]).astype(np.float32)


def read_safetensors(data):
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[8 + size + start : 8 + size + end], np.float32).reshape(entry["shape"])
    return tensors


def gelu(x):
    """x times the normal distribution function; erf by Abramowitz and Stegun 7.1.26, error below 1.5e-7."""
    z = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + 0.3275911 * z)
    poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return (0.5 * x * (1 + np.sign(x) * (1 - poly * np.exp(-z * z)))).astype(np.float32)


def handler(model):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self._answer(200 if self.path == "/healthz" else 404, {"status": "ok"})

        def do_POST(self):
            size = int(self.headers.get("content-length", "0"))
            if self.path != "/v1/embeddings" or size > MAX_BODY:
                return self._answer(404 if size <= MAX_BODY else 413, {"error": {"message": "no such route, or the body is too large"}})
            try:
                body = json.loads(self.rfile.read(size))
                texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
                if not texts or not all(isinstance(text, str) and text for text in texts):
                    raise ValueError("input must be a text or a list of texts, none of them empty")
            except (ValueError, KeyError, TypeError) as error:
                return self._answer(400, {"error": {"message": f"bad request: {error}"}})
            vectors, tokens = model.embed(texts)
            data = [{"object": "embedding", "index": i, "embedding": [round(float(v), 7) for v in vector]} for i, vector in enumerate(vectors)]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            self._answer(200, {"object": "list", "model": body.get("model", "all-MiniLM-L6-v2"), "data": data, "usage": usage})

        def _answer(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            try:
                self.wfile.write(data)
            except ConnectionError:
                self.close_connection = True  # the caller did not wait

        def log_message(self, *_):
            pass

    return Handler


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(MiniLm()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    sys.stdin.read()
    os._exit(0)  # without waiting for a request in work


if __name__ == "__main__":
    main()
