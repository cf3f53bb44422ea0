import pytest

from pointing.evaluation.copy_metrics import switch_scores
from pointing.evaluation.plots import learning_curves, reliability

CURVE = [(100.0, 50.0), (200.0, 20.0)]


@pytest.mark.parametrize("panels", [1, 3, 4])
@pytest.mark.parametrize("name", ["x.png", "x.svg"])
def test_a_picture_has_its_titles_and_labels(tmp_path, panels, name):
    given = {f"panel {n}": {"softmax": [CURVE, CURVE], "pointer softmax": [CURVE]} for n in range(panels)}
    learning_curves(tmp_path / name, given, "updates", "error (%)")
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    if name.endswith("svg"):
        text = content.decode()
        assert all(f"panel {n}" in text for n in range(panels))
        assert text.count("pointer softmax") == 1
    assert list(tmp_path.iterdir()) == [tmp_path / name]


@pytest.mark.parametrize("name", ["x.png", "x.svg"])
def test_a_reliability_plot_has_a_line_a_system_and_none_for_empty_bins(tmp_path, name):
    bins = switch_scores([0.1, 0.15, 0.9], [False, True, True]).bins
    reliability(tmp_path / name, {"one system": bins, "another": bins[2:8]})
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    if name.endswith("svg"):
        assert all(f"<!-- {text} -->" in content.decode() for text in ("one system", "another", "steps"))
    assert list(tmp_path.iterdir()) == [tmp_path / name]
