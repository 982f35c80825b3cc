"""Identifiers made by other means than the package's own: known vectors, and random ones."""

import base64
import hashlib
import random
import string
import struct
import uuid

from Crypto.Hash import keccak
from Crypto.PublicKey import ECC
from Crypto.Util.number import isPrime

KNOWN = {
    "md5": ["2f6b8d1c90e4a7353b1e64d7f08a5c92", "83A5EF2C9D0B3E71F6A8C3D25B190E47"],
    "sha1": ["08e6a90dc43c2bd0c80f21d90ea44f1e75ab1506"],
    "sha256": ["82cab51240f007318177bd6059258a10491b9a50b67870d99208604cbc0b6c9e"],
    "sha512": [hashlib.sha512(b"a book").hexdigest()],
    # ERC-55's own examples, then one in each single case.
    "ethereum": [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        "0x52908400098527886E0F7030069857D2E4169EE7",
    ],
    "serial_version_uid": [
        "serialVersionUID = 6146619729108124872L",
        "serialVersionUID = -6849794470754667710L",
        "serialVersionUID = 362498820763181265L",
        "serialVersionUID   =\t362498820763181265L",
    ],
    "uuid": [
        "f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
        "5DF41881-3AED-3515-88A7-2F4A814CF09E",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    ],
    "wheel_digest": ["sha256=bzlbE_6h9nQNCzfoWYzlmDjVEPdFKuc__odw8fKWkFI"],
    "npm_digest": [
        "sha1-IMlKtdmqaD6kuZnd9hbX6mcmj3M=",
        "sha256-bzlbE/6h9nQNCzfoWYzlmDjVEPdFKuc//odw8fKWkFI=",
        "sha512-" + base64.b64encode(hashlib.sha512(b"a book").digest()).decode(),
    ],
    # The public key of test 1 in RFC 8032.
    "ssh_ed25519": [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea"
    ],
    "ssh_rsa": [],
    "bitcoin_base58": ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3P14159f73E4gFr7JterCCQh9QjiTjiZrG"],
    # BIP-173 and BIP-350.
    "bitcoin_bech32": [
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
    ],
    "short_url": ["https://bit.ly/3xK9aQz", "http://goo.gl/aB3dEf", "https://youtu.be/dQw4w9WgXcQ"],
    "git_short_hash": ["commit 83a5ef2", "Merge 1a2b7c4f5e"],
}

LOOK_ALIKES = {
    "md5": [
        "0" * 31 + "1",
        "12345678901234567890123456789012",
        "2F6b8d1c90e4a7353b1e64d7f08a5c92",
        "000102030405060708090a0b0c0d0e0f",
        "00112233445566778899aabbccddeeff",
        "0123456789abcdeffedcba9876543210",
        "fedcba98765432100123456789abcdef",
        "f0e1d2c3b4a5968778695a4b3c2d1e0f",
        "a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4",
        "abcdef0123456789abcdef0123456789",
        "d41d8cd98f00b204e9800998ecf8427e",
        "9E107D9D372BB6826BD81D3542A419D6",
        "7dec11d0f81d11e8a76500a0c91e6bf6",
        "68656c6c6f2074686572652c20796f75",
        "83a5ef2c9d0b3e71f6a8c3d25b100000",
    ],
    "sha1": [
        "0123450123450123450123450123450123450123",
        "1234567890" * 4,
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    ],
    "sha256": ["ab" * 32, hashlib.sha256(b"test").hexdigest()],
    "sha512": ["0123" * 32, hashlib.sha512(b"").hexdigest()],
    "ethereum": [
        "0x" + "0" * 40,
        "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0x" + "1234567890" * 4,
    ],
    "serial_version_uid": [
        "serialVersionUID = 9999999999999999999L",
        "serialVersionUID = 0123456789012345678L",
        "serialVersionUID = 1111111111111111111L",
    ],
    "uuid": [
        "00000000-0000-4000-8000-000000000001",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "12345678-1234-4234-8234-123456789abc",
        "550e8400-e29b-41d4-a716-446655440000",
        "f81d4fae-7dec-41d0-c765-00a0c91e6bf6",
        "f81d4fae-7dec-41d0-A765-00a0c91e6bf6",
    ],
    "wheel_digest": ["sha256=bzlbE_6h9nQNCzfoWYzlmDjVEPdFKuc__odw8fKWkFB", "sha256=" + "A" * 43],
    "npm_digest": ["sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwl=", "sha1-" + "A" * 27 + "="],
    "ssh_ed25519": [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ec",
    ],
    "ssh_rsa": [
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAgyh",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC",
    ],
    "bitcoin_base58": [
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"[:-1] + "U",
    ],
    "bitcoin_bech32": [
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
        "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3j0w4",
        "bc1pdwrtyullxn7wr8ttsp807k3l2ar6mf825gh36jwqrefdmdu8td9ss4czav",  # no point of the curve
    ],
    "short_url": [
        "https://bit.ly/my-talk",
        "https://bit.ly/abcdefg",
        "https://youtu.be/dQw4w9WgXcR",
    ],
    "git_short_hash": ["commit defaced", "commit 1234567"],
}


def rsa_key(rng, bits=1024):
    """A real key: the product of two primes with their two leading bits set, as OpenSSL makes
    them.
    """
    modulus = 1
    while modulus.bit_length() < bits:
        number = rng.getrandbits(bits // 2) | 3 << (bits // 2 - 2) | 1
        modulus *= number if isPrime(number, randfunc=rng.randbytes) else 1
    parts = (b"ssh-rsa", (65537).to_bytes(3), modulus.to_bytes(bits // 8 + 1))
    blob = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    return f"ssh-rsa {base64.b64encode(blob).decode()}"


def _checksum_address(rng):
    digits = rng.randbytes(20).hex()
    mask = keccak.new(digest_bits=256, data=digits.encode()).hexdigest()
    return "0x" + "".join(
        d.upper() if int(m, 16) > 7 else d for d, m in zip(digits, mask, strict=False)
    )


def _serial(rng):
    while True:
        number = struct.unpack(">q", rng.randbytes(8))[0]
        if abs(number) >= 10**14:
            return f"serialVersionUID = {number}L"


def _link(rng):
    while True:
        code = "3" + "".join(rng.choices(string.ascii_letters + string.digits, k=6))
        if any(map(str.islower, code)) and any(map(str.isupper, code)):
            return f"https://bit.ly/{code}"


def _short_hash(rng):
    while True:
        digits = hashlib.sha1(rng.randbytes(9)).hexdigest()[:8]
        if not digits.isdigit() and not digits.isalpha():
            return f"commit {digits}"


def _ed25519(rng):
    key = ECC.construct(curve="Ed25519", seed=rng.randbytes(32))
    return key.public_key().export_key(format="OpenSSH").strip()


def _base58_address(rng):
    payload = b"\0" + rng.randbytes(20)
    data = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, letters = int.from_bytes(data), []
    alphabet = [
        c
        for c in string.digits + string.ascii_uppercase + string.ascii_lowercase
        if c not in "0OIl"
    ]
    while number:
        number, at = divmod(number, 58)
        letters.append(alphabet[at])
    return "1" * (25 - len(data.lstrip(b"\0"))) + "".join(reversed(letters))


def _bech32_address(rng):
    """Version 0, after the reference of BIP-173."""
    letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    bits = "".join(f"{byte:08b}" for byte in rng.randbytes(20))
    values = [0] + [int(bits[at : at + 5], 2) for at in range(0, 160, 5)]

    def rest(code):
        state = 1
        for value in code:
            top = state >> 25
            state = ((state & 0x1FFFFFF) << 5) ^ value
            for at, term in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
                state ^= term * (top >> at & 1)
        return state

    check = rest([3, 3, 0, 2, 3, *values, 0, 0, 0, 0, 0, 0]) ^ 1
    return "bc1" + "".join(
        letters[v] for v in [*values, *(check >> 5 * (5 - at) & 31 for at in range(6))]
    )


RANDOM = {
    "md5": lambda rng: hashlib.md5(rng.randbytes(9)).hexdigest(),
    "sha1": lambda rng: hashlib.sha1(rng.randbytes(9)).hexdigest().upper(),
    "sha256": lambda rng: hashlib.sha256(rng.randbytes(9)).hexdigest(),
    "sha512": lambda rng: hashlib.sha512(rng.randbytes(9)).hexdigest(),
    "ethereum": _checksum_address,
    "serial_version_uid": _serial,
    "uuid": lambda rng: str(uuid.UUID(bytes=rng.randbytes(16), version=4)),
    "wheel_digest": lambda rng: (
        "sha256=" + base64.urlsafe_b64encode(rng.randbytes(32)).decode()[:-1]
    ),
    "npm_digest": lambda rng: "sha512-" + base64.b64encode(rng.randbytes(64)).decode(),
    "ssh_ed25519": _ed25519,
    "ssh_rsa": rsa_key,
    "bitcoin_base58": _base58_address,
    "bitcoin_bech32": _bech32_address,
    "short_url": _link,
    "git_short_hash": _short_hash,
}


def random_ones(kind, count, seed=0):
    """True identifiers of a kind, drawn without the package."""
    rng = random.Random(f"{kind} {seed}")
    return [RANDOM[kind](rng) for _ in range(count)]
