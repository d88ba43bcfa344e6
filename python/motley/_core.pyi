"""The core, the runtime and the commands. What is here may change; `motley` is what scripts use."""

from collections.abc import Callable, Sequence
from typing import Any

version: str
recipes: list[str]
"""Their names."""

class Layout:
    """Where each tensor of a model lies in the flat vectors of float32.

    An entry: (name, shape, dtype 1..8, kind 1..6, optimizer group, momentum, alias of, content hash), as in include/motley/layout.h.
    """

    def __init__(self, entries: Sequence[tuple[str, list[int], int, int, int, float, str, int]]) -> None: ...
    @property
    def flat_elements(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def entries(self) -> list[tuple[str, list[int], int, int, int, float, str, int]]: ...
    @property
    def placements(self) -> list[tuple[int, int, int]]:
        """(number of the entry, offset in elements, elements), by offset."""

class Task:
    """What a worker is to compute. Valid until close()."""

    @property
    def kind(self) -> str:
        """Either "train" or "evaluate"."""
    @property
    def contributes(self) -> bool:
        """Whether the gradient is wanted; else the pass is for measuring."""
    @property
    def probes(self) -> bool:
        """Whether the weights are made up, to compare devices; of a training."""
    @property
    def version(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def order_first(self) -> int:
        """Training: position p of the pass is position order_first + p of the epoch's sample order."""
    @property
    def count(self) -> int: ...
    @property
    def micro_batch(self) -> int: ...
    @property
    def kept(self) -> bool:
        """Whether the gradient stays on the device, where keep() has it."""
    @property
    def resident(self) -> bool:
        """With the weights that were settled on the device, where the gradient stays."""
    @property
    def seed(self) -> int: ...
    @property
    def state(self) -> bytes:
        """What the loss gets beside the samples; empty where there is no such thing."""
    @property
    def state_number(self) -> int:
        """Of that state, from 1; 0: there is none. Another number, other bytes."""
    def indices(self, first: int, count: int) -> list[int]:
        """Numbers of the samples [first, first + count) of the task."""
    @property
    def from_end(self) -> bool:
        """Computed from the last sample downwards: what is done is the end of the task."""
    def bring(self, first: int, last: int) -> list[tuple[int, int]]:
        """Waits until the weights of elements [first, last) are in the object's array, and takes what else is there. Returns what came,
        as ranges of elements; less than was asked for if the task is abandoned."""
    def missing(self) -> list[tuple[int, int]]:
        """Ranges of elements that have not come yet."""
    def final(self, placement: int) -> None:
        """In backward(last=True): nothing is added to that gradient any more."""

class Script:
    def __init__(self, layout: Layout, acts_on_groups: bool, draws: bool, make: Callable[[str, int], Any]) -> None: ...
    def set_train(self, size: int, fingerprint: str) -> None: ...
    def set_code(self, code: str) -> None: ...
    def set_test(self, size: int, fingerprint: str) -> None: ...
    def set_files(self, packed: bytes) -> None: ...
    def set_scores(self, names: list[str]) -> None: ...
    def set_weights(self, flat: Any) -> None: ...
    def set_frozen(self, name: str, data: bytes) -> None: ...
    def set_optimizer(self, kind: str, groups: Sequence[tuple[float, float, float, bool, float, float, float, float]],
                      outside: Any | None) -> None:
        """`outside`: as python/core/python_optimizer.h says, of the kind "script"."""
    def set_begun(self, updates: int, state: Sequence[tuple[str, Any]]) -> None:
        """What the optimizer goes on from, after set_optimizer(): how many steps it has made, and its states by name, each as weights are
        given."""
    def follow_evaluations(self, follower: Callable[[str, int, float, list[tuple[str, float]]], list[float]],
                           followed: list[tuple[int, list[float]]]) -> None:
        """follower(the run's directory, step, loss, scores): learning rates by group from then on. `followed`: what it gave before, by
        step. After set_optimizer()."""
    def set_batches(self, changes: list[tuple[int, int]]) -> None:
        """As in go_on(), as far as they are known; of a run that is resumed from its beginning."""
    def set_followed(self, followed: list[tuple[int, list[float]]]) -> None:
        """Learning rates by group that go_on() got before, by step: for a run that is resumed. After set_optimizer()."""
    def set_run(self, number: int) -> None:
        """Which of the script's runs it is: that of the head, or serve() says which the head is at."""
    def set_arguments(self, words: list[str]) -> None:
        """With which the script was started: they must be those of the head, but for paths."""
    def set_state(self, state: bytes) -> None:
        """What the loss gets at first: Task.state. At most 16 MiB. A run that is resumed goes on with what it had."""
    def set_schedule(self, steps_per_row: int, groups: int, rates: Sequence[tuple[float, float, float, float]]) -> None: ...
    def set_own(self, optimizer: Callable[[], tuple[str, Sequence[tuple[float, float, float, bool, float, float, float, float]],
                                                   tuple[int, int, Sequence[tuple[float, float, float, float]]] | None]],
                outside: Callable[[], Any]) -> None:
        """For workers in rounds, asked when there are any: optimizer() gives its kind, its groups and its schedule as set_schedule() has
        it; outside(), of the kind "script", one more that has made no step."""
    def add_device(self, name: str, description: str, memory_bytes: int, threads: int) -> None: ...

class Offers:
    """Files that machines which join may have."""

    def __init__(self) -> None: ...
    def add(self, manifest: bytes, hash: bytes, files: Sequence[tuple[str, int, bytes]]) -> None:
        """`files`: (path, size, SHA-256 of each block of 1 MiB, one after the other). They are to stay as they are from now on."""
    def __len__(self) -> int: ...

class BlockLink:
    """The connection by which files of a head come here."""

    def dial(self) -> None:
        """What is open is asked for again once it is connected."""
    def ask(self, offer: int) -> None: ...
    def want(self, hash: bytes, bytes: int) -> None:
        """At most 64 may be open."""
    def next(self, seconds: float) -> tuple[Any, ...] | None:
        """("connected",), ("offered", hash, bytes, offers there are), ("content", hash, bytes), ("waits",): steps of the run come first,
        ("broken", why, the run is over), or None after so long. Errors: the head refuses, or what it sends is wrong."""

def open_block_link(launch: Launch) -> BlockLink: ...

class Launch:
    script: str
    """Its path; of a recipe its name, until it is run. Empty: that of the run which goes on."""
    recipe: str
    """The name of the recipe that the script is; else empty."""
    @property
    def here(self) -> str:
        """The directory that the command was started in; else empty."""
    @property
    def resumed(self) -> str:
        """The directory of the run that is to go on; else empty."""
    @property
    def role(self) -> str: ...
    def close_door(self) -> None:
        """Nobody joins any more. Before the process ends, and with it what the door's threads need."""
    def keep_door(self) -> None:
        """From now on the runs of this launch come one after the other: machines that join find each by the token of the first."""
    def offer(self, offers: Offers) -> None:
        """From now on the runs of this launch hand them out."""
    def go_on(self, directory: str, resume: bool) -> None:
        """For the next run, in this directory."""
    @property
    def json(self) -> bool: ...
    arguments: list[str]
    @property
    def fetched(self) -> bytes:
        """The files of the head's script, as _fetch packs them; else empty. `agreed`: nobody need be asked."""
    @property
    def agreed(self) -> bool: ...
    @property
    def installs(self) -> bool:
        """What the fetched script imports, and this Python lacks, into an environment of its own."""
    @property
    def token(self) -> str:
        """Of the run that is to be joined."""
    @property
    def idle_only(self) -> bool: ...
    @property
    def join_options(self) -> list[str]:
        """With which another `motley join` on this machine behaves as this launch; its devices are its own."""
    devices: list[str]
    """As they were asked for; chosen_devices() says which that are."""

class State:
    @property
    def version(self) -> int: ...
    def copy_weights(self, layout: Layout, to: Any) -> None: ...
    @property
    def optimizer_states(self) -> list[str]:
        """Names, as in torch's state_dict, while the run is paused; not of an optimizer from outside, which has its own."""
    def copy_optimizer(self, name: str, layout: Layout, to: Any) -> None:
        """Zeros where the optimizer has nothing."""

class Event:
    """A step, an eval point (with its state), or an evaluation. An eval point is the end of an epoch, or every train.evaluate_every
    steps, and the end of the run; where nothing pauses the run, the end of an epoch alone."""

    @property
    def kind(self) -> str:
        """One of "step", "epoch" and "evaluation"."""
    @property
    def epoch(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def scores(self) -> list[tuple[str, float]]: ...
    @property
    def state(self) -> State | None: ...
    @property
    def paused(self) -> bool:
        """The run waits for go_on(), and nothing computes in this process: at the evaluation with a test set, else the "epoch"."""

class Head:
    def __init__(self, launch: Launch, script: Script, config: str, steps: bool, pauses: str, live: bool) -> None:
        """`steps`: these, too. `pauses`: "never", "eval_points", or "steps": after each step, and at eval points once more. `live`:
        what the run says moves, in the terminal that standard error is."""
    def open(self) -> None:
        """The run's files and its door."""
    def start(self) -> None:
        """Of a run that is open."""
    def next(self) -> Event | None: ...
    def go_on(self, rates: list[float] | None, state: bytes | None, batches: list[tuple[int, int]] = ...) -> None:
        """Where the run is paused. `rates`: learning rates by group from now on. `state`: what the loss gets from now on. `batches`:
        (step, samples of it and of those behind it) of steps to come, in their order."""
    def stop(self, final: bool) -> None:
        """Once the open step is finished. `final`: by the script, and workers need not come back."""
    def close(self) -> None: ...
    def note(self, text: str) -> None: ...
    def hide(self) -> None:
        """Of a run that is live, from any thread: takes away what moves, until show() has been called as often."""
    def show(self, begun: str) -> None:
        """`begun`: the start of a line that somebody has not ended yet, without control characters."""
    @property
    def bodies_until(self) -> int:
        """Once it is open: the version from which it goes on, or the one before where a body at that eval point is still to come."""
    @property
    def directory(self) -> str: ...
    @property
    def token(self) -> str: ...

def machine() -> tuple[str, int, int]:
    """The processor's name, bytes of memory (0: unknown), processors that this process may use."""

def system() -> str:
    """"macOS 26.4", "Debian GNU/Linux 12 (bookworm)", "Windows 10.0.26100"."""

def process_memory(threads: int) -> tuple[int, int, int, int]:
    """Of this process, what a computation's memory() says: in use, the peak since the last call, what there may be in all (0: nobody
    knows), and what of that libraries will take with so many threads."""

class MemoryLimit:
    """A context, in which the process can take no more than the machine can spare."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

def content_hash(data: bytes) -> int: ...
def sample_order(seed: int, epoch: int, size: int, first: int, count: int, shuffle: bool = True) -> list[int]:
    """Numbers of the samples at positions [first, first + count) of an epoch."""

def mixed_seed(seed: int, version: int, position: int) -> int: ...
def exit_status(code: str) -> int: ...
def report(json: bool, code: str, message: str, hint: str) -> None: ...
def run_command(arguments: list[str], run_script: Callable[[Launch], int], torch: Callable[[], Any]) -> int:
    """`torch`: gives the module _machines._devices, or None where there is no torch."""

def serve(launch: Launch, script: Script, patience: float) -> int | None:
    """The number of the run that the head was at in the end: that of `script`, which is over then, or another. None: this machine left,
    or nothing answered for `patience` seconds before it was admitted (0: it goes on trying). 0: the launch has another token now, from the
    file of the one before, with which this is to be called again."""

def fetch(launch: Launch, patience: float) -> bytes | None:
    """The files of the head's script, when it trains; empty where that run ended first. None: as serve() says."""

def take_rank(launch: Launch) -> None: ...
def chosen_devices(launch: Launch, script: Script) -> list[str]:
    """The devices of this machine that the launch is for, a name as often as it was asked for."""

def local_steps(launch: Launch, config: str) -> int:
    """Of a round, in a run of this launch with this run file; 0: it is not in rounds."""
def mode(launch: Launch, config: str) -> str:
    """Of a run of this launch with this run file: "exact" | "rounds" | "auto"."""
def plan(launch: Launch, script: Script, config: str, workers: int, begun: Callable[[str], None]) -> None:
    """Measures when so many workers are there. begun(token): others can join now; on another thread."""
def auto_mode(launch: Launch, script: Script, config: str, workers: int, begun: Callable[[str], None]) -> str:
    """Likewise, for a run that follows behind the same door: "exact" | "rounds"."""
