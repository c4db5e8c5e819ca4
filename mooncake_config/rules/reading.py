"""MC00x to MC02x: what could not be read. The parsers fire these rules; here are their pages."""

from __future__ import annotations

from mooncake_config.findings import Severity
from mooncake_config.rules.rule import reported_by_reading


@reported_by_reading("MC001")
def broken_json() -> None:
    """The init kwargs are not JSON.

    Sees text that the JSON parser refuses: quotes taken away by a shell, a value cut at a blank, escapes or quotes
    too many, Python's own notation, a trailing comma, a byte order mark, NaN.

    Why: nothing of a broken text is taken, so every field in it would fall back to its variable or default, and the
    job would run with settings that nobody wrote.

    Fix: put the JSON in single quotes, or into a file that is passed as @FILE; a file survives every shell.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs {protocol:tcp}
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"protocol": "tcp"}'
    """


@reported_by_reading("MC002")
def not_an_object() -> None:
    """The init kwargs are JSON, but no object.

    Sees a list, a number, a text; above all a text that holds JSON again, which was encoded twice.

    Why: only an object has fields.

    Fix: write {"field": value, …}, encoded once.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '[{"protocol": "tcp"}]'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"protocol": "tcp"}'
    """


@reported_by_reading("MC003")
def unreadable_file() -> None:
    """The file behind @, or standard input, cannot be read.

    Sees a path that does not exist on this node, a directory, a pipe, bytes that are not UTF-8, more than 2 MiB, and
    standard input that does not end within 10 seconds.

    Why: without the file every field in it would silently fall back.

    Fix: give a regular file that exists on every node, best with an absolute path: Ray jobs run in another directory.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs @no-such-file.json
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{}'
    """


@reported_by_reading("MC004")
def unknown_key() -> None:
    """A key of the JSON is no field.

    Sees every key but the eight fields and $schema, and names the nearest field; Mooncake's own spellings
    (rdma_devices, master_server_addr) and keys that belong to another flag (replica_num) are known.

    Why: Mooncake ignores unknown keys without a word (measured), so a typo leaves the default in force.

    Fix: write the field's name as the message gives it.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"protocl": "tcp"}'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"$schema": "x", "protocol": "tcp"}'
    """


@reported_by_reading("MC005")
def doubled_key() -> None:
    """A key stands twice in the JSON.

    Why: JSON parsers keep the last one without a word; whoever wrote the first one is not heard.

    Fix: keep one of them.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"protocol": "tcp", "protocol": "rdma"}'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"protocol": "rdma"}'
    """


@reported_by_reading("MC006", Severity.WARNING)
def empty_claim() -> None:
    """A variable, a JSON value or the whole flag is empty, and counts as unset.

    Sees a blank variable, a blank text or null in the JSON, and a blank --mooncake-store-init-kwargs.

    Why: an unset shell variable often hides behind it: "${HEAD_IP_}" expands to nothing, and the job falls back to the
    next source. Passed on as it is, an empty master kills the process with SIGSEGV (measured).

    Fix: give the value, or unset the variable or leave the key out if the fallback is meant.

    Fires:
        MOONCAKE_PROTOCOL= explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=tcp explain --num-nodes 1
    """


@reported_by_reading("MC010")
def wrong_type() -> None:
    """A JSON value has the wrong type.

    Sees numbers, lists, objects and booleans where text belongs, and lists, objects and booleans where a size does.
    A boolean is no number here.

    Why: Mooncake's binding turns everything into text: true becomes the size "True", null the text "None" (measured).

    Fix: write text in double quotes, or a size such as "8gb".

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"global_segment_size": true}'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"global_segment_size": 2147483648}'
    """


@reported_by_reading("MC011")
def unreadable_size() -> None:
    """A size is not a number with a unit.

    Sees anything but digits, an optional decimal fraction and an optional unit: b, kb, mb, gb, tb, pb with or without
    i or without b, in any case. Units are powers of 1024. Exponents, separators, decimal commas, bits and comments are
    named.

    Why: other readers guess. humanfriendly takes "2 bananas" as 2 bytes; older Mooncake takes garbage as 16 MiB.

    Fix: write "8gb", "1.5gb" or the bytes.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE='8gb junk' explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE='8 GiB' explain --num-nodes 1
    """


@reported_by_reading("MC012")
def negative_size() -> None:
    """A size is negative.

    Why: Mooncake answers -600, the code that has ten other causes too.

    Fix: write the size without its sign, or leave the field out.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=-1gb explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=1gb explain --num-nodes 1
    """


@reported_by_reading("MC013")
def fraction_of_a_byte() -> None:
    """A size is no whole number of bytes.

    Sees "0.3gb" (322122547.2 bytes) and 1.5 without a unit. Decimal fractions that come out even, such as "1.5gb",
    are exact and accepted.

    Why: rounding would give another size than the one that stands there, and on another node perhaps another rounding.

    Fix: write whole bytes, or a smaller unit.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=0.3gb explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=0.5gb explain --num-nodes 1
    """


@reported_by_reading("MC014")
def zero_chunk() -> None:
    """chunk_bytes is 0.

    Why: Mooncake raises "chunk_bytes must be positive", at the first put, after the whole start-up (measured).

    Fix: write "64mb", or leave it out for Mooncake's own 64 MiB.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": 0}'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": "64mb"}'
    """


@reported_by_reading("MC015")
def text_too_long() -> None:
    """A value is longer than any value can be.

    Sees more than 4,096 characters.

    Why: a file or a log was pasted where a name or an address belongs.

    Fix: write the value alone.

    Fires:
        MOONCAKE_MASTER="$(seq 2000)" explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """


@reported_by_reading("MC016")
def control_character() -> None:
    """A value holds a character that cannot be seen.

    Sees control and format characters, blanks other than the plain one, and bytes that are not UTF-8.

    Why: the value looks right and is another one; names with it do not resolve, and the native parser stops at NUL.

    Fix: type the value anew instead of copying it.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"local_hostname": "10.0.0.7\\u0000x"}'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"local_hostname": "10.0.0.7"}'
    """


@reported_by_reading("MC017")
def unexpanded_variable() -> None:
    """A value still holds $NAME, ${NAME}, $(NAME), {{ name }} or a command in backticks.

    Why: single quotes, JSON files, env files and YAML keep a shell from expanding it; $(NAME) is expanded by Kubernetes
    only where the variable is defined above. As an address the text resolves to nothing, 90 silent seconds later.

    Fix: put the value there, or use double quotes in the shell.

    Fires:
        MOONCAKE_MASTER='$HEAD_IP:50051' explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """


@reported_by_reading("MC018")
def placeholder() -> None:
    """A value still holds a guide's placeholder in angle brackets.

    Why: as a protocol it costs 22 seconds and ends in -1; as an address 90 seconds (both measured).

    Fix: replace it, brackets included.

    Fires:
        MOONCAKE_PROTOCOL='<tcp-or-rdma>' explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=tcp explain --num-nodes 1
    """


@reported_by_reading("MC019")
def stray_quotes() -> None:
    """A value begins or ends with a quote that is part of it.

    Why: `docker --env-file`, Kubernetes and systemd keep quotes that a shell would take away, so the protocol is
    '"rdma"', which Mooncake does not know.

    Fix: take the quotes away where the value is set.

    Fires:
        MOONCAKE_PROTOCOL='"rdma"' explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=rdma explain --num-nodes 1
    """


@reported_by_reading("MC020")
def kept_comment() -> None:
    """A value holds a comment.

    Sees a # with a blank before it.

    Why: env files of Docker and Kubernetes keep what a shell would drop.

    Fix: give the comment a line of its own.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE='8gb # per node' explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=8gb explain --num-nodes 1
    """


@reported_by_reading("MC021")
def several_addresses() -> None:
    """An address holds a blank, a comma or a semicolon: mostly two addresses in one.

    Why: `hostname -I` and `hostname -i` print all addresses of a host; Mooncake takes the text as one name. Only etcd://
    takes a list, separated by semicolons.

    Fix: keep the one on the data network.

    Fires:
        MOONCAKE_LOCAL_HOSTNAME='10.0.0.7 10.60.0.7' explain --num-nodes 1
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=10.0.0.7 explain --num-nodes 1
    """


@reported_by_reading("MC022")
def missing_host() -> None:
    """An address has no host.

    Why: "${HEAD_IP}:50051" with HEAD_IP unset is ":50051"; Mooncake tries to connect for 90 seconds.

    Fix: write the host before the port.

    Fires:
        MOONCAKE_MASTER=:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """


@reported_by_reading("MC023")
def bad_port() -> None:
    """An address has no port where it needs one, or one outside 1 to 65535.

    Why: Mooncake adds no default port to the master; a bare host fails with -600 after 4 seconds (measured).

    Fix: write host:port; the master's default port is 50051.

    Fires:
        MOONCAKE_MASTER=10.0.0.5 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """


@reported_by_reading("MC024")
def missing_scheme() -> None:
    """The metadata server has no scheme.

    Why: Mooncake takes such a text as etcd and retries without end (measured: past 20 seconds); builds without etcd
    abort the process.

    Fix: write http://host:port/metadata, etcd://host:port, or P2PHANDSHAKE.

    Fires:
        MOONCAKE_TE_META_DATA_SERVER=10.0.0.5:8080 explain --num-nodes 1
    Silent:
        MOONCAKE_TE_META_DATA_SERVER=http://10.0.0.5:8080/metadata explain --num-nodes 1
    """


@reported_by_reading("MC025")
def unknown_scheme() -> None:
    """An address has a scheme that Mooncake does not know.

    Sees http:// and the like before a master, schemes in upper case, and any scheme of a metadata server but http,
    https, etcd and redis.

    Why: on an unknown metadata scheme Mooncake aborts the process (SIGABRT, measured), which Python cannot catch.

    Fix: write the form that the message gives.

    Fires:
        MOONCAKE_TE_META_DATA_SERVER=ftp://10.0.0.5/metadata explain --num-nodes 1
    Silent:
        MOONCAKE_TE_META_DATA_SERVER=etcd://10.0.0.5:2379 explain --num-nodes 1
    """


@reported_by_reading("MC026")
def address_form() -> None:
    """An address is of no form that Mooncake can take.

    Sees IPv6 with a port and no brackets, brackets left open, paths, passwords where none belong, names with characters
    that no host has, P2PHANDSHAKE in another case.

    Why: Mooncake splits at the last colon and looks the rest up; `p2phandshake` it takes as etcd and never returns.

    Fix: write the form that the message gives.

    Fires:
        MOONCAKE_MASTER=2001:db8::102:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=[2001:db8::102]:50051 explain --num-nodes 1
    """


@reported_by_reading("MC027")
def unknown_protocol() -> None:
    """The protocol is none that Mooncake Store has a transport for.

    Why: 20 tries and -1 after 22 seconds (measured), without the word that was wrong.

    Fix: write tcp or rdma, or another of the list. Upper case is lower-cased.

    Fires:
        MOONCAKE_PROTOCOL=rmda explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=RDMA explain --num-nodes 1
    """


@reported_by_reading("MC028")
def device_form() -> None:
    """device_name is a list or a map in JSON.

    Why: some tools take a map of ranks to devices; Mooncake takes the text as one device name that does not exist.

    Fix: separate names by commas; where they differ by node, export MOONCAKE_DEVICE on each node.

    Fires:
        MOONCAKE_DEVICE='["mlx5_0"]' explain --num-nodes 1
    Silent:
        MOONCAKE_DEVICE=mlx5_0,mlx5_1 explain --num-nodes 1
    """


@reported_by_reading("MC029")
def bad_rank_variable() -> None:
    """LOCAL_RANK or LOCAL_WORLD_SIZE is set to no whole number.

    Why: the rank decides which process of a node contributes the segment. Guessed wrong, a node contributes none, or
    every process contributes one.

    Fix: let the launcher set it, or unset it.

    Fires:
        LOCAL_RANK=abc explain --num-nodes 1
    Silent:
        LOCAL_RANK=0 explain --num-nodes 1
    """
