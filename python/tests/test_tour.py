"""A tour of the module, cell by cell, as docs/python.md has it.

Validation is on, and every result is compared with NumPy's. ./dev python runs it, from the wheel.
"""

import gc
import json
import struct
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import numpy as np
import tidemill
from tidemill import errors

# The repository; SPIR-V that the tests of the library use.
ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures"

SAXPY = """#version 450
layout(local_size_x = LOCAL) in;
layout(constant_id = 3) const float OFFSET = 0.0;
layout(push_constant) uniform Push { float factor; };
layout(binding = 0, std430) readonly buffer X { float x[]; };
layout(binding = 1, std430) readonly buffer Y { float y[]; };
layout(binding = 2, std430) writeonly buffer Z { float z[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < z.length()) z[i] = factor * x[i] + y[i] + OFFSET;
}
"""

RANDOM = np.random.default_rng(7)


def wave(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


class Tour(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gpu = tidemill.Accelerator(validation=True, prewarm="off", application="python-tour")

    def tearDown(self):
        self.gpu.synchronize()
        self.assertEqual(self.gpu.validation_messages(), [])

    def same(self, tensor, expected, rtol=1e-5, atol=1e-6):
        got = tensor.numpy()
        self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype))
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)

    def test_01_a_device(self):
        self.assertIn(self.gpu.device["name"], [device["name"] for device in tidemill.devices()])
        self.assertIn(self.gpu.device["name"], repr(self.gpu))
        self.assertGreaterEqual(self.gpu.device["subgroup_size"], 1)

    def test_02_arrays_go_in_and_come_out(self):
        for dtype in (np.float32, np.float16, np.int32, np.uint32):
            for shape in ((), (1,), (0,), (5,), (2, 3), (2, 1, 3, 4)):
                x = (RANDOM.integers(0, 100, size=shape)).astype(dtype)
                tensor = self.gpu.upload(x)
                self.assertEqual((tensor.shape, tensor.dtype, tensor.size_bytes), (x.shape, x.dtype.name, x.nbytes))
                np.testing.assert_array_equal(tensor.numpy(), x)
        x = wave(6, 8)
        # Views, in any order.
        for view in (x.T, x[::2, ::-1], np.broadcast_to(x[0], (3, 8)), x[1:1]):
            np.testing.assert_array_equal(self.gpu.upload(view).numpy(), view)
        half = x.astype(np.float16).T
        np.testing.assert_array_equal(self.gpu.upload(half).numpy(), half)
        # The array owns its elements: it stays when the tensor goes, and may be written.
        tensor = self.gpu.upload(x)
        mine = tensor.numpy()
        mine[0, 0] = 77
        self.assertEqual(tensor.numpy()[0, 0], x[0, 0])
        del tensor
        gc.collect()
        self.assertEqual(mine[0, 0], 77)

    def test_03_lists_and_other_types(self):
        self.assertEqual(self.gpu.upload([[1, 2], [3, 4]]).dtype, "int32")
        self.assertEqual(self.gpu.upload([0.5, 1]).tolist(), [0.5, 1.0])
        self.assertEqual(self.gpu.upload(2.5).item(), 2.5)
        self.assertEqual(self.gpu.upload([1, 2], dtype=np.uint32).dtype, "uint32")
        self.assertEqual(self.gpu.upload([1, 2], dtype="f32").dtype, "float32")
        wide = np.arange(3, dtype=np.float64)
        with self.assertRaisesRegex(errors.DTypeError, "float64 is no element type"):
            self.gpu.upload(wide)
        self.assertEqual(self.gpu.upload(wide, dtype="float32").tolist(), [0, 1, 2])
        self.assertEqual(self.gpu.upload(np.array([True, False]), dtype=np.uint32).tolist(), [1, 0])
        self.assertEqual(np.asarray(self.gpu.upload([1.5])).tolist(), [1.5])
        self.assertEqual(self.gpu.zeros((2, 2)).tolist(), [[0, 0], [0, 0]])
        tensor = self.gpu.empty(3, np.int32)
        with self.assertRaises(errors.NoContentsError):
            tensor.numpy()
        tensor.write([4, 5, 6])
        self.assertEqual(tensor.reshape((3, 1)).tolist(), [[4], [5], [6]])
        with self.assertRaisesRegex(errors.ShapeError, "3"):
            tensor.write([1, 2])
        with self.assertRaises(errors.DTypeError):
            tensor.write(np.zeros(3, np.float32))

    def test_04_bytes_without_a_copy(self):
        x = np.arange(4096, dtype=np.float32)
        data = x.tobytes()
        before = sys.getrefcount(data)
        tensor = self.gpu.import_bytes(data, (64, 64), np.float32)
        self.same(tensor, x.reshape(64, 64))
        tail = self.gpu.import_bytes(data, 16, "float32", offset=4096 * 4 - 64)
        self.same(tail, x[-16:])
        if tensor.is_imported:
            self.assertGreater(sys.getrefcount(data), before)
        tensor.write(np.zeros((64, 64), np.float32))
        self.assertFalse(tensor.is_imported)
        self.assertEqual(data, x.tobytes())
        with self.assertRaisesRegex(errors.HostError, "16384"):
            self.gpu.import_bytes(data, (65, 64), np.float32)

    def test_05_other_libraries_by_dlpack(self):
        x = wave(3, 4)
        tensor = self.gpu.from_dlpack(x)
        np.testing.assert_array_equal(np.from_dlpack(tensor), x)
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))

    def test_06_a_recording(self):
        x, y = wave(4, 5), wave(4, 5)
        tx, ty = self.gpu.upload(x), self.gpu.upload(y)
        with self.gpu.recording() as r:
            total = r.add(tx, ty)
            square = r.keep(r.mul(total, total))
            with self.assertRaises(errors.NoContentsError):
                square.numpy()
            self.assertEqual((total.shape, r.shape(tx), r.dtype(total)), ((4, 5), (4, 5), "float32"))
        self.assertTrue(r.submission.wait(60))
        self.assertTrue(r.submission.is_complete)
        self.same(square, (x + y) ** 2)
        # Without a block, and with its pipelines made ahead.
        r = self.gpu.recording()
        tangent = r.keep(r.tanh(tx))
        r.prepare()
        submission = r.end_recording()
        self.assertEqual(submission.number, r.submission.number)
        self.same(tangent, np.tanh(x))
        # The short form, for one value or for several.
        self.same(self.gpu.run(lambda r: r.exp(tx)), np.exp(x))
        both = self.gpu.run(lambda r: (r.of(tx) + 1, r.sum(tx, axis=0)))
        self.same(both[0], x + 1)
        self.same(both[1], x.sum(axis=0))

    def test_07_operators(self):
        x, y = np.abs(wave(6, 4)) + 0.5, wave(6, 4)
        tx, ty = self.gpu.upload(x), self.gpu.upload(y)
        cases = {
            "x + y": lambda x, y: x + y,
            "1 - x": lambda x, y: 1 - x,
            "x * 3": lambda x, y: x * 3,
            "2 / x": lambda x, y: 2 / x,
            "x ** 2.5": lambda x, y: x**2.5,
            "2 ** y": lambda x, y: 2**y,
            "y % x": lambda x, y: y % x,
            "-y": lambda x, y: -y,
            "abs(y)": lambda x, y: abs(y),
            "y.T": lambda x, y: y.T,
            "x @ y.T": lambda x, y: x @ y.T,
            "y[1:3]": lambda x, y: y[1:3],
            "y[::2, ::-1]": lambda x, y: y[::2, ::-1],
            "y[::-2, 3:0:-2]": lambda x, y: y[::-2, 3:0:-2],
            "y[..., :-1]": lambda x, y: y[..., :-1],
            "y[-2:, 1:]": lambda x, y: y[-2:, 1:],
            "y[4:1]": lambda x, y: y[4:1],
        }
        with self.gpu.recording() as r:
            kept = {name: r.keep(case(r.of(tx), r.of(ty))) for name, case in cases.items()}
        for name, case in cases.items():
            with self.subTest(name):
                self.same(kept[name], np.asarray(case(x, y), np.float32), rtol=1e-4, atol=1e-5)
        # A tensor or a number may stand on the left.
        with self.gpu.recording() as r:
            left = r.keep(tx - r.of(ty))
            masks = r.keep(((r.of(tx) > 1) & (r.of(ty) <= 0.5)) | ~(r.of(tx) != ty))
            chosen = r.keep(r.select(r.of(ty) < 0, 0, ty))
        self.same(left, x - y)
        self.same(masks, (((x > 1) & (y <= 0.5)) | ~(x != y)).astype(np.uint32))
        self.same(chosen, np.where(y < 0, 0, y).astype(np.float32))

    def test_08_integers_and_their_numbers(self):
        n = np.arange(-4, 4, dtype=np.int32)
        tensor = self.gpu.upload(n)
        self.same(self.gpu.run(lambda r: r.of(tensor) * 3 + 1), n * 3 + 1)
        self.same(self.gpu.run(lambda r: r.modulo(tensor, 3)), n % 3)
        with self.gpu.recording() as r:
            with self.assertRaisesRegex(errors.ParameterError, "0.5, which is no int32"):
                r.of(tensor) + 0.5
            with self.assertRaisesRegex(errors.ParameterError, "-1, which is no uint32"):
                r.of(self.gpu.upload([1], "uint32")) + -1
            with self.assertRaises(errors.ParameterError):
                r.of(self.gpu.upload([1.0])) + 1e300
            with self.assertRaises(TypeError):
                r.of(tensor) + "one"
            with self.assertRaises(errors.DTypeError):
                r.add(1, 2)
            with self.assertRaisesRegex(errors.DTypeError, "no contents yet"):
                if r.of(tensor) == tensor:
                    self.fail("a value has no truth")

    def test_09_a_network_is_fused(self):
        x, w, b = wave(64, 96), wave(96, 32), wave(32)
        tx, tw, tb = (self.gpu.upload(array) for array in (x, w, b))
        with self.gpu.recording() as r:
            hidden = r.relu(r.of(tx) @ tw + tb)
            p = r.keep(r.softmax(hidden, axis=-1))
            text, plan, svg, dot = r.explain(), r.explain_json(), r.explain_svg(), r.explain_dot()
        h = np.maximum(x @ w + b, 0)
        e = np.exp(h - h.max(axis=-1, keepdims=True))
        self.same(p, e / e.sum(axis=-1, keepdims=True), rtol=1e-3, atol=1e-5)
        self.assertEqual(len(plan["recorded"]), 4)
        self.assertEqual(len(plan["run"]), 2, text)
        self.assertIn("matmul", text)
        self.assertTrue(svg.lstrip().startswith("<svg") and "digraph" in dot)

    def test_10_a_plan(self):
        x = self.gpu.upload(wave(8, 8))
        other = self.gpu.empty((8, 8))
        with self.gpu.recording() as r:
            y = r.keep(r.sum(r.of(x) * 2, axis=1))
            plan = r.into_plan()
        plan.prepare()
        plan.profiling("off")
        for _ in range(3):
            batch = wave(8, 8)
            x.write(batch)
            plan.submit()
            self.same(y, (batch * 2).sum(axis=1), rtol=1e-4, atol=1e-5)
        other.write(np.ones((8, 8), np.float32))
        plan.bind(x, other)
        self.assertTrue(plan.submit().wait())
        self.same(y, np.full(8, 16, np.float32))
        with self.assertRaises(errors.BindingError):
            plan.bind(self.gpu.zeros((8, 8)), other)
        with self.assertRaises(errors.ClosedError):
            r.add(x, x)

    def test_11_state(self):
        cache = self.gpu.zeros((3, 2))
        with self.gpu.recording() as r:
            r.update(cache, np.s_[1:2], self.gpu.upload([[1.0, 2.0]]))
            total = r.keep(r.sum(cache))
            roles = [value["role"] for value in r.explain_json()["values"]]
        self.same(cache, np.array([[0, 0], [1, 2], [0, 0]], np.float32))
        self.assertEqual(total.item(), 3)
        self.assertIn("state", roles)
        with self.gpu.recording() as r:
            r.assign(cache, r.of(cache) + 1)
            with self.assertRaises(errors.ParameterError):
                r.update(cache, np.s_[::2], cache)
        self.assertEqual(cache.tolist(), [[1, 1], [2, 3], [1, 1]])

    def test_12_mistakes_lose_nothing(self):
        a, b = self.gpu.upload(wave(4, 3)), self.gpu.upload(wave(5, 2))
        with self.gpu.recording() as r:
            with self.assertRaisesRegex(errors.ShapeError, r"matmul: lhs \[4, 3\] x rhs \[5, 2\]: inner 3 != 5"):
                r.matmul(a, b)
            with self.assertRaises(ValueError):
                r.sum(a, axis=2)
            kept = r.keep(r.sum(a, axis=[0, 1], keep=True))
        self.assertEqual(kept.shape, (1, 1))
        self.assertTrue(issubclass(errors.ShapeError, tidemill.Error))
        # An exception discards the recording.
        with self.assertRaises(ZeroDivisionError):
            with self.gpu.recording() as r:
                lost = r.keep(r.exp(a))
                1 / 0
        self.assertIsNone(r.submission)
        with self.assertRaises(errors.NoContentsError):
            lost.numpy()
        with self.gpu.recording() as r, self.gpu.recording() as other:
            with self.assertRaises(errors.ForeignError):
                r.exp(other.exp(a))
        with self.assertRaises(errors.NoDeviceError):
            tidemill.Accelerator(device="a device that is not there")

    def test_13_a_kernel_in_spirv(self):
        spirv = (FIXTURES / "scale.spv").read_bytes()
        kernel = tidemill.Kernel.from_spirv("scale", spirv)
        self.assertEqual(kernel.name, "scale")
        self.assertEqual(len(kernel.describe()["bindings"]), 2)
        x = wave(100)
        with self.gpu.recording() as r:
            (y,) = r.dispatch(
                kernel,
                [self.gpu.upload(x), tidemill.Output(100)],
                groups=(2, 1, 1),
                push=struct.pack("f", 2.5),
                specialize={0: 64, 1: 0.5},
            )
            kept = r.keep(y + 1)
            with self.assertRaisesRegex(errors.KernelError, "scale"):
                r.dispatch(kernel, [self.gpu.upload(x)])
        self.same(kept, x * 2.5 + 1.5)
        with self.assertRaisesRegex(errors.KernelError, "words"):
            tidemill.Kernel.from_spirv("cut", spirv[:-1])
        with self.assertRaises(errors.KernelError):
            tidemill.Kernel.from_spirv("none", bytes(64))

    def test_14_a_kernel_in_glsl(self):
        if not tidemill.HAS_GLSL:
            with self.assertRaisesRegex(errors.KernelError, "built without shaderc"):
                tidemill.Kernel.from_glsl("saxpy", SAXPY)
            return
        kernel = tidemill.Kernel.from_glsl("saxpy", SAXPY, defines={"LOCAL": "64"})
        n = 1000
        x, y = wave(n), wave(n)
        tx, ty = self.gpu.upload(x), self.gpu.upload(y)
        with self.gpu.recording() as r:
            run = dict(groups=(-(-n // 64), 1, 1), push=struct.pack("f", 2.5), specialize={3: 10.0}, flops=2 * n)
            (z,) = r.dispatch(kernel, [tx, r.of(ty) + 1, tidemill.Output(n)], **run)
            kept = r.keep(z * 2)
            # The result in the place of an operand.
            r.dispatch(kernel, [tx, tx, tidemill.InOut(ty)], **run)
        self.same(kept, (2.5 * x + y + 11) * 2, rtol=1e-4, atol=1e-4)
        self.same(ty, 3.5 * x + 10, rtol=1e-4, atol=1e-4)
        square = tidemill.Kernel.from_glsl_file(ROOT / "examples/custom_kernel.comp", defines={"OFFSET": "0.5"})
        squares = self.gpu.run(lambda r: r.dispatch(square, [tx, tidemill.Output(n)], groups=(-(-n // 64), 1, 1)))
        self.same(squares[0], x * x + 0.5)
        with self.assertRaisesRegex(errors.KernelError, "broken:3"):
            tidemill.Kernel.from_glsl("broken", "#version 450\nvoid main() {\n  nonsense;\n}\n")

    def test_15_profiles(self):
        x = self.gpu.upload(wave(64, 64))
        with self.gpu.begin_profiling("tour") as session:
            with self.gpu.recording() as r:
                r.keep(r.of(x) @ x)
        run = session.run.json()
        self.assertEqual((run["name"], run["submissions"]), ("tour", 1))
        self.assertEqual(len(run["profiles"][0]["rows"]), run["dispatches"])
        self.assertIn("matmul", str(session.run))
        self.assertIn("<html", tidemill.html_report("tour", [session.run]))
        json.loads(session.run.trace_json())
        session.run.check()
        self.assertIn("<html", session.run.html())
        with self.gpu.recording() as r:
            r.profiling("isolated")
            r.keep(r.softmax(x))
        r.submission.wait()
        self.assertGreater(r.submission.profile()["busy_ns"], 0)
        self.assertIn("softmax", r.submission.profile_table())
        session = self.gpu.begin_profiling("by hand", mode="isolated")
        self.gpu.run(lambda r: r.exp(x))
        self.assertEqual(session.finish().json()["mode"], "isolated")
        with self.assertRaises(errors.ClosedError):
            session.finish()
        with self.assertRaises(errors.ParameterError):
            self.gpu.begin_profiling("tour", mode="all")
        self.assertGreater(self.gpu.stats()["submissions"], 0)

    def test_16_what_the_device_can_do(self):
        self.assertGreater(self.gpu.peaks()["gflops"], 0)
        names = {variant["family"] for variant in self.gpu.variants()}
        self.assertLessEqual({"matmul", "softmax"}, names)
        tuned = self.gpu.tune(families=["softmax"], seconds=0.01)
        self.assertTrue(tuned["out_of_time"])
        with self.assertRaisesRegex(errors.ParameterError, "seconds -1"):
            self.gpu.tune(seconds=-1)
        self.gpu.wait_prewarmed()
        self.assertGreaterEqual(self.gpu.trim(), 0)
        # Not under RenderDoc: what is missing is said before the function is called.
        with self.assertRaises(errors.ProfileError):
            self.gpu.capture("tour", lambda: self.fail("it was called"))

    def test_17_threads(self):
        x = wave(128, 128)
        tensor = self.gpu.upload(x)
        failures = []

        def work():
            try:
                for _ in range(10):
                    with self.gpu.recording() as r:
                        y = r.keep(r.sum(r.of(tensor) * 2))
                    if abs(y.item() - x.sum() * 2) > 0.05:
                        failures.append(y.item())
            except Exception as error:
                failures.append(error)

        def share(r):
            for _ in range(50):
                try:
                    r.matmul(r.of(tensor)[1:], tensor)
                    r.sum(tensor, axis=7)
                except errors.ShapeError:
                    continue
                failures.append("axis 7")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        # One recording, with operations that fail: threads wait for each other, and none forever.
        with self.gpu.recording() as shared:
            threads = [threading.Thread(target=share, args=(shared,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_18_close(self):
        gpu = tidemill.Accelerator(validation=True, prewarm="off", application="python-tour")
        tensor = gpu.upload([1.0])
        with self.assertRaisesRegex(errors.StillInUseError, "1"):
            gpu.close()
        with self.assertRaises(errors.ClosedError):
            gpu.upload([1.0])
        del tensor
        gpu = tidemill.Accelerator(validation=True, prewarm="off", application="python-tour")
        self.assertEqual(gpu.run(lambda r: r.fill(2, 1.5)).tolist(), [1.5, 1.5])
        self.assertEqual(gpu.validation_messages(), [])
        gpu.close()

    def test_19_a_process_ends_with_everything_open(self):
        # Prewarming goes on in the background, a recording is open and work is in flight.
        program = """
import tidemill
gpu = tidemill.Accelerator.shared()
x = gpu.upload([[1.0, 2.0], [3.0, 4.0]])
left_open = gpu.recording()
value = left_open.exp(x)
with gpu.recording() as r:
    y = r.keep(r.of(x) @ x)
print(y.tolist())
"""
        for end in ("", "import sys; sys.exit(3)", "raise KeyError('end')"):
            done = subprocess.run([sys.executable, "-c", program + end], capture_output=True, text=True, timeout=120)
            self.assertIn("[[7.0, 10.0], [15.0, 22.0]]", done.stdout, done.stderr)
            self.assertEqual(done.returncode, 0 if not end else 3 if "exit" in end else 1, done.stderr)

    def test_20_a_forked_process_is_told(self):
        program = """
import os, tidemill
gpu = tidemill.Accelerator.shared()
x = gpu.upload([1.0])
child = os.fork()
if child == 0:
    try:
        gpu.upload([2.0])
    except tidemill.errors.ForkedError:
        os._exit(42)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
print(x.tolist())
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.stdout, done.returncode), ("[1.0]\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
