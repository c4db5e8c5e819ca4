"""Generated values for several tests: addresses, sizes and texts that are right, nearly right, or hostile."""

from __future__ import annotations

from hypothesis import strategies as st

ODD = (
    "\x00\x07\x1b\x1c\x7f\x85\t\n\r \u00a0\u200b\u2028\u202e\ufeff\ud800\udc80\udcff"
    "é€中１٣²\u212a\u0130$%{}()<>[]\"'`“”#@:;,/\\^|~!?&=+-_.*0159aAzZ"
)
"""Characters that parsers of addresses and sizes stumble over."""


@st.composite
def edited(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with up to three slips: a character too many, one too few, another one."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 1))
        text = text[:at] + draw(st.sampled_from(["", *ODD])) + text[at + cut :]
    return text


def ipv6_texts() -> st.SearchStrategy[str]:
    """IPv6 in all forms, of which many are none: words, ``::`` in any place, IPv4 tails, too many of each."""
    word = st.one_of(
        st.sampled_from(["0", "1", "ffff", "DB8", "00000", "", "g"]), st.from_regex("[0-9a-f]{1,4}", fullmatch=True)
    )
    tail = st.sampled_from(["1.2.3.4", "255.255.255.255", "256.1.1.1", "1.2.3", "01.2.3.4"])
    words = st.lists(st.one_of(word, word, word, tail), max_size=9).map(":".join)
    return st.one_of(
        st.ip_addresses(v=6).map(str),
        st.ip_addresses(v=6).map(lambda ip: ip.exploded),
        st.ip_addresses(v=4).map("::ffff:{}".format),
        words,
        st.builds("{}::{}".format, words, words),
    )


def hosts() -> st.SearchStrategy[str]:
    """Names and IPs, also in brackets, with a zone, in C's number forms."""
    ipv6 = ipv6_texts()
    return st.one_of(
        st.ip_addresses(v=4).map(str),
        st.sampled_from(
            ["node-7", "head.example.com.", "localhost", "127.1", "0x7f000001", "a" * 63, "a_b", "10.0.0.256"]
        ),
        st.from_regex("[a-z0-9_]([a-z0-9_-]{0,12}[a-z0-9_])?([.][a-z0-9]{1,8}){0,3}", fullmatch=True),
        ipv6,
        ipv6.map("[{}]".format),
        st.builds("{}%{}".format, ipv6, st.sampled_from(["eth0", "1", ""])),
        st.builds("[{}%{}]".format, ipv6, st.sampled_from(["eth0", "1", ""])),
    )


def endpoints() -> st.SearchStrategy[str]:
    """Hosts, most with a port, some of them no port."""
    port = st.one_of(st.integers(1, 65535), st.sampled_from([0, 65536, 99999]), st.sampled_from(["", "01", "x"]))
    return st.one_of(st.builds("{}:{}".format, hosts(), port), hosts())


def passwords() -> st.SearchStrategy[str]:
    """Passwords with what has a meaning in URLs, JSON and shells, each with letters that stand nowhere else."""
    part = st.one_of(
        st.sampled_from([":", "/", "://", "@", " ", "%40", "?", "#", ";", ",", '"', "'", "$x", "\\"]),
        st.text(max_size=3),
    )
    return st.lists(part, max_size=4).map(lambda parts: "Zq" + "Zq".join(parts) + "Zq")


_BEFORE_AND_BEHIND = st.sampled_from(
    [
        ("", ""),
        ("", ":6379/0"),
        ('"', '"'),
        ("{metadata_server:", ":8080/metadata}"),
        ('{"protocol": "tcp", "metadata_server": "', '/metadata"}'),
        ("MOONCAKE_TE_META_DATA_SERVER=", ""),
        ("etcd://10.0.0.1:2379;", ";10.0.0.3:2379"),
        ("http://u:Zq@10.0.0.1 ", ""),
    ]
)


def texts_with_password() -> st.SearchStrategy[str]:
    """Texts with a password, whose every part holds ``Zq``, in a URL or in the half of one."""
    schemes = st.sampled_from(
        ["http://", "https://", "redis://", "etcd://", "HTTP://", "bogus+x://", "http:/", "http:", ""]
    )
    users = st.sampled_from(["", "u", "admin", "a%40b", "a b"])
    return st.builds(
        lambda around, scheme, user, password: f"{around[0]}{scheme}{user}:{password}@10.0.0.5{around[1]}",
        _BEFORE_AND_BEHIND,
        schemes,
        users,
        passwords(),
    )


def addresses() -> st.SearchStrategy[str]:
    """Addresses of every scheme that Mooncake knows, and of some that it does not."""
    scheme = st.sampled_from(["", "http://", "https://", "etcd://", "redis://", "k8s://", "HTTP://", "ftp://", "://"])
    user = st.one_of(st.just(""), st.builds("{}:{}@".format, st.sampled_from(["", "u", "a%20b"]), passwords()))
    behind = st.sampled_from(["", "", "/", "/metadata", "/metadata?x=1", "/${X}", "/%41", "/a,b", "#x", ";h:1"])
    return st.one_of(
        st.sampled_from(["P2PHANDSHAKE", "p2phandshake", "k8s://ns/lease"]),
        endpoints(),
        st.builds("{}{}{}{}".format, scheme, user, endpoints(), behind),
        st.lists(endpoints(), min_size=1, max_size=3).map(lambda parts: "etcd://" + ";".join(parts)),
    )


def size_texts() -> st.SearchStrategy[str]:
    """Sizes in every spelling of the units, whole and with fractions, and some in no spelling."""
    number = st.one_of(
        st.integers(0, 10**6).map(str),
        st.integers(0, 10**70).map(str),
        st.builds(
            "{}.{}".format,
            st.integers(0, 99),
            st.sampled_from(["0", "5", "25", "125", "375", "175", "0625", "3", "50"]),
        ),
    )
    units = [p + s for p in ("", *"kKmMgGtTpP") for s in ("", "b", "B", "i", "iB", "Ib", "ibytes", "byte", "it")]
    return st.builds("{}{}{}".format, number, st.sampled_from(["", " ", "  ", "\t"]), st.sampled_from(units))


def device_texts() -> st.SearchStrategy[str]:
    """Lists of RDMA devices, with paths, ports and empty places among them."""
    name = st.sampled_from(
        ["mlx5_0", "rocep1s0f0", "auto-discovery", "mlx5_0:1", "/dev/infiniband/uverbs0", "", "mlx5 0"]
    )
    return st.lists(name, max_size=4).flatmap(
        lambda names: st.sampled_from([",", ", ", " , ", ";"]).map(lambda by: by.join(names))
    )


def field_texts() -> st.SearchStrategy[str]:
    """Texts for any field, right or nearly so."""
    protocols = st.sampled_from(["tcp", "rdma", "RDMA", "efa", "nvlink", "tcp-or-rdma"])
    return edited(st.one_of(addresses(), endpoints(), size_texts(), device_texts(), protocols))


def json_values() -> st.SearchStrategy[object]:
    """Any JSON value, above all what could be meant as a field's value."""
    number = st.one_of(
        st.integers(-5, 2**41), st.integers(), st.sampled_from([2**64 - 1, 2**64, 10**63, 10**64, 10**80])
    )
    scalar = st.one_of(number, st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
    nested = st.one_of(st.lists(scalar, max_size=2), st.dictionaries(st.text(max_size=3), scalar, max_size=2))
    return st.one_of(field_texts(), scalar, st.text(max_size=12), nested)
