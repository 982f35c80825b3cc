#!/bin/sh
# Create .venv with the locked versions and this package (`make setup`): sh .ci/setup.sh [python]
#
# uv installs with a sixth of pip's processor time. Where it cannot be had, or fails, pip installs the same
# files. Both compare every file with the lock's hashes.
set -eu
cd "$(dirname "$0")/.."
base=${1:-python3}
python=.venv/bin/python

"$base" -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || {
  echo "paperlib needs Python 3.11.5 or newer, and $base is not: try make PYTHON=python3.12"
  exit 1
}
# If making .venv was interrupted, it has no pip, and is made again.
"$python" -m pip --version >/dev/null 2>&1 || "$base" -m venv --clear .venv

# uv does not read pip's settings: an index or mirror that they name is handed on. All of them may be asked for a
# version, as the hashes decide which file is taken.
setting() { "$python" -m pip config get "global.$1" 2>/dev/null || true; }
default_index=$(setting index-url)
more_indexes=$(setting extra-index-url | tr '\n' ' ')
[ -z "$default_index" ] || export UV_DEFAULT_INDEX="$default_index"
[ -z "$more_indexes" ] || export UV_INDEX="$more_indexes"
export UV_INDEX_STRATEGY=unsafe-best-match

pip_install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

# The uv of this computer, or the lock's: its lines are those from its name to the last hash.
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
  sed -n '/^uv==/,/[^\\]$/p' requirements.lock >.venv/uv.lock
  if pip_install --require-hashes --requirement .venv/uv.lock; then uv=.venv/bin/uv; fi
fi
if [ -z "$uv" ] || ! "$uv" pip install --quiet --python "$python" --require-hashes --requirement requirements.lock; then
  echo "uv could not install the locked versions; pip does"
  pip_install --require-hashes --requirement requirements.lock
fi
# The locked setuptools builds the package: nothing comes from an index without a hash.
pip_install --no-deps --no-build-isolation --editable .
touch .venv/.ready
