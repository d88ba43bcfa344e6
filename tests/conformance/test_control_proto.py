"""control.proto, read by protoc and google.protobuf, means the bytes that the C++ side reads and writes.

The C++ tests hold the .bin files against their own encoder and decoder; here the .txtpb files beside them, google.protobuf and
the .bin files are held against each other.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
from google.protobuf import descriptor_pool, message_factory, text_format  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMATS = ROOT / "docs" / "formats"
DATA = ROOT / "tests" / "unit" / "wire" / "data"
VECTORS = sorted(path.stem for path in DATA.glob("*.txtpb"))


@pytest.fixture(scope="session")
def control(tmp_path_factory):
    """The class of the envelope, from a descriptor set: no generated code, so no version of it can clash."""
    if shutil.which("protoc") is None:
        pytest.skip("protoc is not installed")
    out = tmp_path_factory.mktemp("proto") / "control.pb"
    subprocess.run(["protoc", f"--proto_path={FORMATS}", f"--descriptor_set_out={out}", "control.proto"], check=True)
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("motley.control.Control"))


def snake(name):
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def test_every_kind_has_a_vector(control):
    kinds = control.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert [field.name for field in kinds] == [snake(field.message_type.name) for field in kinds]
    assert [field.number for field in kinds] == [*range(1, 23), 25, 26, *range(29, 34)]  # those between are set aside
    assert sorted(field.name for field in kinds) == VECTORS


@pytest.mark.parametrize("name", VECTORS)
def test_text_encodes_to_the_bytes(control, name):
    message = text_format.Parse((DATA / f"{name}.txtpb").read_text(encoding="utf-8"), control())
    assert message.WhichOneof("kind") == name
    assert message.SerializeToString(deterministic=True) == (DATA / f"{name}.bin").read_bytes()


@pytest.mark.parametrize("name", VECTORS)
def test_bytes_decode_to_the_text(control, name):
    data = (DATA / f"{name}.bin").read_bytes()
    message = control.FromString(data)
    assert message == text_format.Parse((DATA / f"{name}.txtpb").read_text(encoding="utf-8"), control())
    assert message.SerializeToString(deterministic=True) == data  # tells -0.0 from 0.0, too


@pytest.mark.parametrize("name", VECTORS)
def test_every_field_is_in_its_vector(control, name):
    """A field that is zero in the vector would leave its number untested."""
    message = getattr(control.FromString((DATA / f"{name}.bin").read_bytes()), name)
    missing = {field.name for field in message.DESCRIPTOR.fields} - {field.name for field, _ in message.ListFields()}
    assert missing == set()


def test_protoc_reads_the_bytes():
    if shutil.which("protoc") is None:
        pytest.skip("protoc is not installed")
    data = (DATA / "grant.bin").read_bytes()
    text = subprocess.run(["protoc", f"--proto_path={FORMATS}", "--decode=motley.control.Control", "control.proto"],
                          input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "pass_first: 59904" in text
