"""The boundary of the core: checks of input, and views of some rows."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_core import X3, three_node_tree

import ldsm
from ldsm import Forest, _core
from ldsm._arrays.features import feature_arrays
from problems import core_arguments, grow, make_problem, tree_params


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.array([1, 2], dtype=np.int64), "must start at 0"),
        (0, np.array([0, 2, 1], dtype=np.int64), "must not decrease"),
        (0, np.array([0, 1, 9], dtype=np.int64), "must end at the number of entries"),
        (0, np.zeros(0, dtype=np.int64), "must not be empty"),
        (1, np.array([0, 5], dtype=np.int32), "feature numbers of X must lie in"),
        (1, np.array([-1, 0], dtype=np.int32), "feature numbers of X must lie in"),
        (2, np.array([1], dtype=np.float32), "as many values as indices"),
        (2, np.array([1, np.nan], dtype=np.float32), "finite"),
        (3, -1, "n_features must lie in"),
        (4, np.array([0, 1], dtype=np.int64), "row offsets of Y"),
        (5, np.array([3, 0], dtype=np.int32), "label numbers of Y must lie in"),
        (6, -5, "n_labels must lie in"),
    ],
)
def test_checked_rows_refuse_malformed_arrays(position, value, message):
    arguments = [
        np.array([0, 1, 2], dtype=np.int64),
        np.array([0, 1], dtype=np.int32),
        np.array([1, 1], dtype=np.float32),
        2,
        np.array([0, 1, 2], dtype=np.int64),
        np.array([0, 1], dtype=np.int32),
        2,
    ]

    def check():
        return _core.CheckedFeatures(*arguments[:4]), _core.CheckedLabels(*arguments[4:])

    grow(*check(), **tree_params())
    arguments[position] = value
    with pytest.raises(ValueError, match=message):
        check()


@pytest.mark.parametrize(
    "change",
    [
        {"arity": 1}, {"arity": 9}, {"max_nodes": 0}, {"n_epochs": 0}, {"learning_rate": 0.0},
        {"learning_rate": np.inf}, {"integrity_weight": -1.0}, {"multiway_penalty": np.nan},
        {"relaxations": -1}, {"optimizer": "adam"}, {"subsample": 0.0}, {"subsample": 1.5},
    ],
)  # fmt: skip
def test_grow_tree_refuses_bad_parameters(change):
    X, Y = make_problem(0)
    with pytest.raises(ValueError, match=next(iter(change))):
        grow(*core_arguments(X, Y), **tree_params(**change))


def test_mismatched_tree_inputs():
    (x, y), params = core_arguments(*make_problem(0)), SimpleNamespace(**tree_params())
    other = core_arguments(*make_problem(0, n_rows=7))[1]
    with pytest.raises(ValueError, match=r"same number of rows\. Got \d+ and 7"):
        _core.grow_tree(x, other, params, seed=1, tree=0)
    del params.arity
    with pytest.raises(AttributeError, match="arity"):
        _core.grow_tree(x, y, params, seed=1, tree=0)
    params.arity = "2"
    with pytest.raises(TypeError, match="arity must be an int. Got '2'"):
        _core.grow_tree(x, y, params, seed=1, tree=0)
    with pytest.raises(TypeError):
        _core.grow_tree(y, x, params, seed=1, tree=0)


def test_routers_refuse_rows_of_other_features():
    x = feature_arrays(np.ones((1, 3))).checked
    with pytest.raises(ValueError, match="features of the forest, 2. Got 3"):
        _core.route_scores(three_node_tree(), x)


def test_row_slices_same_answers():
    x, (indptr, labels, scores) = (
        X3.checked,
        _core.route_scores(three_node_tree(), X3.checked),
    )
    for start in range(6):
        for stop in range(start, 6):
            part = x.rows(start, stop)
            assert (part.n_rows, part.n_features) == (stop - start, 2)
            some = _core.route_scores(three_node_tree(), part)
            assert np.array_equal(some[0], indptr[start : stop + 1] - indptr[start])
            for found, whole in ((some[1], labels), (some[2], scores)):
                assert np.array_equal(found, whole[indptr[start] : indptr[stop]])
    nested = x.rows(1, 5).rows(1, 3)
    assert _core.route_nodes(three_node_tree(), nested)[1].tolist() == [0, 1, 2, 0, 2]
    for bounds in ((-1, 2), (3, 2), (0, 6), (6, 6)):
        with pytest.raises(ValueError, match="0 <= start <= stop <= 5"):
            x.rows(*bounds)


@pytest.mark.parametrize("optimizer", ["nag", "sgd"])
@pytest.mark.parametrize("kind", ["binary", "weights"])
def test_tree_of_row_slice(kind, optimizer):
    """Also where the values of these rows are of a kind that those of all rows are not."""
    X, Y = make_problem(5, kind, n_rows=60)
    more = np.concatenate([3 * X[:7], X, 3 * X[:7]])
    part = feature_arrays(more).checked.rows(7, 67)
    y = core_arguments(X, Y)[1]
    params = tree_params(optimizer=optimizer)
    trees = [grow(x, y, **params) for x in (feature_arrays(X).checked, part)]
    for name, array in trees[0].items():
        assert array.tobytes() == trees[1][name].tobytes(), name


def test_binary_rows_are_recognised():
    def is_binary(rows, start=0, stop=None):
        x = feature_arrays(np.array(rows, dtype=np.float32))
        checked = _core.CheckedFeatures(x.indptr, x.indices, x.values, x.n_features)
        assert checked.is_binary == x.checked.is_binary
        return checked.rows(start, len(rows) if stop is None else stop).is_binary

    assert is_binary([[2, 0], [0, 2]])
    assert not is_binary([[2, 0], [0, 1]])
    assert not is_binary([[0, 0]])
    assert is_binary([[2, 0], [0, 1], [1, 1], [0, 0]], 1)
    assert not is_binary([[2, 2], [0, 0]], 1)


def test_stubs_describe_the_compiled_module():
    """Names, and argument names, order, kinds and defaults, of _core.pyi against the module."""
    stub = ast.parse(Path(ldsm.__file__).with_name("_core.pyi").read_text())
    written = {n.name: n for n in stub.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    written = {name: node for name, node in written.items() if not name.endswith("Like")}
    compiled = {n for n in dir(_core) if not n.startswith("_") and callable(getattr(_core, n))}
    assert written.keys() == compiled
    for name, node in written.items():
        if isinstance(node, ast.FunctionDef):
            check_stub(node, getattr(_core, name))
            continue
        methods = {
            method.name: method for method in node.body if isinstance(method, ast.FunctionDef)
        }
        cls = getattr(_core, name)
        assert {n for n in dir(cls) if not n.startswith("_")} == methods.keys() - {"__init__"}
        for method, described in methods.items():
            real = getattr(cls, method)
            if not isinstance(real, property):
                check_stub(described, real)


def check_stub(node, function):
    ((text, _, defaults),) = function.__nb_signature__
    # Types of the module and arrays are printed in notations that are not Python's; defaults as
    # \\0, \\1, ...
    text = re.sub(r"ndarray\[[^]]*\]", "object", text)
    real = ast.parse(re.sub(r"\\\d+", "0", text) + ": ...").body[0]
    for kind in ("args", "kwonlyargs"):
        names = [argument.arg for argument in getattr(node.args, kind)]
        assert names == [argument.arg for argument in getattr(real.args, kind)], node.name
    written = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    assert tuple(ast.literal_eval(d) for d in written) == (defaults or ()), node.name


@pytest.mark.long
def test_64_bit_offsets():
    """Offsets beyond 2**31 are followed. The entries are untouched zero pages, without memory."""
    n_rows, per_row = 40_000, 55_000
    nnz = n_rows * per_row
    assert nnz > 2**31
    indices, values = np.zeros(nnz, dtype=np.int32), np.zeros(nnz, dtype=np.float32)
    indptr = np.arange(n_rows + 1, dtype=np.int64) * per_row
    labels = np.arange(n_rows) % 2
    kept = np.flatnonzero(_core.bag_mask(1, 0, n_rows, 0.002))
    indices[kept * per_row] = 1 + labels[kept]  # feature 1 or 2 says which label
    values[kept * per_row] = 1
    assert indptr[kept[-1]] > 2**31
    x = _core.CheckedFeatures(indptr, indices, values, 3)
    y = _core.CheckedLabels(np.arange(n_rows + 1, dtype=np.int64), labels.astype(np.int32), 2)
    tree = grow(x, y, **tree_params(max_nodes=3, subsample=0.002, optimizer="sgd"))
    assert tree["histogram_labels"].tolist() in ([0, 1], [1, 0])  # the children are pure
    assert sorted(tree["histogram_counts"].tolist()) == sorted(np.bincount(labels[kept]).tolist())
    forest = Forest.from_trees([tree], arity=2, n_features=3, n_labels=2)
    found, _ = _core.route_topk(forest, x, 1, np.arange(2, dtype=np.int32))
    assert np.array_equal(found[kept, 0], labels[kept])
