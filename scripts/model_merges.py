"""Makes runtime/messages/merges.bin from a copy of the tokenizer's list: the first merges, by which the tokens of a request are estimated.

    .venv/bin/python scripts/model_merges.py o200k_base.tiktoken

The file is the one that tiktoken downloads: on each line a token in base64 and its rank.
"""

import argparse
import base64
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.messages import tokens  # noqa: E402 — the root comes first

FIRST = 50_000
"""As many merges are kept: a quarter of them, in a seventh of the size; see docs/models.md for how close the estimates are."""


def listed(text: str) -> list[bytes]:
    """The tokens of a ``.tiktoken`` file, by rank."""
    ranked = [line.split() for line in text.splitlines() if line.strip()]
    return [base64.b64decode(token) for token, _ in sorted(ranked, key=lambda each: int(each[1]))]


def main() -> None:
    """Write the file that the package holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ranks", type=pathlib.Path, help="o200k_base.tiktoken")
    data = tokens.packed(listed(parser.parse_args().ranks.read_text(encoding="ascii"))[:FIRST])
    tokens.MERGES.write_bytes(data)
    print(f"{tokens.MERGES.relative_to(ROOT)}: {FIRST} merges, {len(data)} bytes")


if __name__ == "__main__":
    main()
