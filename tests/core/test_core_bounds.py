"""The core never reads or writes outside the bounds of an array.

A test here can only see errors that are raised. Under `make sanitize` the same tests also end at
the first access outside an array, and at the first misaligned one.
"""

import numpy as np
import pytest
from test_core import X3, three_node_tree

from ldsm import _core
from ldsm._arrays.features import feature_arrays
from matching import shortlists
from problems import core_arguments, grow, make_problem, tree_params

ARRAYS = [name for name, value in vars(three_node_tree()).items() if isinstance(value, np.ndarray)]
FILL = np.arange(3, dtype=np.int32)
LARGEST = 2**31 - 1


def misaligned(array):
    """The same numbers, one byte off: legal in NumPy, undefined in C++."""
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = np.ndarray(array.shape, array.dtype, memory, offset=1)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def strided(array):
    return np.repeat(array, 2, axis=0)[::2]


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


def reshaped(array):
    return array[None]


def with_maps(forest):
    forest.feature_maps = _core.feature_maps(forest)
    return forest


def route_all(forest, x=X3):
    """Everything that reads a forest."""
    x = x.checked
    _core.route_scores(forest, x)
    _core.route_topk(forest, x, 1, np.arange(forest.n_labels, dtype=np.int32))
    _core.route_nodes(forest, x)
    shortlists(forest, x, 2, [])
    _core.feature_maps(forest)


# -- rows --------------------------------------------------------------------------------------

ROWS = (X3.indptr, X3.indices, X3.values)


@pytest.mark.parametrize("spoil", [misaligned, strided, swapped, reshaped])
def test_rows_must_be_plain_arrays(spoil):
    for position in range(3):
        spoilt = [*ROWS]
        spoilt[position] = spoil(spoilt[position])
        with pytest.raises((ValueError, TypeError)):
            _core.CheckedFeatures(*spoilt, 2)
    labels = [np.array([0, 1, 2], np.int64), np.array([0, 1], np.int32)]
    for position in range(2):
        spoilt = [*labels]
        spoilt[position] = spoil(spoilt[position])
        with pytest.raises((ValueError, TypeError)):
            _core.CheckedLabels(*spoilt, 2)


def test_misaligned_rows_are_not_canonical():
    assert _core.CheckedFeatures.if_canonical(*ROWS, 2) is not None
    for position in range(3):
        spoilt = [*ROWS]
        spoilt[position] = misaligned(spoilt[position])
        assert _core.CheckedFeatures.if_canonical(*spoilt, 2) is None


@pytest.mark.parametrize("n_features", [-1, 1, 0, LARGEST, 2**62])
def test_other_widths_are_not_canonical(n_features):
    assert _core.CheckedFeatures.if_canonical(*ROWS, n_features) is None
    with pytest.raises(ValueError, match="must lie in"):
        _core.CheckedFeatures(*ROWS, n_features)


@pytest.mark.parametrize(
    ("position", "numbers"),
    [(1, [0, 1, 1, 0, 0]), (1, [0, 1, 1, 1, 0]), (2, [1, 1, 0, 1, 1]), (2, [1, 1, 1, -0.0, 1])],
)
def test_legal_non_canonical_rows(position, numbers):
    x = [*ROWS]
    x[position] = np.array(numbers, dtype=x[position].dtype)
    assert _core.CheckedFeatures.if_canonical(*x, 2) is None
    assert _core.CheckedFeatures(*x, 2).n_rows == 5


def test_checked_rows_keep_their_arrays():
    """Nothing else refers to the arrays; parts keep them alive, too."""
    x = feature_arrays(np.eye(3, 2)).checked
    y = core_arguments(np.eye(3, 2), np.eye(3, 2, dtype=int))[1]
    part = x.rows(1, 3)
    del x
    assert _core.route_nodes(three_node_tree(), part)[1].tolist() == [0, 2, 0, 2]
    assert (y.n_rows, y.n_labels) == (3, 2)


BROKEN_ROWS = {
    "offsets start late": (0, [1, 1, 2, 4, 4, 5]),
    "offsets fall": (0, [0, 2, 1, 4, 4, 5]),
    "offsets beyond the end": (0, [0, 1, 2, 4, 4, 6]),
    "offsets end early": (0, [0, 1, 2, 4, 4, 4]),
    "offsets wrap": (0, [0, 2**62, 2, 4, 4, 5]),
    "no offsets": (0, []),
    "feature too large": (1, [0, 1, 0, 1, 2]),
    "feature far too large": (1, [0, 1, 0, 1, LARGEST]),
    "feature negative": (1, [0, 1, 0, 1, -1]),
    "a feature too few": (1, [0, 1, 0, 1]),
    "a value too few": (2, [1, 1, 1, 1]),
    "not finite": (2, [1, 1, 1, 1, np.inf]),
}


@pytest.mark.parametrize("case", BROKEN_ROWS)
def test_broken_rows_are_refused(case):
    position, numbers = BROKEN_ROWS[case]
    x = [*ROWS]
    x[position] = np.array(numbers, dtype=x[position].dtype)
    with pytest.raises(ValueError, match="X must"):
        _core.CheckedFeatures(*x, 2)
    assert _core.CheckedFeatures.if_canonical(*x, 2) is None


@pytest.mark.parametrize("labels", [[1, 1], [1, 0]])
def test_labels_rise_within_a_row(labels):
    with pytest.raises(ValueError, match=r"must rise within a row. Got 1 then . in row 0"):
        _core.CheckedLabels(np.array([0, 2]), np.array(labels, np.int32), 2)


# -- what goes with the rows -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must lie in"),
        ({"k": 4}, "k must lie in"),
        ({"k": -1}, "k must lie in"),
        ({"k": 2**62}, "k must lie in"),
        ({"k": 3, "allowed": np.array([1, 0, 1], np.uint8)}, r"k must lie in \[1, 2\]"),
        ({"allowed": np.zeros(3, np.uint8)}, r"k must lie in \[1, 0\]"),
        ({"allowed": np.ones(2, np.uint8)}, "one entry per label"),
        ({"allowed": np.ones(4, np.uint8)}, "one entry per label"),
        ({"fill_order": FILL[:2]}, "one entry per label"),
        ({"fill_order": np.zeros(0, np.int32)}, "one entry per label"),
        ({"fill_order": misaligned(FILL)}, "aligned"),
        ({"skip": np.zeros((4, 1), np.uint8)}, "one row per row of X"),
        ({"skip": np.zeros((5, 2), np.uint8)}, "one column per tree"),
        ({"skip": np.zeros((5, 0), np.uint8)}, "one column per tree"),
        ({"cancel": np.zeros(0, np.int32)}, "arrays of one number"),
        ({"cancel": np.zeros(2, np.int32)}, "arrays of one number"),
        ({"cancel": misaligned(np.zeros(1, np.int32))}, "aligned"),
        ({"simd": ""}, "SIMD path must be one of"),
        ({"simd": "avx2\0"}, "SIMD path must be one of"),
    ],
)
def test_router_value_errors(change, message):
    arguments = {"k": 1, "fill_order": FILL, **change}
    with pytest.raises(ValueError, match=message):
        _core.route_topk(three_node_tree(), X3.checked, **arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"k": 2**64},
        {"k": 1.5},
        {"allowed": np.ones(3, bool)},
        {"allowed": np.ones(6, np.uint8)[::2]},
        {"skip": np.zeros(5, np.uint8)},
        {"skip": np.zeros((5, 2), np.uint8)[:, :1]},
        {"fill_order": FILL.astype(np.int64)},
        {"cancel": np.zeros(1, np.int64)},
        {"simd": None},
    ],
)
def test_router_type_errors(change):
    arguments = {"k": 1, "fill_order": FILL, **change}
    with pytest.raises(TypeError):
        _core.route_topk(three_node_tree(), X3.checked, **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"progress": np.zeros(0, np.int64)}, "arrays of one number"),
        ({"progress": np.zeros(9, np.int64)}, "arrays of one number"),
        ({"progress": misaligned(np.zeros(1, np.int64))}, "aligned"),
        ({"cancel": np.zeros(3, np.int32)}, "arrays of one number"),
        ({"max_nodes": LARGEST}, "max_nodes must lie in"),
        ({"max_nodes": 2**62}, "max_nodes must lie in"),
        ({"max_nodes": -1}, "max_nodes must lie in"),
        ({"memory_limit": 0}, "memory_limit"),
        ({"relaxations": 65}, "relaxations"),
        ({"subsample": np.nan}, "subsample"),
    ],
)
def test_grow_tree_value_errors(change, message):
    with pytest.raises(ValueError, match=message):
        grow(*core_arguments(*make_problem(0)), **tree_params(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"tree": -1},
        {"tree": 2**64},
        {"seed": -1},
        {"arity": 2**40},
        {"n_epochs": 2**31},
        {"max_nodes": 2**63},
        {"progress": np.zeros(1, np.int32)},
        {"cancel": [0]},
    ],
)
def test_grow_tree_type_errors(change):
    with pytest.raises(TypeError):
        grow(*core_arguments(*make_problem(0)), **tree_params(**change))


def test_frozen_arrays_are_not_written():
    for name, dtype in (("cancel", np.int32), ("progress", np.int64)):
        frozen = np.zeros(1, dtype)
        frozen.flags.writeable = False
        with pytest.raises(TypeError):
            grow(*core_arguments(*make_problem(0)), **tree_params(), **{name: frozen})


def test_extreme_seeds():
    for seed, tree in ((0, 2**64 - 1), (2**64 - 1, 0)):
        grown = grow(*core_arguments(*make_problem(0)), **tree_params(seed=seed, tree=tree))
        assert len(grown["first_child"]) > 1
        assert sorted(_core.row_order(seed, tree, 9, 1.0)) == list(range(9))


@pytest.mark.parametrize("function", [_core.bag_mask, _core.row_order])
def test_row_numbers_are_bounded(function):
    assert len(function(0, 0, 0, 1.0)) == 0
    for n_rows, subsample in ((-1, 1.0), (2**31, 1.0), (5, 0.0), (5, 1.1), (5, np.nan)):
        with pytest.raises(ValueError, match="must lie in"):
            function(0, 0, n_rows, subsample)


# -- forests made by hand ----------------------------------------------------------------------


@pytest.mark.parametrize("spoil", [misaligned, strided, swapped, reshaped])
@pytest.mark.parametrize("name", ARRAYS)
def test_forests_must_be_plain_arrays(name, spoil):
    array = getattr(three_node_tree(), name)
    if len(array) == 0:
        array = np.zeros(3, array.dtype)
    for route in (route_all, _core.feature_maps):
        with pytest.raises(ValueError, match=f"forest's {name} must be a contiguous, aligned"):
            route(three_node_tree(**{name: spoil(array)}))


@pytest.mark.parametrize("name", ARRAYS)
def test_forest_array_lengths(name):
    array = getattr(three_node_tree(), name)
    longer = np.concatenate([array, np.ones((1, *array.shape[1:]), array.dtype)])
    for changed in (longer, array[:0], array[:-1]):
        if len(changed) == len(array) or (name == "tree_offsets" and len(changed) == 1):
            continue  # no means at all, and no trees at all, are allowed
        with pytest.raises(ValueError, match=r"do not fit each other|outside the forest"):
            route_all(three_node_tree(**{name: changed}))


@pytest.mark.parametrize("name", ["arity", "n_features", "n_labels"])
@pytest.mark.parametrize("value", [-1, 2**31, 2**63, "2", 2.5, None])
def test_forest_sizes(name, value):
    with pytest.raises(ValueError, match=name):
        _core.route_scores(three_node_tree(**{name: value}), X3.checked)


@pytest.mark.parametrize("places", [[0, 1, 1], [0, 1, 3], [0, 1, -1], [2, 2, 2, 2]])
def test_label_places_are_unique(places):
    forest = three_node_tree(places=np.array(places, dtype=np.int32))
    with pytest.raises(ValueError, match="places of labels must be their numbers, each once"):
        shortlists(forest, X3.checked, 2, [])


def test_foreign_feature_maps():
    forest = with_maps(three_node_tree())
    route_all(forest)
    maps = forest.feature_maps
    for wrong in (maps[:-1], np.repeat(maps, 2), misaligned(maps), maps.astype(np.int64), [1]):
        forest.feature_maps = wrong
        with pytest.raises(ValueError, match="feature_maps"):
            route_all(forest)
    # Maps of any content lead nowhere outside.
    n_nodes = len(forest.first_child)
    for noise in (np.uint64(2**64 - 1), np.uint64(2**63), np.uint64(0)):
        forest.feature_maps = maps.copy()
        forest.feature_maps[n_nodes:] = noise
        route_all(forest)
        forest.feature_maps[:n_nodes] = noise
        if noise:
            with pytest.raises(ValueError, match="it has no feature map"):
                route_all(forest)


def test_standardized_forest_has_no_maps():
    """Its rows are laid out otherwise: the walk that uses maps would read past them."""
    numbers = np.ones(3, np.float32)
    forest = with_maps(three_node_tree(weight_means=numbers, weight_scales=numbers))
    for n_rows in (1, 5):
        x = feature_arrays(np.ones((n_rows, 2))).checked
        with pytest.raises(ValueError, match="None if its features are standardised"):
            _core.route_scores(forest, x)


def grown_forest(rng, standardize):
    X, Y = make_problem(int(rng.integers(99)), n_rows=60, n_features=9, n_labels=7)
    trees = [
        grow(
            *core_arguments(X, Y),
            **tree_params(tree=t, arity=3, standardize=standardize, multiway_penalty=0.5),
        )
        for t in range(2)
    ]
    from ldsm import Forest

    forest = Forest.from_trees(trees, arity=3, n_features=9, n_labels=7)
    names = [name for name in ARRAYS if hasattr(forest, name)]
    plain = three_node_tree(arity=3, n_features=9, n_labels=7)
    for name in names:
        setattr(plain, name, getattr(forest, name).copy())
    if rng.random() < 0.5:  # the last labels were dropped
        plain.n_labels, plain.places = 5, rng.permutation(7).astype(np.int32)
    return plain, feature_arrays(X)


def damage(rng, forest):
    """A few numbers of a few arrays replaced; sizes changed now and then."""
    for _ in range(int(rng.integers(1, 4))):
        name = ARRAYS[rng.integers(len(ARRAYS))]
        array = getattr(forest, name).copy()
        if array.size == 0:
            continue
        if rng.random() < 0.1:
            forest.arity, forest.n_features, forest.n_labels = rng.integers(0, 12, 3).tolist()
            continue
        flat = array.reshape(-1)
        at = rng.integers(len(flat), size=int(rng.integers(1, 4)))
        info = np.iinfo(array.dtype) if array.dtype.kind == "i" else np.finfo(array.dtype)
        near = flat[rng.integers(len(flat))]
        odd = [0, 1, -1, info.min, info.max, near, near + 1, near - 1, len(flat), len(flat) + 1]
        if array.dtype.kind == "f":
            odd += [np.nan, np.inf, -np.inf]
        with np.errstate(over="ignore"):
            flat[at] = np.array(odd, dtype=np.float64 if array.dtype.kind == "f" else np.int64)[
                rng.integers(len(odd))
            ]
        setattr(forest, name, array)


def run_damaged_forests(count, seed):
    """Every router on forests with damaged arrays: an answer or a ValueError; counts of both."""
    rng = np.random.default_rng(seed)
    whole = [grown_forest(rng, standardize) for standardize in (False, True) for _ in range(3)]
    answered = refused = 0
    for _ in range(count):
        forest, x = whole[rng.integers(len(whole))]
        forest = three_node_tree(**vars(forest))
        if rng.random() < 0.5 and not len(forest.weight_means):
            forest.feature_maps = _core.feature_maps(forest)
        damage(rng, forest)
        rows = x.rows(0, int(rng.choice([1, 8, x.n_rows])))
        try:
            route_all(forest, rows)
            answered += 1
        except ValueError:
            refused += 1
    assert answered > 0.05 * count and refused > 0.2 * count, (answered, refused)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_damaged_forests():
    run_damaged_forests(1000, seed=0)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_50_000_damaged_forests():
    run_damaged_forests(50_000, seed=1)


# -- text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [-1, 2**62 + 1, 2**63 - 1])
def test_line_numbers_cannot_wrap(line):
    with pytest.raises(ValueError, match="first_line must lie in"):
        _core.parse_text(b"x", name="text", first_line=line)
    with pytest.raises(ValueError, match=f"text:{2**62}: "):
        _core.parse_text(b"x", name="text", first_line=2**62)


@pytest.mark.parametrize("limits", [{"n_features": -1}, {"n_features": LARGEST}, {"n_labels": -1}])
def test_text_limits_are_bounded(limits):
    with pytest.raises(ValueError, match="must lie in"):
        _core.parse_text(b"", name="text", **limits)


@pytest.mark.parametrize("spoil", [misaligned, strided, swapped, reshaped])
def test_written_rows_must_be_plain_arrays(spoil):
    rows = [np.array([0, 1]), np.array([0], np.int32), np.array([1], np.float32)]
    rows += [np.array([0, 1]), np.array([0], np.int32)]
    assert _core.format_text(*rows) == b"0 0:1\n"
    if spoil is strided:  # a single number is contiguous whatever its stride
        rows = [np.array([0, 2]), *(np.repeat(array, 2) for array in rows[1:3])]
        rows += [np.array([0, 2]), np.array([0, 1], np.int32)]
    for position in range(5):
        spoilt = [*rows]
        spoilt[position] = spoil(spoilt[position])
        with pytest.raises((ValueError, TypeError)):
            _core.format_text(*spoilt)
