# Sourced by the other scripts: sets `bin`, the folder of the environment's programs.
bin=${BYOK_VENV:-$root/.venv}/bin
if [ "${OS:-}" = Windows_NT ]; then
    bin=${BYOK_VENV:-$root/.venv}/Scripts
fi
