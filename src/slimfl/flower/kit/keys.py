"""Certificates for TLS and keys for node authentication; only owners can read private keys."""

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from slimfl.errors import RequestError

#: Validity of certificates.
YEARS = 5

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def write_private(path: Path, contents: bytes) -> None:
    """Write a file that only its owner can read at any time."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(contents)


def write_authority_and_server(ca: Path, server: Path, host: str) -> None:
    """Write a certificate authority and a server certificate for `host` that it signed."""
    ca_key, ca_certificate = _authority()
    write_private(ca / "ca.key", _pem(ca_key))
    key = ec.generate_private_key(ec.SECP384R1())
    names = [_general_name(name) for name in dict.fromkeys((host, *LOOPBACK))]
    certificate = (
        _builder("slimfl SuperLink", ca_certificate.subject, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA384())
    )
    write_private(server / "superlink.key", _pem(key))
    (server / "superlink.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    for folder in (ca, server):
        (folder / "ca.crt").write_bytes(ca_certificate.public_bytes(Encoding.PEM))


def write_node_key(folder: Path) -> None:
    """Write a device's key pair in the form that Flower reads."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_private(folder / "node.key", private)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (folder / "node.pub").write_bytes(public + b"\n")


def write_loopback_certificate(certificate: Path, key: Path) -> None:
    """Write a self-signed certificate for a process that is only reached on loopback."""
    own = ec.generate_private_key(ec.SECP256R1())
    name = "slimfl device"
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([_general_name(one) for one in LOOPBACK])
    signed = _builder(name, subject, own).add_extension(names, critical=False)
    write_private(key, _pem(own))
    pem = signed.sign(own, hashes.SHA256()).public_bytes(Encoding.PEM)
    certificate.write_bytes(pem)


def read_public_key(path: Path) -> bytes:
    """A device's public key in the form for registration."""
    try:
        key = load_ssh_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise RequestError(
            f"{path} is not a public key ({error}); copy it again from the device's folder"
        ) from None
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP384R1())
    name = "slimfl certificate authority"
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )
    return key, certificate


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # the clocks of devices may be slow
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
