"""Sessions that are called wrongly: code, whole message, and that they still work afterwards."""

import re
import shutil

from link_programs import link, run

RUN_ERRORS = """\
options.size: 1 layer: options.size is 8, expected 56
too few threads: 1 layer: options.threads is -1, expected 0 to 256
too many threads: 1 layer: options.threads is 257, expected 0 to 256
arena one byte short: 1 layer: the arena has ARENA-1 bytes, expected ARENA
arena without size: 1 layer: the arena has 0 bytes, expected ARENA
arena unaligned: 1 layer: the arena is not aligned to 64 bytes
no place for the session: 1 layer: create has a null pointer for the session
arena of the right size: 0 \n\
run without a session: 1 layer: run has a null pointer for the session
run_values without a session: 1 layer: run_values has a null pointer for the session
create: 0 \n\
run: 0 \n\
null input: 1 layer: input 'x' is a null pointer
null output: 1 layer: output 'y' is a null pointer
values: null data: 1 layer: input 'x' is a null pointer
values: a sequence: 1 layer: input 'x' is not a tensor
values: element type: 1 layer: input 'x' has elements of type float64, expected float32
values: no element type: 1 layer: input 'x' has elements of type unknown, expected float32
values: rank: 1 layer: input 'x' has 3 dims, expected 2
values: no dims: 1 layer: input 'x' has no dims
values: dim: 1 layer: input 'x': dim 1 is 4, expected 3
values: negative dim: 1 layer: input 'x': dim 0 is -1, expected 4
values: data too short: 1 layer: input 'x' needs 48 bytes, its data has 47
values: output too small: 1 layer: output 'y' needs 80 bytes, its buffer has 79
values: no inputs: 1 layer: run_values has a null pointer for its values
values: no outputs: 1 layer: run_values has a null pointer for its values
values: 0 \n\
right: 1
values: the session's buffer: 0 \n\
right: 1
values: the session's buffer again: 0 
right: 1
values: the caller's buffer instead: 0 
right: 1
type float32, rank 2, dims 4 5
"""


def test_wrong_calls(compiled, tmp_path):
    folder = compiled("layer")
    arena = int(re.search(r"LAYER_ARENA_SIZE (\d+)", (folder / "layer.h").read_text())[1])
    assert arena > 0
    expected = RUN_ERRORS.replace("ARENA-1", str(arena - 1)).replace("ARENA", str(arena))
    assert run(link("run_errors.c", [folder], tmp_path / "program", "c11")) == expected


OPEN_BATCH = """\
batch 2: 0 \n\
right: 1
batch 100: 0 \n\
right: 1
batch 0: 1 open_batch: input 'x': dim 0 (batch) is 0, expected 1 to 2147483647
batch -5: 1 open_batch: input 'x': dim 0 (batch) is -5, expected 1 to 2147483647
batch 17: 0 \n\
right: 1
batch 1099511627776: 1 open_batch: input 'x': dim 0 (batch) is 1099511627776, expected 1 to 2147483647
batch 1: 0 \n\
right: 1
batch 64: 0 \n\
right: 1
create: 0 \n\
batch 2: 0 \n\
batch 100: 1 open_batch: the arena has 2048 bytes, expected NEEDED
batch 3: 0 \n\
right: 1
"""


def test_open_batch(compiled, tmp_path):
    printed = run(link("open_batch.c", [compiled("open_batch")], tmp_path / "program", "c11"))
    assert re.sub(r"expected \d+(?=\nbatch 3)", "expected NEEDED", printed) == OPEN_BATCH


def test_weights_file(compiled, tmp_path):
    embedded = run(link("weights_file.c", [compiled("layer")], tmp_path / "embedded"))
    folder = compiled("layer", "--weights", "file")
    program, weights = link("weights_file.c", [folder], tmp_path / "program"), (folder / "layer.weights").read_bytes()
    assert run(program, folder / "layer.weights") == embedded
    assert run(program, cwd=folder) == embedded  # without a path: in the working folder

    other, short, folder_path = tmp_path / "other.weights", tmp_path / "short.weights", tmp_path / "folder.weights"
    other.write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    short.write_bytes(weights[:-1])
    folder_path.mkdir()
    for path, why in [
        (tmp_path / "none.weights", "cannot be read: No such file or directory"),
        (short, f"has {len(weights) - 1} bytes, expected {len(weights)}"),
        (other, "belongs to another model"),
        (folder_path, "is not a plain file"),
    ]:
        assert run(program, path) == f"create: 3 layer: weights file '{path}' {why}\n"
    assert run(program, cwd=tmp_path) == "create: 3 layer: weights file 'layer.weights' cannot be read: No such file or directory\n"
    shutil.copy(folder / "layer.weights", tmp_path)
    assert run(program, cwd=tmp_path) == embedded
