"""Every operation against NumPy; and that stubs and tests know every method."""

import ast
import inspect
import math
import re
import unittest
from pathlib import Path

import numpy as np
import tidemill

RANDOM = np.random.default_rng(11)
ERF = np.vectorize(math.erf, otypes=[np.float64])
SELU = 1.0507009873554805, 1.6732632423543772


def array(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def tanh_gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# Of one operand: the function, and what is done to a normal number first, so that it is defined there.
UNARY = {
    "neg": (np.negative, None),
    "abs": (np.abs, None),
    "sign": (np.sign, None),
    "floor": (np.floor, None),
    "ceil": (np.ceil, None),
    "round": (np.round, None),
    "sqrt": (np.sqrt, np.abs),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: np.abs(x) + 0.1),
    "recip": (lambda x: 1 / x, lambda x: np.abs(x) + 0.1),
    "exp": (np.exp, None),
    "log": (np.log, lambda x: np.abs(x) + 0.1),
    "sin": (np.sin, None),
    "cos": (np.cos, None),
    "erf": (ERF, None),
    "trunc": (np.trunc, None),
    "exp2": (np.exp2, None),
    "expm1": (np.expm1, None),
    "log2": (np.log2, lambda x: np.abs(x) + 0.1),
    "log1p": (np.log1p, np.abs),
    "sinh": (np.sinh, None),
    "cosh": (np.cosh, None),
    "asinh": (np.arcsinh, None),
    "acosh": (np.arccosh, lambda x: np.abs(x) + 1.1),
    "atanh": (np.arctanh, lambda x: np.tanh(x) * 0.9),
    "asin": (np.arcsin, lambda x: np.tanh(x) * 0.9),
    "acos": (np.arccos, lambda x: np.tanh(x) * 0.9),
    "atan": (np.arctan, None),
    "erfc": (lambda x: 1 - ERF(x), None),
    "relu": (lambda x: np.maximum(x, 0), None),
    "sigmoid": (sigmoid, None),
    "tanh": (np.tanh, None),
    "swish": (lambda x: x * sigmoid(x), None),
    "gelu": (tanh_gelu, None),
    "gelu_erf": (lambda x: x / 2 * (1 + ERF(x / math.sqrt(2))), None),
    "softplus": (lambda x: np.log1p(np.exp(x)), None),
    "hard_sigmoid": (lambda x: np.clip((x + 3) / 6, 0, 1), None),
    "hard_swish": (lambda x: x * np.clip((x + 3) / 6, 0, 1), None),
    "softsign": (lambda x: x / (1 + np.abs(x)), None),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), None),
    "selu": (lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(x)), None),
}


def windows(x, size, reduce):
    """Windows side by side over the last two dimensions."""
    n, c, h, w = x.shape
    return reduce(reduce(x.reshape(n, c, h // size, size, w // size, size), axis=5), axis=3)


def normed(x, axes, epsilon=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


def convolved(images, weights):
    view = np.lib.stride_tricks.sliding_window_view(images, weights.shape[2:], axis=(2, 3))
    return np.einsum("ncyxij,ocij->noyx", view, weights)


class Operations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gpu = tidemill.Accelerator(validation=True, prewarm="off", application="python-ops")

    def tearDown(self):
        self.gpu.synchronize()
        self.assertEqual(self.gpu.validation_messages(), [])

    def check(self, cases):
        """Cases have a function of a recording, and what it should give: an array, or several."""
        with self.gpu.recording() as r:
            kept = {}
            for name, (call, _) in cases.items():
                made = call(r)
                kept[name] = [r.keep(value) for value in (made if isinstance(made, (tuple, list)) else (made,))]
        for name, (_, expected) in cases.items():
            expected = expected if isinstance(expected, tuple) else (expected,)
            with self.subTest(name):
                self.assertEqual(len(kept[name]), len(expected))
                for got, right in zip(kept[name], expected):
                    right = np.asarray(right)
                    self.assertEqual(got.shape, right.shape)
                    np.testing.assert_allclose(got.numpy(), right, rtol=2e-4, atol=2e-5)

    def test_one_operand(self):
        x = array(97)
        cases = {}
        for name, (function, prepare) in UNARY.items():
            given = x if prepare is None else prepare(x).astype(np.float32)
            tensor = self.gpu.upload(given)
            cases[name] = (lambda r, name=name, t=tensor: getattr(r, name)(t), function(given.astype(np.float64)))
        self.check(cases)

    def test_elementwise(self):
        x, y = array(5, 7), np.abs(array(5, 7)) + 0.5
        a, b = self.gpu.upload(x), self.gpu.upload(y)
        special = np.array([1, np.nan, np.inf, -np.inf], np.float32)
        s = self.gpu.upload(special)
        m, n = self.gpu.upload((x > 0).astype(np.uint32)), self.gpu.upload((y > 1).astype(np.uint32))
        self.check({
            "add": (lambda r: r.add(a, b), x + y),
            "sub": (lambda r: r.sub(1, b), 1 - y),
            "mul": (lambda r: r.mul(a, 2.5), x * 2.5),
            "div": (lambda r: r.div(a, b), x / y),
            "pow": (lambda r: r.pow(b, a), y**x),
            "min": (lambda r: r.min(a, b), np.minimum(x, y)),
            "max": (lambda r: r.max(a, 0.25), np.maximum(x, 0.25)),
            "fmod": (lambda r: r.fmod(a, b), np.fmod(x, y)),
            "modulo": (lambda r: r.modulo(a, b), np.mod(x, y)),
            "atan2": (lambda r: r.atan2(a, b), np.arctan2(x, y)),
            "hypot": (lambda r: r.hypot(a, b), np.hypot(x, y)),
            "copysign": (lambda r: r.copysign(b, a), np.copysign(y, x)),
            "prelu": (lambda r: r.prelu(a, 0.1), np.where(x > 0, x, 0.1 * x)),
            "eq": (lambda r: r.eq(a, a), np.ones_like(x)),
            "ne": (lambda r: r.ne(a, b), x != y),
            "lt": (lambda r: r.lt(a, 0), x < 0),
            "le": (lambda r: r.le(a, b), x <= y),
            "gt": (lambda r: r.gt(a, b), x > y),
            "ge": (lambda r: r.ge(0, a), x <= 0),
            "logical_and": (lambda r: r.logical_and(m, n), (x > 0) & (y > 1)),
            "logical_or": (lambda r: r.logical_or(m, n), (x > 0) | (y > 1)),
            "logical_xor": (lambda r: r.logical_xor(m, n), (x > 0) ^ (y > 1)),
            "logical_not": (lambda r: r.logical_not(m), x <= 0),
            "is_nan": (lambda r: r.is_nan(s), np.isnan(special)),
            "is_inf": (lambda r: r.is_inf(s), np.isinf(special)),
            "leaky_relu": (lambda r: r.leaky_relu(a, 0.2), np.where(x > 0, x, 0.2 * x)),
            "elu": (lambda r: r.elu(a, 1.5), np.where(x > 0, x, 1.5 * np.expm1(x))),
            "celu": (lambda r: r.celu(a, 1.5), np.where(x > 0, x, 1.5 * np.expm1(x / 1.5))),
            "clip": (lambda r: r.clip(a, -0.5, 0.5), np.clip(x, -0.5, 0.5)),
            "clamp": (lambda r: r.clamp(a, -1, b), np.clip(x, -1, y)),
            "select": (lambda r: r.select(m, a, 9), np.where(x > 0, x, 9)),
            "cast": (lambda r: r.cast(a, np.int32), x.astype(np.int32)),
        })

    def test_axes(self):
        x = array(4, 6, 5)
        a = self.gpu.upload(x)
        v, w = array(40), array(40)
        tv, tw = self.gpu.upload(v), self.gpu.upload(w)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        gamma, beta, mean = array(5), array(5), array(6)
        variance = np.abs(array(6)) + 0.5
        g, b = self.gpu.upload(gamma), self.gpu.upload(beta)
        channel = array(6), array(6)
        cg, cb, cm, cv = (self.gpu.upload(t) for t in (*channel, mean, variance))
        scale, shift = (t[None, :, None] for t in channel)
        residual = array(4, 6, 5)
        tr = self.gpu.upload(residual)
        root = lambda x: x / np.sqrt((x.astype(np.float64) ** 2).mean(axis=-1, keepdims=True) + 1e-5)
        grouped = normed(x.reshape(4, 2, 3, 5), (2, 3)).reshape(x.shape)
        self.check({
            "sum": (lambda r: r.sum(a), x.sum()),
            "mean": (lambda r: r.mean(a, axis=-1, keep=True), x.mean(axis=-1, keepdims=True)),
            "prod": (lambda r: r.prod(a, axis=0), x.prod(axis=0)),
            "amax": (lambda r: r.amax(a, axis=[0, 2]), x.max(axis=(0, 2))),
            "amin": (lambda r: r.amin(a, axis=1), x.min(axis=1)),
            "argmax": (lambda r: r.argmax(a, axis=1), x.argmax(axis=1)),
            "argmin": (lambda r: r.argmin(a, axis=-1), x.argmin(axis=-1)),
            "norm": (lambda r: r.norm(a), np.sqrt((x**2).sum())),
            "variance": (lambda r: r.variance(a, axis=2), x.var(axis=2)),
            "moments": (lambda r: r.moments(a, axis=2, keep=True), (x.mean(2, keepdims=True), x.var(2, keepdims=True))),
            "dot": (lambda r: r.dot(tv, tw), v @ w),
            "cumsum": (lambda r: r.cumsum(a, 1), x.cumsum(axis=1)),
            "cumsum exclusive": (lambda r: r.cumsum(a, 1, exclusive=True), x.cumsum(axis=1) - x),
            "cumprod": (lambda r: r.cumprod(a), x.cumprod(axis=-1)),
            "cummax": (lambda r: r.cummax(a), np.maximum.accumulate(x, axis=-1)),
            "cummin": (lambda r: r.cummin(a, reverse=True), np.minimum.accumulate(x[..., ::-1], axis=-1)[..., ::-1]),
            "softmax": (lambda r: r.softmax(a, axis=1), e / e.sum(axis=1, keepdims=True)),
            "log_softmax": (lambda r: r.log_softmax(a, 1), np.log(e / e.sum(axis=1, keepdims=True))),
            "layer_norm": (lambda r: r.layer_norm(a, g, b), normed(x, -1) * gamma + beta),
            "rms_norm": (lambda r: r.rms_norm(a, g), root(x) * gamma),
            "add_layer_norm": (
                lambda r: r.add_layer_norm(a, tr, g, b),
                (x + residual, normed(x + residual, -1) * gamma + beta),
            ),
            "add_rms_norm": (lambda r: r.add_rms_norm(a, tr, g), (x + residual, root(x + residual) * gamma)),
            "group_norm": (lambda r: r.group_norm(a, 2, cg, cb), grouped * scale + shift),
            "instance_norm": (lambda r: r.instance_norm(a, cg, cb), normed(x, 2) * scale + shift),
            "batch_norm": (
                lambda r: r.batch_norm(a, cm, cv, cg, cb),
                (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5) * scale[0] + shift[0],
            ),
        })

    def test_shapes(self):
        x, y = array(3, 4), array(3, 4)
        a, b = self.gpu.upload(x), self.gpu.upload(y)
        cube = array(2, 3, 4)
        c = self.gpu.upload(cube)
        rows = self.gpu.upload([2, 0, 2], dtype=np.uint32)
        self.check({
            "reshape": (lambda r: r.reshape(a, (2, 6)), x.reshape(2, 6)),
            "broadcast_to": (lambda r: r.broadcast_to(a, (2, 3, 4)), np.broadcast_to(x, (2, 3, 4))),
            "transpose": (lambda r: r.transpose(c), cube.swapaxes(1, 2)),
            "permute": (lambda r: r.permute(c, [2, 0, 1]), cube.transpose(2, 0, 1)),
            "slice": (lambda r: r.slice(c, np.s_[..., ::-2]), cube[..., ::-2]),
            "concat": (lambda r: r.concat([a, r.neg(b)], axis=1), np.concatenate([x, -y], axis=1)),
            "stack": (lambda r: r.stack([a, b], axis=-1), np.stack([x, y], axis=-1)),
            "pad": (lambda r: r.pad(a, [(1, 0), (0, 2)], 7), np.pad(x, [(1, 0), (0, 2)], constant_values=7)),
            "copy": (lambda r: r.copy(a), x),
            "fill": (lambda r: r.fill((2, 2), -3, "int32"), np.full((2, 2), -3)),
            "iota": (lambda r: r.iota(5, np.uint32), np.arange(5)),
            "gather_rows": (lambda r: r.gather_rows(a, rows), x[[2, 0, 2]]),
        })
        with self.gpu.recording() as r:
            uniform, normal = r.keep(r.random_uniform(10000, 1)), r.keep(r.random_normal(10000, 2))
            with self.assertRaises(tidemill.errors.ShapeError):
                r.slice(a, np.s_[:, :, :])
            with self.assertRaisesRegex(TypeError, "x\\[3:4\\]"):
                r.slice(a, 3)
        self.assertTrue(0 <= uniform.numpy().min() and uniform.numpy().max() < 1)
        self.assertLess(abs(normal.numpy().mean()) + abs(normal.numpy().std() - 1), 0.1)

    def test_indices_and_order(self):
        x = array(6, 5)
        a = self.gpu.upload(x)
        rows, updates = np.array([4, 1]), array(2, 5)
        i, u = self.gpu.upload(rows, dtype=np.uint32), self.gpu.upload(updates)
        places = np.argsort(x, axis=-1)[:, :2]
        p = self.gpu.upload(places, dtype=np.uint32)
        pairs = self.gpu.upload([[1, 2], [5, 0]], dtype=np.uint32)
        counted = np.array([3, 1, 3, 0, 3], np.uint32)
        n, weights = self.gpu.upload(counted), self.gpu.upload([1.0, 2.0, 3.0, 4.0, 5.0])
        segments = self.gpu.upload([0, 0, 1, 1, 1, 3], dtype=np.uint32)
        written, added, largest, smallest = x.copy(), x.copy(), x.copy(), x.copy()
        written[rows], added[rows] = updates, added[rows] + updates
        largest[rows], smallest[rows] = np.maximum(x[rows], updates), np.minimum(x[rows], updates)
        order = np.argsort(x, axis=-1)
        line, mask = self.gpu.upload(x[0]), (x[0] > 0).astype(np.uint32)
        self.check({
            "gather": (lambda r: r.gather(a, i, axis=0), x[rows]),
            "gather_elements": (lambda r: r.gather_elements(a, p), np.take_along_axis(x, places, -1)),
            "gather_nd": (lambda r: r.gather_nd(a, pairs), x[[1, 5], [2, 0]]),
            "scatter": (lambda r: r.scatter(a, i, u, axis=0), written),
            "scatter_add": (lambda r: r.scatter_add(a, i, u, axis=0), added),
            "scatter_max": (lambda r: r.scatter_max(a, i, u, axis=0), largest),
            "scatter_min": (lambda r: r.scatter_min(a, i, u, axis=0), smallest),
            "segment_sum": (
                lambda r: r.segment_sum(a, segments, 4),
                np.stack([x[:2].sum(0), x[2:5].sum(0), np.zeros(5), x[5]]),
            ),
            "bincount": (lambda r: r.bincount(n, 4), np.bincount(counted, minlength=4)),
            "bincount_weighted": (lambda r: r.bincount_weighted(n, weights, 4), [4, 2, 0, 9]),
            "one_hot": (lambda r: r.one_hot(n, 4), np.eye(4)[counted]),
            "count_outside": (lambda r: r.count_outside(n, 3), np.array(3)),
            "sort": (lambda r: r.sort(a, descending=True), -np.sort(-x, axis=-1)),
            "argsort": (lambda r: r.argsort(a), order),
            "sort_by_key": (lambda r: r.sort_by_key(a, a), (np.sort(x), np.sort(x))),
            "topk": (lambda r: r.topk(a, 2), (-np.sort(-x)[:, :2], np.argsort(-x)[:, :2])),
            "searchsorted": (lambda r: r.searchsorted(r.sort(line), line), np.searchsorted(np.sort(x[0]), x[0])),
        })
        self.found(lambda r: r.compact(line, self.gpu.upload(mask)), x[0][mask != 0])
        self.found(lambda r: r.nonzero(n), np.flatnonzero(counted))
        values, counts, inverse, count = self.gpu.run(lambda r: r.unique(n))
        right = np.unique(counted, return_counts=True, return_inverse=True)
        self.assertEqual(count.numpy().item(), len(right[0]))
        np.testing.assert_array_equal(values.numpy()[: len(right[0])], right[0])
        np.testing.assert_array_equal(counts.numpy()[: len(right[0])], right[2])
        np.testing.assert_array_equal(inverse.numpy(), right[1])

    def found(self, record, right):
        """A value of which so many rows count."""
        value, count = self.gpu.run(record)
        self.assertEqual(count.numpy().item(), len(right))
        np.testing.assert_array_equal(value.numpy()[: len(right)].reshape(right.shape), right)

    def test_products_and_windows(self):
        x, w, before = array(5, 6), array(4, 6), array(5, 4)
        a, b, c = (self.gpu.upload(t) for t in (x, w, before))
        images, weights = array(2, 4, 8, 8), array(8, 4, 3, 3)
        i, k = self.gpu.upload(images), self.gpu.upload(weights)
        shuffled = images.reshape(2, 1, 2, 2, 8, 8).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 16, 16)
        largest = windows(images, 2, np.max)
        self.check({
            "matmul": (
                lambda r: r.matmul(a, b, transpose_rhs=True, alpha=2, accumulate=c, beta=0.5),
                2 * (x @ w.T) + 0.5 * before,
            ),
            "matmul of a transposed operand": (lambda r: r.matmul(a, a, transpose_lhs=True), x.T @ x),
            "conv2d": (lambda r: r.conv2d(i, k), convolved(images, weights)),
            "conv2d with a stride": (
                lambda r: r.conv2d(i, r.of(k) * 2, stride=(2, 2)),
                2 * convolved(images, weights)[:, :, ::2, ::2],
            ),
            "max_pool": (lambda r: r.max_pool(i, [2, 2]), largest),
            "max_pool_with_places": (lambda r: r.max_pool_with_places(i, [2, 2])[0], largest),
            "average_pool": (lambda r: r.average_pool(i, [2, 2], stride=[2, 2]), windows(images, 2, np.mean)),
            "norm_pool": (lambda r: r.norm_pool(i, 2, [4, 4]), np.sqrt(windows(images**2, 4, np.sum))),
            "adaptive_max_pool": (lambda r: r.adaptive_max_pool(i, [4, 4]), largest),
            "adaptive_average_pool": (lambda r: r.adaptive_average_pool(i, [2, 2]), windows(images, 4, np.mean)),
            "resize": (lambda r: r.resize(i, [16, 16], "nearest", "asymmetric"), images.repeat(2, 2).repeat(2, 3)),
            "pixel_shuffle": (lambda r: r.pixel_shuffle(i, 2), shuffled),
            "pixel_unshuffle": (lambda r: r.pixel_unshuffle(r.pixel_shuffle(i, 2), 2), images),
        })
        with self.gpu.recording() as r, self.assertRaisesRegex(tidemill.errors.ParameterError, "\"linear\""):
            r.resize(i, [4, 4], "smooth")


class Surface(unittest.TestCase):
    """What the module has, its stubs have; and each method of a recording is called by a test."""

    def test_stubs(self):
        module = tidemill._tidemill
        stub = ast.parse(Path(module.__file__).with_name("_tidemill.pyi").read_text())
        declared = {}
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                names = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                declared[node.name] = names - {"__new__"}
        classes = {name: item for name, item in vars(module).items() if inspect.isclass(item)}
        self.assertEqual(set(declared), set(classes))
        hidden = {"__doc__", "__module__", "__new__", "__repr__", "__str__", "__hash__", "__bool__"}
        for name, item in classes.items():
            self.assertEqual(declared[name], set(vars(item)) - hidden, name)

    def test_every_method_is_tested(self):
        tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
        self.assertGreater(len(vars(tidemill.Recording)), 100)
        for name in tidemill.__all__:
            methods = vars(getattr(tidemill, name)) if inspect.isclass(getattr(tidemill, name)) else {}
            before = "r" if name == "Recording" else r"\w+"
            called = lambda method: re.search(rf"\b{before}\.{method}\b", tests)
            missing = [m for m in methods if not m.startswith("_") and m not in UNARY and not called(m)]
            self.assertEqual(missing, [], name)

    def test_every_error_has_a_class(self):
        for name in tidemill.errors.__dict__:
            if name.endswith("Error"):
                self.assertTrue(issubclass(getattr(tidemill.errors, name), tidemill.Error))


if __name__ == "__main__":
    unittest.main()
