#!/usr/bin/env bash
# What maturin runs in the place of cargo when `./dev python` tests a wheel: the build of the tests, of which the module
# is a part. maturin's own choice of one package would give dependencies other features, and compile nearly everything
# again.
set -euo pipefail
if [[ ${1:-} == rustc ]]; then
    # pyo3 is compiled again when one of these changes; that the module is not linked with Python is a feature here.
    # shellcheck disable=SC2086 # Several words.
    exec env -u PYO3_PYTHON -u PYTHON_SYS_EXECUTABLE -u PYO3_CONFIG_FILE -u PYO3_ENVIRONMENT_SIGNATURE \
        -u PYO3_BUILD_EXTENSION_MODULE \
        cargo build ${TIDEMILL_BUILD:?the arguments of the tests} --message-format json-render-diagnostics
fi
exec cargo "$@"
