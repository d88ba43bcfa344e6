"""The wheels of build/wheels/dist for this machine, each in an environment with nothing else: `.ci/run wheels` makes and tries them."""

import hashlib
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "build/wheels/dist"
TORCH = ROOT / "build/venv"  # an environment with torch, for what needs it
SECONDS = 120


def wheel_for(tag):
    found = list(DIST.glob(f"motley-*-{tag}-manylinux_2_28_{platform.machine()}.whl"))
    assert len(found) == 1, f"expected one wheel for {tag} in {DIST}, found {found}; make wheels"
    return found[0]


# Tag of the wheel, and the Python that it is for; none: the newest that the stable ABI serves.
WHEELS = [pytest.param((f"cp{name}-cp{name}", version), id=f"cp{name}") for name, version in (("310", "3.10"), ("311", "3.11"))]
WHEELS.append(pytest.param(("cp312-abi3", None), id="abi3"))


def find_python(version):
    for name in [f"python{version}"] if version else ["python3.14", "python3.13", "python3.12"]:
        path = sys.executable if version == f"{sys.version_info[0]}.{sys.version_info[1]}" else shutil.which(name)
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


@pytest.fixture(scope="module", params=WHEELS)
def installed(request, tmp_path_factory):
    tag, version = request.param
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python for {tag} here")
    home = tmp_path_factory.mktemp(tag)
    subprocess.run([python, "-m", "venv", home], check=True)
    subprocess.run([home / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel_for(tag)],
                   check=True, timeout=SECONDS)
    return home


def said(home, *words, cwd):
    done = subprocess.run([home / "bin/motley", *words, "--json"], cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_doctor_looks_at_the_machine(installed, tmp_path):
    assert said(installed, "doctor", cwd=tmp_path)


def test_trains_and_accounts_for_every_sample(installed, tmp_path):
    events = said(installed, "train", "softmax", "--set", "train.steps=64", "--run", str(tmp_path / "run"), cwd=tmp_path)
    done = events[-1]
    assert done["event"] == "done" and done["steps"] == 64
    losses = [event["loss"] for event in events if event["event"] == "step"]
    assert losses[-1] < losses[0]
    audit = said(installed, "audit", str(tmp_path / "run"), cwd=tmp_path)[-1]
    assert audit["missing"] == 0 and audit["duplicate"] == 0


SCRIPT = """
import torch
import motley

torch.manual_seed(1)
inputs = torch.randn(512, 8)
targets = inputs @ torch.randn(8, 1)
model = torch.nn.Linear(8, 1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=64, shuffle=True)


def loss(model, batch):
    inputs, targets = batch
    return torch.nn.functional.mse_loss(model(inputs), targets)


run = motley.Run(model, loss, loader, torch.optim.SGD(model.parameters(), lr=0.1))
for epoch in run.epochs(3):
    pass
"""


def test_a_script_trains_with_the_torch_beside_it(installed, tmp_path):
    python = installed / "bin/python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    beside = subprocess.run([TORCH / "bin/python", "-c", ask], capture_output=True, text=True, check=True).stdout
    where = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    same = subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=True).stdout
    if same.strip() != str(sys.version_info[:2]):
        pytest.skip("build/venv has torch for another Python")
    pathlib.Path(where, "beside.pth").write_text(beside)
    (tmp_path / "script.py").write_text(SCRIPT)
    events = said(installed, "train", "script.py", "--run", str(tmp_path / "run"), cwd=tmp_path)
    losses = [event["loss"] for event in events if event["event"] == "step"]
    assert events[-1]["event"] == "done" and losses[-1] < losses[0]


def test_has_the_recipes():
    recipes = {f"motley/recipes/{path.name}" for path in (ROOT / "python/motley/recipes").glob("*.py")}
    assert "motley/recipes/fashion_cnn.py" in recipes
    for wheel in DIST.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            assert recipes <= set(opened.namelist())


def test_asks_for_no_other_package():
    for wheel in DIST.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            metadata = next(name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
            assert "Requires-Dist" not in opened.read(metadata).decode()


def test_hashes_are_those_of_the_files():
    lines = (DIST / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == len(list(DIST.glob("*.whl"))) > 0
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((DIST / name).read_bytes()).hexdigest() == digest
