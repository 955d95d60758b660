#!/usr/bin/env bash
# Makes the Python environment that scripts/run and scripts/test use, from the hash-checked locks.
#
#   scripts/setup.sh [--test] [--torch-index]
#     --test          also what tests and checks need (configs/locks/test.lock)
#     --torch-index   if pip's own sources have no CPU build of torch, fetch it from PyTorch's index
#
#   ANSWER_VENV         where the environment goes (default: .venv in the repository)
#   ANSWER_TORCH_INDEX  a mirror of PyTorch's CPU index
#   PYTHON              the Python 3.11 to make it with
#
# Once it is done, running it again does nothing. It may be killed at any moment: the next run goes on from there, because
# the stamp that says "done" is written last, and packages whose installation was cut short are installed anew.
# All it says goes to stderr; what pip said in the last step is in install.log in the environment.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${ANSWER_VENV:-$root/.venv}"
venv=$(cd "${ANSWER_VENV:-$root/.venv}" && pwd)
packages=$venv/lib/python3.11/site-packages
locks=$root/configs/locks
log=$venv/install.log
torch_index=${ANSWER_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
installed_gib=3
needed_gib=7 # the downloads lie beside it while it is being made
with_tests=
use_torch_index=
child=

say() { printf '[%3ds] %s\n' "$SECONDS" "$*" >&2; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

interrupted() {
    trap '' INT TERM HUP
    if [[ -n $child ]]; then
        kill "$child" 2>/dev/null || true
        wait "$child" || true
    fi
    say "interrupted; run it again to go on from here"
    exit "$1"
}

# --- the environment -------------------------------------------------------------------------------------------------

is_python_311() { "$1" -I -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    if [[ -n ${PYTHON:-} ]]; then
        is_python_311 "$PYTHON" || fail "PYTHON=$PYTHON is not a working Python 3.11; unset it or let it name one"
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3.11 python3 python; do
        if is_python_311 "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "no Python 3.11 found; install it (e.g. apt-get install python3.11-venv), or set PYTHON to its path"
}

check_platform() {
    [[ $(uname -sm) == "Linux x86_64" ]] || fail "the locks are for Linux on x86-64, and this is $(uname -sm); use a container"
}

# What an earlier set-up has already put there need not be free a second time.
check_disk() {
    local gib=$((1024 * 1024)) free used need=1
    free=$(df -Pk "$venv" | awk 'NR == 2 { print $4 }')
    used=$(du -sk "$venv" | cut -f1)
    if ((used < installed_gib * gib)); then need=$((needed_gib - used / gib)); fi
    ((free >= need * gib)) || fail "$((free / gib)) GiB are free at $venv, and the set-up needs about $need;" \
        "free some space, or set ANSWER_VENV to a folder on a larger disk"
}

# Prints the version of the environment's Python; fails when it, or its pip, does not work or is not for 3.11.
venv_version() {
    "$venv/bin/python" -I -c '
import pip, sys
if sys.version_info[:2] != (3, 11): sys.exit(1)
print(*sys.version_info[:3], sep=".")' 2>/dev/null
}

venv_works() { [[ -e $venv/.answer.made ]] && venv_version >/dev/null && "$venv/bin/python" -I -m pip --version &>/dev/null; }

# A folder that was filled by someone else is used if it is a fitting environment, and otherwise left alone.
adopt_venv() {
    if [[ -e $venv/.answer.lock || -z $(ls -A "$venv") ]]; then return; fi
    venv_version >/dev/null ||
        fail "$venv is not empty, and not a Python 3.11 environment; move it away or set ANSWER_VENV to another folder"
    touch "$venv/.answer.made"
}

# All but the lock, which stays because it is held.
contents() { find "$venv" -mindepth 1 -maxdepth 1 ! -name .answer.lock "$@"; }

make_venv() {
    local python
    if venv_works; then return; fi
    python=$(find_python)
    "$python" -I -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python lacks venv or ensurepip; install them (e.g. apt-get install python3.11-venv)"
    if [[ -n $(contents -print -quit) ]]; then
        say "the environment at $venv is broken or half made: starting afresh"
        rm -f "$venv/.answer.made"
        contents -exec rm -rf {} +
    fi
    say "making a Python 3.11 environment at $venv"
    run_logged true "$python" -m venv "$venv" || explain_failure "making the environment"
    # Last, so that an environment that is only half made is known for one.
    touch "$venv/.answer.made"
}

# --- the packages ----------------------------------------------------------------------------------------------------

# run_logged PROGRESS COMMAND...: runs it with its output in the log, and every 15 s says what PROGRESS prints. In the
# background, so that Ctrl-C is acted on at once.
run_logged() {
    local progress=$1 beat=$((SECONDS + 15)) code=0
    shift
    "$@" >>"$log" 2>&1 </dev/null &
    child=$!
    while kill -0 "$child" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS >= beat)); then
            "$progress"
            beat=$((SECONDS + 15))
        fi
    done
    wait "$child" || code=$?
    child=
    return "$code"
}

# pip's scratch folder is inside the environment, so that what a killed pip leaves is found and removed.
run_pip() {
    local progress=$1
    shift
    run_logged "$progress" env TMPDIR="$venv/.answer.tmp" \
        "$venv/bin/python" -I -m pip --disable-pip-version-check --no-input "$@"
}

count_locked() { grep -c '^[a-z0-9].*==' "$1"; }

count_installed() { find "$packages" -maxdepth 2 -path '*.dist-info/INSTALLER' | wc -l; }

say_progress() {
    if grep -q '^Installing collected packages' "$log"; then
        say "  … $(count_installed) packages are installed"
    else
        say "  … $(grep -cE '^(Collecting|Requirement already satisfied)' "$log" || true) of them fetched"
    fi
}

# pip takes a package for installed once its metadata is there, which is before it is whole. So this forgets those that
# miss what pip writes last, or a file, or a part of a file; and with them the stamps.
forget_broken_packages() {
    local broken
    broken=$("$venv/bin/python" -I -S - "$packages" <<'PY'
import csv, pathlib, shutil, sys

site = pathlib.Path(sys.argv[1])


def is_whole(info):
    try:
        rows = csv.reader((info / "RECORD").read_text().splitlines())
        listed = [(site / path, int(size)) for path, _, size in rows if size and not path.endswith(".pyc")]
        return (info / "INSTALLER").exists() and all(path.stat().st_size == size for path, size in listed)
    except (OSError, ValueError):
        return False


for left_over in site.glob("~*"):
    shutil.rmtree(left_over, ignore_errors=True)
for info in site.glob("*.dist-info"):
    if not info.name.startswith("pip-") and not is_whole(info):
        print(info.name.split("-")[0])
        shutil.rmtree(info)
PY
    )
    if [[ -n $broken ]]; then
        say "incomplete, to be installed anew: ${broken//$'\n'/, }"
        rm -f "$venv"/.answer-*
    fi
}

# Alone and first: it is the one package whose CPU build is not on PyPI, so a missing source shows at once, and PyTorch's
# index is asked for nothing else.
install_torch() {
    local only=$venv/.answer.torch.lock
    awk '/^[a-z0-9]/ { torch = /^torch==/ } torch' "$locks/cpu.lock" >"$only"
    say "installing torch for the CPU"
    if run_pip say_progress install --no-deps --require-hashes -r "$only"; then return; fi
    if [[ -z $use_torch_index ]] || ! torch_not_found; then explain_failure "installing torch"; fi
    say "pip's sources have no CPU build of torch: fetching it from $torch_index"
    run_pip say_progress install --no-deps --require-hashes --extra-index-url "$torch_index" -r "$only" ||
        explain_failure "installing torch"
}

install_lock() {
    local lock=$1
    : >"$log"
    say "installing $(count_locked "$lock") packages from ${lock#"$root"/} (hash-checked)"
    run_pip say_progress install --no-deps --require-hashes -r "$lock" || explain_failure "installing ${lock#"$root"/}"
}

install_project() {
    say "installing the project itself (editable)"
    run_pip true install --no-deps --no-build-isolation --editable "$root" || explain_failure "installing the project"
}

torch_not_found() { tail -n 40 "$log" | grep -q 'No matching distribution found for torch'; }

# explain_failure WHAT: the end of the log, then one line with the reason and the fix.
explain_failure() {
    local end
    end=$(tail -n 40 "$log")
    tail -n 20 "$log" | sed 's/^/    /' >&2
    case $end in
        *"No space left"*) fail "$1: the disk is full; free some space, or set ANSWER_VENV to a folder on a larger disk" ;;
        *"DO NOT MATCH THE HASHES"*)
            fail "$1: a file is not the one that was locked; try again after 'pip cache purge', or lock anew: scripts/lock" ;;
        *"Connection"* | *"timed out"* | *"name resolution"*)
            fail "$1: a package source cannot be reached; check the network and run it again: it goes on from here" ;;
        *"No matching distribution found for torch"*)
            fail "$1: no source has the CPU build of torch; set PIP_EXTRA_INDEX_URL=$torch_index, or let PIP_FIND_LINKS" \
                "name a folder with its wheel" ;;
        *"No matching distribution"*)
            fail "$1: pip's sources lack a locked file (it needs glibc 2.31 or newer); check pip's index settings" ;;
        *) fail "$1 failed; all that pip said is in $log; run it again, or remove $venv to start afresh" ;;
    esac
}

# --- the stamps ------------------------------------------------------------------------------------------------------

# stamp LAYER: the file that says that a layer is installed as the locks, the project file and this place ask. An
# editable installation points to its repository, and an environment cannot be moved, so both paths count.
stamp() {
    local files=("$locks/cpu.lock" "$root/pyproject.toml") key
    if [[ $1 == test ]]; then files+=("$locks/test.lock"); fi
    key=$({ printf '%s\n' "$1" "$version" "$root" "$venv" && cat "${files[@]}"; } | sha256sum | cut -d' ' -f1)
    printf '%s\n' "$venv/.answer-$key"
}

write_stamp() {
    touch "$1.tmp"
    mv "$1.tmp" "$1"
}

# Sets base and tested, the stamps that are wanted; fails when the environment does not work.
find_stamps() {
    version=$(venv_version) || return 1
    base=$(stamp base)
    tested=$base
    if [[ -n $with_tests ]]; then tested=$(stamp test); fi
}

is_done() { find_stamps && [[ -e $base && -e $tested && -x $venv/bin/answer ]]; }

# --- all of it -------------------------------------------------------------------------------------------------------

lock_out_others() {
    exec 9>>"$venv/.answer.lock" # pip inherits it: a pip that outlives a killed set-up still keeps others out
    if ! flock --nonblock 9; then
        say "another set-up is at work on $venv: waiting for it"
        flock 9
    fi
}

set_up() {
    adopt_venv
    lock_out_others
    if is_done; then return; fi
    check_disk
    make_venv
    rm -rf "$venv/.answer.tmp"
    mkdir "$venv/.answer.tmp"
    : >"$log"
    find_stamps || fail "the environment at $venv does not work; remove it and run this again"
    forget_broken_packages
    if [[ ! -e $base || ! -x $venv/bin/answer ]]; then
        rm -f "$venv"/.answer-*
        install_torch
        install_lock "$locks/cpu.lock"
        install_project
        write_stamp "$base"
    fi
    if [[ ! -e $tested ]]; then
        install_lock "$locks/test.lock"
        write_stamp "$tested"
    fi
    rm -rf "$venv/.answer.tmp"
    say "the environment is ready: $venv"
}

for argument in "$@"; do
    case $argument in
        --test) with_tests=1 ;;
        --torch-index) use_torch_index=1 ;;
        *) fail "unknown argument: $argument; usage: scripts/setup.sh [--test] [--torch-index]" ;;
    esac
done
if is_done; then exit 0; fi
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
trap 'interrupted 129' HUP
check_platform
set_up
