"""Trusted certificates of a client: read once per process, and again where the environment names others."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.models.client import client, profiles

UNTRUSTED = Path(__file__).parents[1] / "untrusted.pem"


@pytest.fixture(autouse=True)
def _as_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clears the cache and the environment variables."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    client._trusted.cache_clear()
    yield
    client._trusted.cache_clear()


def test_the_second_client_reads_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients of a process share the certificates that the first one read."""
    read: list[ssl.SSLContext] = []
    real = client.httpx2.create_ssl_context

    def counted() -> ssl.SSLContext:
        read.append(real())
        return read[-1]

    monkeypatch.setattr(client.httpx2, "create_ssl_context", counted)
    for _ in range(2):
        client.Client("http://127.0.0.1:9", "key", profiles.PROFILES["openai"])
    assert client.trusted() is read[0]
    assert len(read) == 1


def test_other_certificates_are_trusted_once_the_environment_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates named by the environment replace the earlier ones, which return when the variable is removed."""
    before = client.trusted()
    monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))
    named = client.trusted()
    assert named is not before
    assert len(named.get_ca_certs()) <= 1 < len(before.get_ca_certs())
    monkeypatch.delenv("SSL_CERT_FILE")
    assert client.trusted() is before
