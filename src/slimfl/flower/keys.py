"""Certificates for TLS and keys for node authentication; only owners can read private keys."""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP384R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
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
    """Write a certificate authority and a server certificate that it signed.

    Args:
        ca: The folder for the authority.
        server: The folder for the server.
        host: The name or address by which devices know the server.
    """
    authority, key = generate_private_key(SECP384R1()), generate_private_key(SECP384R1())
    name = "slimfl certificate authority"
    signing = x509.KeyUsage(
        **dict.fromkeys(
            ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
             "key_agreement", "encipher_only", "decipher_only"), False),
        key_cert_sign=True,
        crl_sign=True,
    )  # fmt: skip
    root = _certificate(
        name, authority, name, authority,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (signing, True),
        (x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), False),
    )  # fmt: skip
    known_as = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    certificate = _certificate(
        "slimfl SuperLink", key, name, authority,
        (_names(dict.fromkeys((host, *LOOPBACK))), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (known_as, False),
    )  # fmt: skip
    write_private(ca / "ca.key", _pem(authority))
    write_private(server / "superlink.key", _pem(key))
    (server / "superlink.crt").write_bytes(certificate)
    for folder in (ca, server):
        (folder / "ca.crt").write_bytes(root)


def write_node_key(folder: Path) -> None:
    """Write a device's key pair in the form that Flower reads."""
    key = generate_private_key(SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_private(folder / "node.key", private)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (folder / "node.pub").write_bytes(public + b"\n")


def write_loopback_certificate(certificate: Path, key: Path) -> None:
    """Write a self-signed certificate for a process that is only reached on loopback."""
    own, name = generate_private_key(SECP384R1()), "slimfl device"
    write_private(key, _pem(own))
    certificate.write_bytes(_certificate(name, own, name, own, (_names(LOOPBACK), False)))


def read_public_key(path: Path) -> bytes:
    """A device's public key in the form for registration."""
    try:
        key = load_ssh_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise RequestError(
            f"{path} is not a public key ({error}); copy it again from the device's folder"
        ) from None
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _certificate(
    name: str,
    key: EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: EllipticCurvePrivateKey,
    *extensions: tuple[x509.ExtensionType, bool],
) -> bytes:
    """A certificate of `key`, signed by the issuer; extensions are marked critical or not."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
        key.public_key(),
        x509.random_serial_number(),
        now - day,  # the clocks of devices may be slow
        now + 365 * YEARS * day,
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA384()).public_bytes(Encoding.PEM)


def _names(hosts: Sequence[str] | dict[str, None]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(host) for host in hosts])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
