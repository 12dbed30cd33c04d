"""Certificates: one that signs itself, and an authority with one that it signs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey


def write_certificate(directory: Path, address: str = "127.0.0.1") -> None:
    """Write key.pem, and a self-signed certificate.pem that is valid for an IP address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(address)
    _write(directory, key, _signed(name, key, name, key, x509.IPAddress(ip_address(address))))


def write_certificate_of_authority(directory: Path, host: str) -> None:
    """Write authority.pem, and key.pem with a certificate.pem of it that is valid for a host."""
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name("authority")
    own = _signed(issuer, authority, issuer, authority, None)
    (directory / "authority.pem").write_bytes(own.public_bytes(Encoding.PEM))
    _write(directory, key, _signed(_name(host), key, issuer, authority, x509.DNSName(host)))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    subject: x509.Name,
    key: Key,
    issuer: x509.Name,
    authority: Key,
    valid_for: x509.GeneralName | None,
) -> x509.Certificate:
    """Return a certificate, which is that of an authority if it is valid for nothing."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    if valid_for is None:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
    else:
        builder = builder.add_extension(x509.SubjectAlternativeName([valid_for]), False)
    return builder.sign(authority, hashes.SHA256())


def _write(directory: Path, key: Key, certificate: x509.Certificate) -> None:
    (directory / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    (directory / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
