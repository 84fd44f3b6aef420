#!/bin/sh
# Make the virtual environment VENV with everything in requirements.lock.
#   setup-venv.sh VENV        PYTHON names an interpreter other than the first that fits
set -eu
venv=${1:?usage: setup-venv.sh VENV}

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
  if fits "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  echo "no Python from 3.11 to 3.14 found; name one with PYTHON=/path/to/python" >&2
  exit 1
fi

echo "setting up $venv with $("$python" --version) (once; about a minute) ..."
rm -rf "$venv"
# Some systems ship venv without ensurepip; their own pip can install into the venv.
if "$python" -m venv "$venv" 2>/dev/null; then
  pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
else
  "$python" -m venv --without-pip --clear "$venv"
  pip() { "$python" -m pip --disable-pip-version-check --python "$venv/bin/python" "$@"; }
fi
pip install --quiet --require-hashes --requirement requirements.lock
pip install --quiet --no-deps --no-build-isolation --no-index --editable .
