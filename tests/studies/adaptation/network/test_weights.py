"""TensorFlow's layouts: the same function, the same bits there and back, and files that are damaged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from small_models import NAMES, images, small, used

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.network import files as weights
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture
from schedlab.studies.adaptation.network.growth import deepen
from schedlab.studies.adaptation.network.models import Network, build
from schedlab.studies.adaptation.scenario import GrowthSettings

FILES = hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def floats(shape):
    return arrays(np.uint32, shape).map(lambda values: values.view(np.float32))


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Equal shape, type and bits."""
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def flattening(name: str = "convnet2") -> ModelSettings:
    """A small model whose linear layer stands behind a flatten of several channels and pixels."""
    plain = small(name).model_dump(exclude_unset=True)
    plain["blocks"] = [
        {"kind": "flatten"} if block["kind"] == "global_average_pool" else block for block in plain["blocks"]
    ]
    return ModelSettings.model_validate(plain)


def grown(network: Network) -> Network:
    for block in range(network.architecture.deepenable_blocks):
        network = deepen(network, block, GrowthSettings(symmetry_noise=0.1), images(network), seed=block)
    return network


def numpy_forward(built: Architecture, tensors: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Logits of NHWC images by TensorFlow's definitions, in plain numpy: the oracle of the layouts."""
    for layer in built.layers:
        get = {key.rpartition("/")[2]: value for key, value in tensors.items() if key.rpartition("/")[0] == layer.name}
        if layer.kind == "conv":
            pad = (layer.padding, layer.padding)
            windows = np.lib.stride_tricks.sliding_window_view(
                np.pad(x, ((0, 0), pad, pad, (0, 0))), (layer.kernel, layer.kernel), axis=(1, 2)
            )
            x = (
                np.einsum("nyxihw,hwio->nyxo", windows[:, :: layer.stride, :: layer.stride], get["kernel"])
                + get["bias"]
            )
        elif layer.kind == "linear":
            x = x @ get["kernel"] + get["bias"]
        elif layer.kind == "batch_norm":
            x = (x - get["moving_mean"]) / np.sqrt(get["moving_variance"] + 1e-5) * get["gamma"] + get["beta"]
        elif layer.kind == "relu":
            x = np.maximum(x, 0)
        elif layer.kind == "flatten":
            x = x.reshape(len(x), -1)
        elif layer.kind == "global_average_pool":
            x = x.mean((1, 2))
        else:
            rows, columns = (side // 2 * 2 for side in x.shape[1:3])
            x = x[:, :rows, :columns].reshape(len(x), rows // 2, 2, columns // 2, 2, -1).mean((2, 4))
    return x


@pytest.mark.parametrize("name", [*NAMES, "flattening"])
def test_converted_weights_compute_the_same_and_come_back_bit_for_bit(name):
    network = build(architecture(flattening()), 3).eval() if name == "flattening" else used(name)
    network = grown(network)
    state = {key: tensor.numpy() for key, tensor in network.state_dict().items()}
    tensors = weights.to_tensorflow(network.architecture, network.state_dict())
    x = images(network)
    logits = numpy_forward(network.architecture, tensors, x.numpy().transpose(0, 2, 3, 1).astype(np.float64))
    np.testing.assert_allclose(logits, network(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    back = weights.from_tensorflow(network.architecture, tensors)
    assert list(back) == [name for layer in network.architecture.layers for name in (*layer.parameters, *layer.buffers)]
    assert back.keys() == state.keys() and all(same(back[key], state[key]) for key in state)
    twin = Network(network.architecture, {key: torch.from_numpy(array) for key, array in back.items()}).eval()
    assert torch.equal(twin(x), network(x))


def test_names_and_shapes_are_those_of_keras():
    network = used("convnet2")
    tensors = weights.to_tensorflow(network.architecture, network.state_dict())
    assert {name: array.shape for name, array in tensors.items() if name.startswith(("block0", "head"))} == {
        "block0.conv/kernel": (3, 3, 3, 5),
        "block0.conv/bias": (5,),
        "block0.batch_norm/gamma": (5,),
        "block0.batch_norm/beta": (5,),
        "block0.batch_norm/moving_mean": (5,),
        "block0.batch_norm/moving_variance": (5,),
        "head.linear/kernel": (5, 10),
        "head.linear/bias": (10,),
    }


@given(array_shapes(min_dims=4, max_dims=4, max_side=5).flatmap(floats))
def test_kernels_return_to_the_same_bits(array):
    assert same(weights.to_oihw(weights.to_hwio(array)), array)
    assert same(weights.to_hwio(weights.to_oihw(array)), array)
    n, c, h, w = (side - 1 for side in array.shape)
    assert same(weights.to_hwio(array)[h, w, c, n], array[n, c, h, w])


@given(st.data(), array_shapes(min_dims=3, max_dims=3, max_side=4), st.integers(1, 4))
def test_a_dense_kernel_behind_a_flatten_takes_channels_last(data, image, outputs):
    channels, height, width = image
    weight = data.draw(floats((outputs, channels * height * width)))
    kernel = weights.to_dense(weight, image)
    assert same(weights.from_dense(kernel, image), weight)
    assert same(weights.from_dense(weights.to_dense(weight)), weight)
    c, h, w, o = channels - 1, height // 2, width - 1, outputs - 1
    assert same(kernel[(h * width + w) * channels + c, o], weight[o, (c * height + h) * width + w])


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
@FILES
@given(
    st.dictionaries(
        st.sampled_from(["a/kernel", "a/bias", "b.insert1.conv/kernel", "c/gamma"]),
        array_shapes(max_dims=4).flatmap(floats),
    )
)
def test_files_return_the_same_bits(tmp_path, suffix, content):
    path = tmp_path / f"weights{suffix}"
    weights.save(path, content)
    back = weights.load(path)
    assert back.keys() == content.keys() and all(same(back[name], content[name]) for name in content)
    first = path.read_bytes()
    weights.save(path, content)
    assert path.read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.fixture(params=[".npz", ".h5"])
def file(request, tmp_path):
    """A file of a small network's weights."""
    network = used("convnet2")
    path = tmp_path / f"weights{request.param}"
    weights.save(path, weights.to_tensorflow(network.architecture, network.state_dict()))
    return path


@FILES
@given(share=st.floats(0, 0.999))
def test_a_file_cut_off_anywhere_is_refused(file, share):
    whole = file.read_bytes()
    part = file.with_name("part" + file.suffix)
    part.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=r"part\.\w+"):
        weights.load(part)


@FILES
@given(position=st.floats(0, 0.999), flip=st.integers(1, 255))
def test_a_damaged_byte_is_refused_or_harmless(file, position, flip):
    network = used("convnet2")
    expected = weights.to_tensorflow(network.architecture, network.state_dict())
    damaged = bytearray(file.read_bytes())
    damaged[int(position * len(damaged))] ^= flip
    part = file.with_name("part" + file.suffix)
    part.write_bytes(damaged)
    try:
        back = weights.load(part)
        weights.from_tensorflow(network.architecture, back)
    except UserError:
        return
    assert all(same(back[name], expected[name]) for name in expected)


def test_files_that_hold_objects_are_refused(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, **{"a/kernel": np.array([{"x": 1}], dtype=object)}, allow_pickle=True)
    with pytest.raises(UserError, match=r"objects\.npz"):
        weights.load(path)


def test_h5_reads_a_whole_saved_model_and_follows_no_link_out_of_the_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    path, secret = tmp_path / "model.h5", tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 8)
    with h5py.File(path, "w") as handle:
        group = handle.create_group("model_weights")
        group.attrs["layer_names"] = [b"head"]
        layer = group.create_group("head")
        layer.attrs["weight_names"] = ["head/bias:0"]
        layer["head/bias:0"] = np.arange(2.0, dtype=np.float32)
    assert weights.load(path)["head/bias"].tolist() == [0.0, 1.0]
    with h5py.File(path, "a") as handle:
        del handle["model_weights/head/head/bias:0"]
        handle["model_weights/head"].create_dataset("head/bias:0", (2,), "f4", external=[(str(secret), 0, 8)])
    with pytest.raises(UserError, match=r"model\.h5"):
        weights.load(path)
    with h5py.File(tmp_path / "other.h5", "w") as handle:
        handle["secret"] = np.zeros(2, np.float32)
    with h5py.File(path, "a") as handle:
        del handle["model_weights/head/head/bias:0"]
        handle["model_weights/head/head/bias:0"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/secret")
    with pytest.raises(UserError, match=r"model\.h5"):
        weights.load(path)


def test_missing_files_and_unknown_suffixes(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.h5"):
        weights.load(tmp_path / "nothing.h5")
    for call in (lambda: weights.load(tmp_path / "w.pt"), lambda: weights.save(tmp_path / "w.pt", {})):
        with pytest.raises(UserError, match=r"w\.pt.*\.npz"):
            call()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t: t.pop("block0.conv/bias"), r"block0\.conv/bias"),
        (lambda t: t.update({"extra/kernel": np.zeros(1)}), "extra/kernel"),
        (
            lambda t: t.update({"head.linear/kernel": np.zeros((10, 5), np.float32)}),
            r"head\.linear/kernel",
        ),
        (lambda t: t.update({"head.linear/bias": np.zeros(10, np.int32)}), r"head\.linear/bias"),
    ],
)
def test_tensors_that_do_not_fit_the_model(change, text):
    network = used("convnet2")
    tensors = weights.to_tensorflow(network.architecture, network.state_dict())
    change(tensors)
    with pytest.raises(UserError, match=text):
        weights.from_tensorflow(network.architecture, tensors)
    state = dict(network.state_dict())
    state.pop("head.linear.bias")
    with pytest.raises(UserError, match=r"convnet2.*head\.linear\.bias"):
        weights.to_tensorflow(network.architecture, state)
