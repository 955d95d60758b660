#!/usr/bin/env bash
# Runs a command beside a PostgreSQL of its own, for the tests that want one: a private cluster in a temporary folder, on
# a free port of 127.0.0.1, gone when the command ends, however it ends.
#
#   scripts/postgres.sh [--install] run -- COMMAND...     e.g. scripts/postgres.sh run -- scripts/test unit
#     --install   when PostgreSQL is missing, install it from Debian's packages (root, apt-get)
#
# The command finds the server's URL in ANSWER_TEST_POSTGRES_URL; where that is set already, it is used as it is. Where
# there is no PostgreSQL, that is said, and the command runs without: its PostgreSQL tests skip. Exits as the command does.
set -euo pipefail

scratch=
server=

say() { printf 'postgres: %s\n' "$*" >&2; }

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# Prints the folder of initdb and postgres: Debian keeps them out of PATH.
find_programs() {
    local found
    if found=$(command -v initdb) && [[ -x $(dirname "$(readlink -f "$found")")/postgres ]]; then
        dirname "$(readlink -f "$found")"
        return
    fi
    for found in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -Vr); do
        if [[ -x $found/initdb && -x $found/postgres ]]; then
            printf '%s\n' "$found"
            return
        fi
    done
    return 1
}

install_programs() {
    local apt=(apt-get -qq -o Acquire::Retries=2 -o DPkg::Lock::Timeout=60)
    if [[ $(id -u) != 0 ]]; then
        say "not root, so PostgreSQL cannot be installed here"
        return 1
    fi
    if ! command -v apt-get >/dev/null; then
        say "no apt-get here, so PostgreSQL cannot be installed"
        return 1
    fi
    say "installing PostgreSQL from Debian's packages"
    export DEBIAN_FRONTEND=noninteractive
    # Debian's packages would start a cluster of their own, for the whole machine.
    mkdir -p /etc/postgresql-common
    if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
        printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf
    fi
    { timeout 60 "${apt[@]}" update && timeout 180 "${apt[@]}" install -y --no-install-recommends postgresql; } >&2 </dev/null
}

free_port() {
    local port
    for ((port = 20000 + RANDOM % 20000; ; port++)); do
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%s\n' "$port"
            return
        fi
    done
}

# PostgreSQL refuses to run as root.
as_server() {
    if [[ $(id -u) == 0 ]]; then
        setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups "$@"
    else
        "$@"
    fi
}

start() {
    local port attempt
    owner=$(id -un)
    if [[ $owner == root ]]; then owner=$(id -un postgres 2>/dev/null || id -un nobody); fi
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/answer-postgres.XXXXXX")
    if [[ $(id -u) == 0 ]]; then chown "$owner" "$scratch"; fi
    # In the C locale, with UTF-8: what the machine's locale is should not matter. Nothing need outlive a crash.
    (cd "$scratch" && as_server "$programs/initdb" --pgdata="$scratch/data" --username=answer --auth=trust \
        --encoding=UTF8 --locale=C --no-sync) >"$scratch.log" 2>&1 || return 1
    for attempt in 1 2 3; do
        port=$(free_port)
        # The kernel stops the server when this script dies, also of kill -9.
        (cd "$scratch" && exec setsid setpriv $(((EUID == 0)) && printf -- '--reuid=%s --regid=%s --clear-groups' "$owner" \
            "$(id -g "$owner")") --pdeathsig=INT "$programs/postgres" -D "$scratch/data" -k "$scratch" -p "$port" \
            -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=100) >>"$scratch.log" 2>&1 </dev/null &
        server=$!
        if wait_until_ready "$port"; then
            export ANSWER_TEST_POSTGRES_URL="postgresql://answer@127.0.0.1:$port/postgres"
            say "$("$programs/postgres" --version) on port $port"
            return
        fi
        kill -INT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    done
    return 1
}

wait_until_ready() {
    local patience=150
    while ((patience-- > 0)) && kill -0 "$server" 2>/dev/null; do
        if "$programs/pg_isready" -q -h 127.0.0.1 -p "$1" -U answer -d postgres; then return 0; fi
        sleep 0.2
    done
    return 1
}

stop() {
    if [[ -n $server ]]; then
        kill -INT "$server" 2>/dev/null || true # a fast shutdown: connections are closed
        wait "$server" 2>/dev/null || true
    fi
    if [[ -n $scratch ]]; then rm -rf "$scratch" "$scratch.log"; fi
}

install=
if [[ ${1:-} == --install ]]; then
    install=1
    shift
fi
if [[ ${1:-} != run || ${2:-} != -- || $# -lt 3 ]]; then
    usage >&2
    exit 2
fi
shift 2

trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
if [[ -n ${ANSWER_TEST_POSTGRES_URL:-} ]]; then
    say "using the one that ANSWER_TEST_POSTGRES_URL names"
elif programs=$(find_programs) || { [[ -n $install ]] && install_programs && programs=$(find_programs); }; then
    if ! start; then
        say "it did not start, so the tests that need it skip; the end of its log:"
        tail -n 5 "$scratch.log" >&2
    fi
else
    say "there is none here, so the tests that need it skip; install it with: apt-get install postgresql"
fi
"$@"
