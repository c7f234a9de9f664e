# Sourced by the other scripts: paths, and functions that run a step and take the lock.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
venv=$build/venv
logs=$build/logs
python=$venv/bin/python
mkdir -p "$logs"

# ccache uses paths relative to the checkout, so that all checkouts share objects. Its manual asks for this sloppiness if headers
# are precompiled.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

# step TEXT LOG COMMAND...: runs a command with one line on the terminal and its output in build/logs/LOG.log. If it fails, prints the
# end of the log and exits.
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

# Only one script at a time changes build/; others wait.
lock() {
    exec 9>"$build/.lock"
    flock --nonblock 9 || { echo "waiting for another build in $build"; flock 9; }
}
