# Sourced by the other scripts: where things are, and how a step is shown.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
venv=$build/venv
logs=$build/logs
python=$venv/bin/python
mkdir -p "$logs"

# The same objects serve every checkout: ccache sees paths relative to this one. The sloppiness is what its manual asks for
# where precompiled headers are used.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

# step TEXT LOG COMMAND...: one line on the terminal, what the command prints in build/logs/LOG.log. A failure shows the log's
# end and leaves.
step() {
    local text=$1 log=$logs/$2.log began=$SECONDS
    shift 2
    printf '%-60s' "$text"
    if ! "$@" >"$log" 2>&1; then
        printf 'failed after %d s\n\n' $((SECONDS - began))
        tail -n 40 "$log"
        printf '\nthe whole log: %s\n' "$log"
        exit 1
    fi
    printf '%d s\n' $((SECONDS - began))
}

# One script at a time changes build/; another waits for it.
lock() {
    exec 9>"$build/.lock"
    flock --nonblock 9 || { echo "waiting for another build in $build"; flock 9; }
}
