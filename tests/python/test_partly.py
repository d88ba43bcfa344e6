"""Files that are read while they come (motley.files(PLACE, wait=False)), without a head: the blocks come from the test."""

import io
import multiprocessing
import os
import pickle
import random
import shutil
import struct
import tarfile
import threading

import pytest

from motley import Error
from motley._content import _kept, _local, _partly

BLOCK = 1 << 20
SIZE = 5 * BLOCK + 1234


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def data(tmp_path):
    place = tmp_path / "set"
    (place / "more").mkdir(parents=True)
    (place / "a.bin").write_bytes(random.Random(1).randbytes(SIZE))
    (place / "more" / "b.bin").write_bytes(random.Random(2).randbytes(2 * BLOCK))
    (place / "more" / "empty").touch()
    return place


class Coming:
    """A set of which nothing is here, and its blocks."""

    def __init__(self, place):
        self.manifest = _kept.manifest_of(place, place.name)
        self.kept = _kept.Set(self.manifest)
        self.missing = self.kept.begin()
        self.files = _partly.Files(str(self.kept.path), self.manifest, self.kept)
        self.content = {}
        for file in self.manifest.files:
            text = (place / file.name).read_bytes()
            self.content.update({content: text[offset : offset + count] for offset, count, content in file.blocks()})

    def put(self, *blocks):
        for content, places in self.missing.items():
            if places[0].block in blocks:
                self.kept.put(places, self.content[content])

    def wish(self):
        """The block that somebody waits for, once somebody does."""
        while (block := self.kept.progress.wanted(0)) is None:
            pass
        return block


class Reader(threading.Thread):
    def __init__(self, read):
        super().__init__()
        self._read, self.result = read, None
        self.start()

    def run(self):
        try:
            self.result = self._read()
        except Error as error:
            self.result = error

    def ends(self):
        self.join()
        return self.result


def read_at(files, name, offset, count):
    with files.open(name) as file:
        file.seek(offset)
        return file.read(count)


def test_a_read_waits_for_its_block_and_says_which(data):
    coming = Coming(data)
    text = (data / "a.bin").read_bytes()
    reader = Reader(lambda: read_at(coming.files, "a.bin", 3 * BLOCK + 17, 1000))
    assert coming.wish() == 3
    coming.put(0, 1)
    assert reader.is_alive()
    coming.put(3)
    assert reader.ends() == text[3 * BLOCK + 17 : 3 * BLOCK + 1017]
    assert read_at(coming.files, "a.bin", 5, 10) == text[5:15]  # here already


def test_a_read_over_blocks_waits_for_each(data):
    coming = Coming(data)
    reader = Reader(lambda: read_at(coming.files, "a.bin", BLOCK - 10, BLOCK + 20))
    for block in range(3):
        assert coming.wish() == block
        coming.put(block)
    assert reader.ends() == (data / "a.bin").read_bytes()[BLOCK - 10 : 2 * BLOCK + 10]


def test_any_reads_in_any_order_give_what_the_head_has(data):
    coming = Coming(data)
    chance = random.Random(3)
    wanted = [(name, chance.randrange(SIZE), chance.randrange(3 * BLOCK)) for name in ("a.bin", "more/b.bin") for _ in range(20)]
    readers = [Reader(lambda each=each: read_at(coming.files, *each)) for each in wanted]
    blocks = list(range(coming.manifest.blocks))
    chance.shuffle(blocks)
    for block in blocks:
        coming.put(block)
    for (name, offset, count), reader in zip(wanted, readers):
        assert reader.ends() == (data / name).read_bytes()[offset : offset + count]


def test_ends_and_places_of_a_file(data):
    coming = Coming(data)
    with coming.files.open("a.bin") as file:
        assert file.seek(0, os.SEEK_END) == SIZE == coming.files.size("a.bin")
        assert file.read(10) == b""
        with pytest.raises(ValueError):
            file.seek(-SIZE - 1, os.SEEK_END)
    with coming.files.open("more/empty") as file:
        assert file.read() == b""
    assert coming.files.names == ["a.bin", "more/b.bin", "more/empty"]


def test_a_path_is_one_of_a_whole_file(data):
    coming = Coming(data)
    reader = Reader(lambda: coming.files.path("more/b.bin"))
    coming.wish()
    coming.put(6)
    assert reader.is_alive()
    coming.put(7)
    path = reader.ends()
    everything = Reader(lambda: os.fspath(coming.files))
    coming.put(*range(6))
    coming.kept.finish()
    with open(path, "rb") as file:  # the place is the same afterwards
        assert file.read() == (data / "more" / "b.bin").read_bytes()
    assert everything.ends() == str(coming.kept.path)


def test_who_waits_hears_that_it_will_not_come(data):
    coming = Coming(data)
    reader = Reader(lambda: read_at(coming.files, "a.bin", 0, 1))
    coming.wish()
    coming.kept.fail(Error("the disk is full", "make room", "io"))
    error = reader.ends()
    assert isinstance(error, Error) and "the disk is full" in str(error) and (error.hint, error.code) == ("make room", "io")
    coming.put(0)
    assert len(read_at(coming.files, "a.bin", 0, 1)) == 1


def test_what_another_run_gave_up_does_not_end_this_one(data):
    """Two runs of this machine want the same set, and the one that fetches it first gives it up."""
    coming = Coming(data)
    other = _partly.Files(str(coming.kept.path), coming.manifest, _kept.Set(coming.manifest))
    reader = Reader(lambda: read_at(other, "a.bin", 0, 1))
    coming.wish()
    coming.kept.fail(Error("the run was over", "join while the head trains", "network"))
    coming.put(0)
    assert reader.ends() == (data / "a.bin").read_bytes()[:1]


def read_in_another_process(packed, results):
    files = pickle.loads(packed)
    results.put(read_at(files, "a.bin", 2 * BLOCK, 100))
    try:
        read_at(files, "a.bin", 3 * BLOCK, 1)
    except Error as error:
        results.put((str(error.args[0]), error.hint, error.code))


def test_another_process_waits_likewise(data):
    coming = Coming(data)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=read_in_another_process, args=(pickle.dumps(coming.files), results))
    child.start()
    assert coming.wish() == 2
    coming.put(2)
    assert results.get() == (data / "a.bin").read_bytes()[2 * BLOCK : 2 * BLOCK + 100]
    assert coming.wish() == 3
    coming.kept.fail(Error("the disk is \u2028full" + "\U0001f4be" * 5000, "make room", "io"))
    message, hint, code = results.get()
    assert message.startswith("the disk is \u2028full\U0001f4be") and (hint, code) == ("make room", "io")
    child.join()


def test_what_a_machine_noted_before_it_lost_its_power_is_not_believed(data):
    coming = Coming(data)
    coming.put(0)
    coming.kept._use.close()
    assert not _kept.Set(coming.manifest).progress.is_here(0)
    other = _kept.Set(coming.manifest)
    assert len(other.begin()) == coming.manifest.blocks - 1  # its content is


def test_a_file_that_is_not_there(data):
    manifest = _kept.manifest_of(data, "set")
    files = _partly.Files(str(data), manifest)
    with pytest.raises(Error, match="there is no file 'c.bin' in it"):
        files.open("c.bin")


def test_where_all_is_here_nothing_is_waited_for(data):
    files = _partly.Files(str(data), _kept.manifest_of(data, "set"))
    assert read_at(files, "more/b.bin", 3, 4) == (data / "more" / "b.bin").read_bytes()[3:7]
    assert files.path("a.bin") == str(data / "a.bin") and os.fspath(files) == str(data)
    single = _partly.Files(str(data / "a.bin"), _kept.manifest_of(data / "a.bin", "a.bin"))
    assert single.path("a.bin") == str(data / "a.bin") == os.fspath(single)


def test_wishes_come_first_and_what_follows_them_next(data):
    coming = Coming(data)
    order = _local._Order(coming.kept, coming.missing)
    blocks = {content: places[0].block for content, places in coming.missing.items()}

    def asked(count):
        return [(blocks[content], waited_for) for content, waited_for in (order.next() for _ in range(count))]

    assert asked(2) == [(0, False), (1, False)]
    coming.kept.progress.want(4)
    assert asked(2) == [(4, True), (5, False)]
    coming.kept.progress.want(1)
    assert asked(2) == [(1, True), (2, False)], "that is asked for already, and waited for by now"
    for content in [content for content, block in blocks.items() if block in (0, 1, 4)]:
        coming.kept.put(order.take(content), coming.content[content])
    coming.kept.progress.want(6)
    assert asked(2) == [(6, True), (7, False)]


def test_who_waits_for_everything_does_so_in_turn(data, monkeypatch):
    coming = Coming(data)
    order = _local._Order(coming.kept, coming.missing)
    for block in range(coming.manifest.blocks):
        coming.kept.progress.want(block)
    monkeypatch.setattr(_local, "WISHES_MAX", coming.manifest.blocks - 1)
    asked = [order.next() for _ in range(coming.manifest.blocks)]
    assert len(asked) == len(set(coming.missing)) and not any(waited_for for _, waited_for in asked)


def test_a_wish_for_what_is_here_is_forgotten(data):
    coming = Coming(data)
    order = _local._Order(coming.kept, coming.missing)
    first, _ = order.next()
    coming.kept.put(order.take(first), coming.content[first])
    coming.kept.progress.set_here(0, False)  # as a reader in another process may leave it
    coming.kept.progress.want(0)
    order.next()
    assert coming.kept.progress.is_here(0)


def test_what_comes_twice_belongs_nowhere_the_second_time(data):
    """It had come, and nobody had taken it yet, when it was asked for once more since somebody waited for it."""
    coming = Coming(data)
    order = _local._Order(coming.kept, coming.missing)
    first, _ = order.next()
    coming.kept.progress.want(0)
    assert order.next() == (first, True)
    assert order.take(first) and not order.take(first)


def test_all_blocks_are_asked_for_once(data):
    coming = Coming(data)
    order = _local._Order(coming.kept, coming.missing)
    asked = []
    while (following := order.next()) is not None:
        asked.append(following[0])
    assert sorted(asked) == sorted(coming.missing) and len(asked) == coming.manifest.blocks


# --- formats of shards ---


def comes_bit_by_bit(coming, read):
    """What `read` returns, while each block comes when it is waited for."""
    reader = Reader(read)
    while reader.is_alive():
        block = coming.kept.progress.wanted(0)
        if block is not None:
            coming.put(block)
    return reader.ends()


def test_samples_of_a_tar_as_webdataset_has_them(tmp_path):
    place = tmp_path / "tars"
    place.mkdir()
    images = {f"{number:04}.jpg": random.Random(number).randbytes(200_000) for number in range(20)}
    with tarfile.open(place / "shard-000.tar", "w") as tar:
        for name, image in images.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(image)
            tar.addfile(entry, io.BytesIO(image))
    coming = Coming(place)

    def read():
        with coming.files.open("shard-000.tar") as file, tarfile.open(fileobj=file, mode="r|") as tar:
            return {entry.name: tar.extractfile(entry).read() for entry in tar}

    assert comes_bit_by_bit(coming, read) == images


def test_a_table_of_arrow_as_hugging_face_has_it(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    place = tmp_path / "tables"
    place.mkdir()
    table = pyarrow.table({"label": list(range(3000)), "image": [random.Random(row).randbytes(1000) for row in range(3000)]})
    with pyarrow.ipc.new_stream(str(place / "data-00000-of-00001.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=500)
    coming = Coming(place)
    (name,) = coming.files.names
    assert comes_bit_by_bit(coming, lambda: pyarrow.ipc.open_stream(coming.files.open(name)).read_all()).equals(table)
    coming.kept._use.close()
    shutil.rmtree(coming.kept.home)
    coming = Coming(place)
    assert comes_bit_by_bit(coming, lambda: pyarrow.ipc.open_stream(pyarrow.memory_map(coming.files.path(name))).read_all()).equals(table)


def test_samples_of_a_shard_with_offsets_as_mosaicml_has_them(tmp_path):
    """A number of samples, offsets, samples: one is read without those before it."""
    place = tmp_path / "mds"
    place.mkdir()
    samples = [random.Random(number).randbytes(300_000 + number) for number in range(12)]
    ends = [4 * (len(samples) + 2) + sum(map(len, samples[:number])) for number in range(len(samples) + 1)]
    header = struct.pack(f"<{len(samples) + 2}I", len(samples), *ends)
    (place / "shard.00000.mds").write_bytes(header + b"".join(samples))
    coming = Coming(place)

    def read():
        with coming.files.open("shard.00000.mds") as file:
            file.seek(4 * (1 + 9))
            first, end = struct.unpack("<2I", file.read(8))
            file.seek(first)
            return file.read(end - first)

    assert comes_bit_by_bit(coming, read) == samples[9]
    assert not coming.kept.progress.is_here(1)
