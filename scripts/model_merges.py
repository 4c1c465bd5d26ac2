"""Makes runtime/messages/merges.bin, by which tokens are estimated, from the first merges of the tokenizer's list.

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
"""Number of merges that are kept: a quarter of all, in a seventh of the size. docs/models.md says how close the estimates are."""


def listed(text: str) -> list[bytes]:
    """Return the tokens of a ``.tiktoken`` file, by rank."""
    ranked = [line.split() for line in text.splitlines() if line.strip()]
    return [base64.b64decode(token) for token, _ in sorted(ranked, key=lambda each: int(each[1]))]


def main() -> None:
    """Write the file of the package."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ranks", type=pathlib.Path, help="o200k_base.tiktoken")
    data = tokens.packed(listed(parser.parse_args().ranks.read_text(encoding="ascii"))[:FIRST])
    tokens.MERGES.write_bytes(data)
    print(f"{tokens.MERGES.relative_to(ROOT)}: {FIRST} merges, {len(data)} bytes")


if __name__ == "__main__":
    main()
