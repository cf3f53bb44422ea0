"""What the layer refuses: each kind of misuse by the words of its error, and right calls of all kinds, which pass."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.pointer_softmax import (
    AlwaysPoint,
    Annotations,
    NeverPoint,
    PointerNetwork,
    PointerSoftmax,
    Switch,
    masked_log_softmax,
)

B, T, J, V, R, E, Q, A = 3, 4, 5, 7, 6, 8, 9, 10
INF = math.inf
TENSOR, ANNOTATIONS = ["log_l"], ["query", "h", "x_mask"]
OTHERS = {  # what a method takes beside readout, evidence and where the decoder looks
    "log_likelihood": ["target", "mask", "candidates"],
    "log_marginal": ["source_words", "y", "mask", "candidates"],
    "forward": ["candidates"],
    "top": ["candidates"],
}
AXES = {
    **{"readout": "BTR", "evidence": "BTE", "log_l": "BTJ", "query": "BTQ", "h": "BJA", "x_mask": "BJ"},
    **{"target": "BT", "y": "BT", "mask": "BT", "source_words": "BJ"},
}


def make(switch=None, network=True):
    return PointerSoftmax(V, R, switch or Switch(E, 12), PointerNetwork(Q, A, 11) if network else None).eval()


def arguments(sizes=None):
    """Right arguments of all methods; `sizes` gives some axes another size."""
    b, t, j, r, e, q, a = ({**globals(), **(sizes or {})}[axis] for axis in "BTJREQA")
    g = torch.Generator().manual_seed(1)
    return {
        "readout": torch.randn(b, t, r, generator=g),
        "evidence": torch.randn(b, t, e, generator=g),
        "log_l": torch.randn(b, t, j, generator=g).log_softmax(-1),
        "query": torch.randn(b, t, q, generator=g),
        "h": torch.randn(b, j, a, generator=g),
        "x_mask": torch.rand(b, j, generator=g) < 0.8,
        "target": torch.randint(V + j, (b, t), generator=g),
        "y": torch.randint(V + j, (b, t), generator=g),
        "mask": torch.rand(b, t, generator=g) < 0.8,
        "source_words": torch.randint(V + j, (b, j), generator=g),
        "candidates": torch.tensor([4, 1, 6]),
    }


def call(layer, method, x, location=TENSOR, k=1):
    """Calls a method of the layer with the arguments that it takes."""
    where = x["log_l"] if location == TENSOR else Annotations(*(x[name] for name in ANNOTATIONS))
    first = [k] if method == "top" else []
    others = {name: x[name] for name in OTHERS[method]}
    return getattr(layer, method)(*first, x["readout"], x["evidence"], where, **others)


def changed(x, at, value):
    """x with another number at one place."""
    x = x.clone()
    x[at] = value
    return x


EVERY = tuple(OTHERS)
JOINT, MARGINAL = ("log_likelihood",), ("log_marginal",)
MISUSE = [  # methods, the argument that is wrong, how, the words that have to be in the error
    # T, B, J and widths
    (JOINT, "target", lambda x: x[:, :-1], r"target \(3, 3\) has T = 3, but readout has T = 4.*readout\[:, :-1\]"),
    (MARGINAL, "y", lambda x: x[:, :-1], r"y \(3, 3\) has T = 3, but readout has T = 4.*y\[:, :-1\] predicts y"),
    (EVERY, "evidence", lambda x: x[:, :-1], r"evidence \(3, 3, 8\) has T = 3, but readout has T = 4"),
    (EVERY, "log_l", lambda x: x[:, :1], r"log_l \(3, 1, 5\) has T = 1, but readout has T = 4"),
    (JOINT, "mask", lambda x: x[:, :1], r"mask \(3, 1\) has T = 1, but readout has T = 4"),
    (EVERY, "log_l", lambda x: x[:1], r"log_l \(1, 4, 5\) has B = 1, but readout has B = 3: .*batch first"),
    (JOINT, "target", lambda x: x.mT, r"target \(4, 3\) has B = 4, but readout has B = 3: .*batch first"),
    (MARGINAL, "source_words", lambda x: x[:, 1:], r"source_words \(3, 4\) has J = 4, but log_l has J = 5"),
    (EVERY, "x_mask", lambda x: x[:, 1:], r"x_mask \(3, 4\) has J = 4, but h has J = 5: .*padding included"),
    (EVERY, "query", lambda x: x[:, 1:], r"query \(3, 3, 9\) has T = 3, but readout has T = 4"),
    (EVERY, "readout", lambda x: x[..., 1:], r"readout .* has R = 5, but the layer has R = 6: .*readout=\.\.\."),
    (EVERY, "evidence", lambda x: x[..., 1:], r"evidence .* has E = 7, but the layer has E = 8: .*evidence=\.\.\."),
    (EVERY, "query", lambda x: x[..., 1:], r"query .* has Q = 8, but the layer has Q = 9: .*query=\.\.\."),
    (EVERY, "h", lambda x: x[..., 1:], r"h .* has A = 9, but the layer has A = 10: .*annotation=\.\.\."),
    (EVERY, "readout", lambda x: x[:, 0], r"readout is \(3, 6\), but has to be \(B, T, R\): .*\.unsqueeze\(1\)"),
    (JOINT, "target", lambda x: x[:, 0], r"target is \(3,\), but has to be \(B, T\): .*target\.unsqueeze\(1\)"),
    (EVERY, "candidates", lambda x: x[None], r"candidates is \(1, 3\), but has to be \(C\): the ids of the words"),
    # kinds, precisions and devices
    (JOINT, "target", lambda x: x.tolist(), "target is of type list, but has to be a tensor: a word's id, or V"),
    (EVERY, "log_l", lambda x: None, r"log_l is of type NoneType, .* or Annotations\(query, h, x_mask\)"),
    (EVERY, "log_l", lambda x: (x, x, x), r"log_l is of type tuple, .* or Annotations\(query, h, x_mask\)"),
    (JOINT, "target", lambda x: x.int(), r"target is int32, but has to be int64.* give target\.long\(\)"),
    (MARGINAL, "y", lambda x: x.float(), r"y is float32, but has to be int64.* give y\.long\(\)"),
    (MARGINAL, "source_words", lambda x: x.int(), r"source_words is int32, .* give source_words\.long\(\)"),
    (EVERY, "candidates", lambda x: x.float(), r"candidates is float32, but has to be int64.*candidates\.long\(\)"),
    (JOINT, "mask", lambda x: x.long(), r"mask is int64, but has to be bool, True at the steps.* give mask\.bool\(\)"),
    (MARGINAL, "mask", lambda x: x.float(), "mask is float32, but has to be bool.* mask > 0 .* mask == 0 if .*-inf"),
    (EVERY, "x_mask", lambda x: x.long(), r"x_mask is int64, but has to be bool.* give x_mask\.bool\(\)"),
    (EVERY, "readout", lambda x: x.long(), r"readout is int64, but has to be float, .* give readout\.float\(\)"),
    (EVERY, "readout", lambda x: x.bfloat16(), "readout is bfloat16, but the layer is float32: .*autocast"),
    (EVERY, "readout", lambda x: x.double(), "readout is float64, but the layer is float32"),
    (EVERY, "evidence", lambda x: x.double(), "evidence is float64, but readout is float32: .*does not mix"),
    (EVERY, "log_l", lambda x: x.double(), r"log_l is float64, but readout is float32: .*log_l\.to\(readout\.dtype"),
    (EVERY, "h", lambda x: x.half(), "h is float16, but the layer is float32"),
    (JOINT, "target", lambda x: x.to("meta"), r"target is on meta, but readout is on cpu: .*\.to\(readout\.device\)"),
    (EVERY, "readout", lambda x: x.to("meta"), r"readout is on meta, but the layer is on cpu"),
    # values
    (JOINT, "target", lambda x: changed(x, (0, 2), -100), r"-100 at target\[0, 2\].* mask=target != -100"),
    (MARGINAL, "y", lambda x: changed(x, (0, 2), -100), r"-100 at y\[0, 2\].* mask=y != -100"),
    (JOINT, "target", lambda x: changed(x, (0, 1), -1), r"target is -1 at target\[0, 1\], .*left out by the mask"),
    (JOINT, "target", lambda x: changed(x, (0, 1), V + J), "target is 12 at .*below V = 7, .* 11 at most as J = 5"),
    (MARGINAL, "y", lambda x: changed(x, (0, 1), V + J), "y is 12 at .*below V = 7, .* 11 at most as J = 5"),
    (MARGINAL, "source_words", lambda x: changed(x, (0, 1), V + J), "source_words is 12 at .* 11 at most"),
    (MARGINAL, "source_words", lambda x: changed(x, (0, 1), -1), "source_words is -1 at .* At padding any of these"),
    (EVERY, "candidates", lambda x: changed(x, 2, V), r"candidates is 7 at candidates\[2\], .* a word's id, 0 to 6"),
    (EVERY, "candidates", lambda x: changed(x, 0, -1), r"candidates is -1 at candidates\[0\], .* a word's id, 0 to 6"),
    (EVERY, "candidates", lambda x: x[:0], "candidate words is empty: give at least one word id, or None for all"),
    (EVERY, "log_l", lambda x: x.exp(), r"log_l\[0, 0\] are probabilities, .* give log_l\.log\(\)"),
    (EVERY, "log_l", lambda x: 3 * x, r"log_l\[0, 0\] are no logs of probabilities: .* not to 1\. Scores are given"),
    (EVERY, "log_l", lambda x: x - x, "no logs of probabilities: exp.* sums to 5 there, .*masked_log_softmax"),
    (EVERY, "log_l", lambda x: x - 1000, "no logs of probabilities: exp.* sums to 0 there"),
    (EVERY, "log_l", lambda x: changed(x, (0, 1, 0), -INF), r"log_l\[0, 1\] are no logs .* without dropout"),
    (EVERY, "log_l", lambda x: changed(x, (0, 1), math.nan), r"log_l\[0, 1\] has NaN.* masked_log_softmax"),
]


@pytest.mark.parametrize(("methods", "name", "wrong", "words"), MISUSE, ids=[row[3] for row in MISUSE])
def test_a_wrong_argument_is_refused_in_words(methods, name, wrong, words):
    location = ANNOTATIONS if name in ANNOTATIONS else TENSOR
    for method in methods:
        x = arguments()
        x["mask"][0] = True
        call(make(), method, x, location)
        x[name] = wrong(x[name])
        with pytest.raises(ValueError, match=words):
            call(make(), method, x, location)


def test_log_f_and_the_sources_words_have_to_fit():
    layer, x = make(), arguments()
    log_f, words = layer(x["readout"], x["evidence"], x["log_l"]), x["source_words"]
    for f, source_words, message in [
        (log_f[..., :-1], words, r"log_f has 11 columns, but V \+ J = 7 \+ 5 = 12 are expected: give what .*forward"),
        (log_f, words[:, :-1], r"log_f has 12 columns, but V \+ J = 7 \+ 4 = 11 are expected"),
        (log_f, words[:2], r"source_words \(2, 5\) has B = 2, but log_f has B = 3"),
        (log_f[:, 0], words, r"log_f is \(3, 12\), but has to be \(B, T, F\): .*log_f\.unsqueeze\(1\)"),
        (log_f, words.int(), r"source_words is int32, but has to be int64"),
        (log_f, words - 20, r"source_words is -\d+ at source_words\[0, 0\]"),
        (log_f.exp(), words, "log_f has positive numbers, and logs of probabilities have none"),
    ]:
        with pytest.raises(ValueError, match=message):
            layer.marginalize(f, source_words)
    assert layer.marginalize(log_f[:, :0], words).shape == (B, 0, V + J)


@pytest.mark.parametrize("k", [0, -1, 9, 1.0, True, None])
def test_there_are_no_more_choices_than_words_and_positions(k):
    layer, x = make(), arguments()
    call(layer, "top", x, k=8)  # three candidates and five positions
    with pytest.raises(ValueError, match=f"k is {k}, but has to be a whole number from 1 to 8: there are no more"):
        call(layer, "top", x, k=k)


def test_annotations_need_a_pointer_network():
    for method in EVERY:
        with pytest.raises(ValueError, match=r"no pointer network to read them: .*network=PointerNetwork\("):
            call(make(network=False), method, arguments(), ANNOTATIONS)


def test_a_pointer_network_alone_refuses_the_same():
    network, x = PointerNetwork(Q, A), arguments()
    with pytest.raises(ValueError, match=r"query .* has Q = 8, but the layer has Q = 9"):
        network(Annotations(x["query"][..., 1:], x["h"], x["x_mask"]))
    with pytest.raises(ValueError, match=r"h \(2, 5, 10\) has B = 2, but query has B = 3"):
        network(Annotations(x["query"], x["h"][1:], x["x_mask"]))
    with pytest.raises(ValueError, match=r"at is of type tuple, but has to be Annotations\(\.\.\.\)"):
        network((x["query"], x["h"], x["x_mask"]))


def test_a_masked_softmax_takes_a_mask_of_booleans_with_the_scores_axes():
    e, x_mask = torch.randn(J, J, J), torch.ones(J, J, dtype=torch.bool)  # of equal sizes, any axes would broadcast
    masked_log_softmax(e, x_mask.unsqueeze(1))
    for mask, message in [
        (x_mask, r"mask is \(5, 5\), but e is \(5, 5, 5\): .* given as x_mask\.unsqueeze\(1\)"),
        (x_mask[:4].unsqueeze(1), r"mask is \(4, 1, 5\), but e is \(5, 5, 5\)"),
        (x_mask.long().unsqueeze(1), r"mask is int64, but has to be bool.* give mask\.bool\(\)"),
        (x_mask.float().unsqueeze(1), "mask is float32, but has to be bool"),
        (None, "mask is of type NoneType, but has to be a tensor"),
    ]:
        with pytest.raises(ValueError, match=message):
            masked_log_softmax(e, mask)
    with pytest.raises(ValueError, match="e is int64, but has to be float"):
        masked_log_softmax(e.long(), x_mask.unsqueeze(1))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Switch(E, 3, activation="gelu"), "activation is 'gelu', but has to be one of 'relu', 'tanh', 'noisy"),
        (lambda: Switch(E, 3, layers=-1), "layers is -1, but has to be a whole number of at least 0"),
        (lambda: Switch(E, 3, layers=1.5), "layers is 1.5, but has to be a whole number"),
        (lambda: Switch(E, 0), "hidden is 0, but has to be a whole number of at least 1"),
        (lambda: Switch(0, 3), "evidence is 0, but has to be a whole number of at least 1"),
        (lambda: Switch(E, 3, bias=INF), "bias is inf, but has to be a finite number"),
        (lambda: Switch(E, 3, bias=None), "bias is None, but has to be a finite number"),
        (lambda: Switch(E, 3, inverse_temperature=0), "inverse_temperature is 0, but has to be more than 0"),
        (lambda: PointerNetwork(Q, -1), "annotation is -1, but has to be a whole number of at least 1"),
        (lambda: PointerNetwork("9", A), "query is '9', but has to be a whole number of at least 1"),
        (lambda: PointerNetwork(Q, A, 0), "hidden is 0, but has to be a whole number of at least 1"),
        (lambda: PointerSoftmax(0, R, Switch(E, 3)), "words is 0, but has to be a whole number of at least 1"),
        (lambda: PointerSoftmax(V, 0, Switch(E, 3)), "readout is 0, but has to be a whole number of at least 1"),
        (lambda: PointerSoftmax(V, R, NeverPoint), "switch is a class, .* call it, NeverPoint"),
        (lambda: PointerSoftmax(V, R, None), r"switch is of type NoneType, but has to be Switch\(...\) or NeverPoint"),
        (lambda: PointerSoftmax(V, R, torch.nn.Linear(E, 1)), "switch is of type Linear, but has to be Switch"),
        (lambda: PointerSoftmax(V, R, NeverPoint(), shortlist=Q), r"shortlist is of type int, .* Linear\(\.\.\.\)"),
        (lambda: PointerSoftmax(V, R, NeverPoint(), shortlist=torch.nn.Linear(V, R)), r"is \(6, 7\), .* \(7, 6\)"),
        (lambda: PointerSoftmax(V, R, AlwaysPoint(), shortlist=torch.nn.Linear(R, V)), "AlwaysPoint.* leave it out"),
        (lambda: PointerSoftmax(V, R, NeverPoint(), Q), r"network is of type int, .* PointerNetwork\(\.\.\.\) or None"),
    ],
)
def test_a_layer_that_makes_no_sense_is_not_built(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("location", [TENSOR, ANNOTATIONS])
@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize(
    "sizes",
    [{}, {"T": 0}, {"J": 0}, {"B": 0}, {"T": 1, "J": 1}],
    ids=["all", "no step", "no source", "no example", "one"],
)
def test_right_calls_pass(method, location, sizes):
    x = arguments(sizes)
    for switch in (Switch(E, 3), Switch(E, 3, layers=0), NeverPoint(), AlwaysPoint()):
        for without in ([], ["mask"], ["candidates"]):
            result = call(make(switch), method, x | dict.fromkeys(without), location)
            shape = (result[0] if method == "top" else result).shape
            assert shape[:2] == (sizes.get("B", B), sizes.get("T", T))


def test_what_a_step_that_does_not_count_holds_is_not_looked_at():
    layer, x = make(), arguments()
    x["mask"] = torch.rand(B, T) < 0.5
    expected = [call(layer, method, x) for method in ("log_likelihood", "log_marginal")]
    for name, value in [("target", -100), ("y", -100), ("log_l", math.nan), ("readout", INF), ("evidence", math.nan)]:
        x[name][~x["mask"]] = value
    for method, log_p in zip(("log_likelihood", "log_marginal"), expected, strict=True):
        torch.testing.assert_close(call(layer, method, x), log_p)


def test_sources_with_nothing_to_copy_pass():
    x = arguments()
    x["log_l"][0], x["x_mask"][0], x["target"][0] = -INF, False, 2
    for method in EVERY:
        for location in (TENSOR, ANNOTATIONS):
            call(make(), method, x, location)
    assert call(make(), "log_likelihood", x)[0].isfinite().all()


def test_targets_without_pointers_and_of_pointers_alone_pass():
    x = arguments()
    for target in (x["target"] % V, V + x["target"] % J):
        assert call(make(), "log_likelihood", x | {"target": target}).isfinite().all()


def test_a_layer_of_no_words_may_always_point():
    x = arguments()
    layer = PointerSoftmax(0, R, AlwaysPoint())
    torch.testing.assert_close(layer(x["readout"], x["evidence"], x["log_l"]), x["log_l"])


def test_a_part_that_reads_nothing_takes_any_width():
    x = arguments()
    call(make(NeverPoint()), "log_likelihood", x | {"evidence": x["readout"]})
    call(make(AlwaysPoint()), "log_likelihood", x | {"readout": x["evidence"]})


def test_a_layer_with_a_pointer_network_takes_its_log_probabilities_too():
    layer, x = make(), arguments()
    x["log_l"] = layer.network(Annotations(*(x[name] for name in ANNOTATIONS)))
    for method in EVERY:
        torch.testing.assert_close(call(layer, method, x), call(layer, method, x, ANNOTATIONS))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("location", [TENSOR, ANNOTATIONS])
def test_half_precision_passes_as_a_whole_or_under_autocast(dtype, location):
    x = arguments({"J": 400, "Q": Q})
    halves = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in x.items()}
    for method in EVERY:
        call(make().to(dtype), method, halves, location)
        with torch.autocast("cpu", dtype):
            call(make(), method, x, location)
            call(make(), method, halves, location)


def test_float64_passes_as_a_whole():
    x = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in arguments().items()}
    for method in EVERY:
        call(make().double(), method, x)
        call(make().double(), method, x, ANNOTATIONS)


def test_values_are_not_looked_at_where_that_is_not_wanted():
    layer = PointerSoftmax(V, R, Switch(E, 3), check_values=False)
    x = arguments()
    x["log_l"] = x["log_l"] + 1
    assert call(layer, "log_likelihood", x).isfinite().all()
    with pytest.raises(ValueError, match="has T = 3"):
        call(layer, "log_likelihood", x | {"target": x["target"][:, 1:]})


def test_a_compiled_layer_keeps_one_graph():
    layer, x = make(), arguments()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    args = x["readout"], x["evidence"], x["log_l"]
    torch.testing.assert_close(compiled(*args), layer(*args))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_axis_of_another_size_is_refused(data):
    method = data.draw(st.sampled_from(EVERY))
    location = data.draw(st.sampled_from([TENSOR, ANNOTATIONS]))
    sizes = {axis: data.draw(st.integers(1, 5)) for axis in "BTJ"}
    names = ["readout", "evidence", *location, *(name for name in OTHERS[method] if name != "candidates")]
    known = "REQA" + "".join(AXES[name] for name in names)  # the layer knows its widths
    name = data.draw(st.sampled_from(names))
    axis = data.draw(st.sampled_from([axis for axis in AXES[name] if axis in "REQA" or known.count(axis) > 1]))
    size = sizes.get(axis) or globals()[axis]
    off = arguments(sizes | {axis: data.draw(st.integers(0, 6).filter(lambda n: n != size))})[name]
    x = arguments(sizes)
    call(make(), method, x, location)
    with pytest.raises(ValueError, match=re.escape(f"has {axis} = ")):
        call(make(), method, x | {name: off}, location)
