# Functions for jobs that install packages: they wait for others, say for whom, and show the last words of apt.
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none LC_ALL=C
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
patience=600
log=/run/rackwright/apt.log
instead=
from=

fail() { printf '%s\n' "$*"; exit 1; }

# Run a command. Its last line is shown every three seconds when it is a new one, else every fifteen with the time that has
# passed; when it fails, the last fifteen lines.
quietly() {
  title=$1; shift
  printf '%s\n' "$title"
  "$@" >"$log" 2>&1 </dev/null &
  running=$! ticks=0 shown=
  while kill -0 "$running" 2>/dev/null; do
    sleep 0.2
    ticks=$((ticks + 1))
    [ $((ticks % 15)) -eq 0 ] || continue
    now=$(tr '\r' '\n' <"$log" | grep . | tail -n 1 | cut -c 1-150)
    if [ "$now" != "$shown" ]; then printf '%s\n' "$now"
    elif [ $((ticks % 75)) -eq 0 ]; then printf '%s\n' "still at it after about $((ticks / 5)) s: ${now:-$title}"
    fi
    shown=$now
  done
  wait "$running" && return 0
  tail -n 15 "$log"
  return 1
}

# Who has this file open, as "PID (name)"; nothing when no process has.
holder() {
  for link in $(find /proc/[0-9]*/fd -lname "$1" 2>/dev/null); do
    pid=${link#/proc/}; pid=${pid%%/*}
    printf '%s\n' "$pid ($(tr -d '\n' <"/proc/$pid/comm" 2>/dev/null | tr -c '[:print:]' ' '))"
    return 0
  done
}

wait_for_lock() {
  waited=0
  while who=$(holder "$1"); [ -n "$who" ]; do
    [ "$waited" -ge "$patience" ] && fail "$1 is held by process $who for more than $patience s; see: ps -fp ${who%% *}"
    [ $((waited % 5)) -eq 0 ] && printf '%s\n' "waiting for $1, held by process $who"
    sleep 1
    waited=$((waited + 1))
  done
}

wait_for_others() {
  if command -v cloud-init >/dev/null 2>&1; then
    quietly "waiting for cloud-init" timeout "$patience" cloud-init status --wait || echo "cloud-init did not end well; going on"
  fi
  wait_for_lock /var/lib/dpkg/lock-frontend
  wait_for_lock /var/lib/apt/lists/lock
}

# Begin an installation: the settings' proxies count, and other installations end first.
# Dependencies come along unnamed: teardown takes away what this run has brought, so it is written down however this ends.
# Parameters: http_proxy, https_proxy, no_proxy (empty: none), bundle (address of the bundle's packages; empty: none).
begin() {
  [ -z "$http_proxy" ] || export http_proxy https_proxy no_proxy
  [ -z "$bundle" ] || only_bundle
  mkdir -p /run/rackwright /var/lib/rackwright
  before=$(installed)
  trap note_brought EXIT
  wait_for_others
}

# From a bundle apt knows its packages alone, by lists of their own: the host's sources and lists stay as they are.
only_bundle() {
  . /etc/os-release
  system=$ID-$VERSION_ID-$(dpkg --print-architecture) lists=/run/rackwright/bundle-apt
  rm -rf "$lists" && mkdir -p "$lists/lists/partial" || fail "$lists could not be made"
  # A bare host has no curl yet.
  /usr/lib/apt/apt-helper -o Acquire::http::Proxy=DIRECT download-file "$bundle/$system/Packages" "$lists/Packages" >"$lists/out" 2>&1 ||
    fail "the bundle has no packages for $system ($(grep '^E:' "$lists/out" | tail -n 1)); next, where there is a way out: rackwright bundle INVENTORY --out DIR --system $system"
  printf '%s\n' "deb [trusted=yes] $bundle/$system /" >"$lists/sources.list"
  from="-o Dir::Etc::sourcelist=$lists/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$lists/lists -o Acquire::http::Proxy=DIRECT"
}

installed() { dpkg-query -W -f '${Package} ${db:Status-Status}\n' | sed -n 's/ installed$//p' | sort; }

brought=/var/lib/rackwright/packages
note_brought() {
  { cat $brought 2>/dev/null; installed | grep -vxF "$before"; } | sort -u >$brought.new
  mv $brought.new $brought
}

refuse_half_configured() {
  broken=$(dpkg --audit 2>&1)
  [ -z "$broken" ] && return 0
  printf '%s\n' "$broken" | head -n 15
  fail "dpkg has half-configured packages; on this host run: dpkg --configure -a"
}

finish_half_configured() {
  echo "an interrupted installation is being completed on this host"
  quietly "configuring what was unpacked" dpkg --configure -a --force-confold --force-confdef || :
  apt "fixing dependencies" --fix-broken install
}

apt() {
  title=$1; shift
  # shellcheck disable=SC2086 - options
  quietly "$title" apt-get -q -y $from -o "DPkg::Lock::Timeout=$patience" -o Dpkg::Options::=--force-confold \
    -o Dpkg::Options::=--force-confdef -o Acquire::Retries=3 "$@" || fail "$title: failed, see the lines above${instead:+; next: $instead}"
}

refresh() { apt "refreshing the package lists" update; }

# Only the named list: the others were just refreshed.
refresh_one() {
  apt "refreshing the package list $1" update -o "Dir::Etc::sourcelist=$1" -o Dir::Etc::sourceparts=/dev/null \
    -o APT::Get::List-Cleanup=0
}

install() {
  instead="apt-get install $*, or in a closed network install the package files by hand; then the same command again"
  apt "installing $*" install --no-install-recommends --allow-downgrades --allow-change-held-packages "$@"
  instead=
}

# Versions of a package that apt knows, one a line.
versions() { apt-cache $from madison "$1" | cut -d '|' -f 2 | tr -d ' ' | sort -u; }

no_key() {
  next="look at the way there: mirrors and proxy in the settings"
  case $2 in *certificate*) next="set paths.private_ca if the site has its own authority, and run again" ;; esac
  printf '%s\n' "the key of the repository could not be fetched from $1: $2"
  fail "$next"
}

# The fingerprints of all primary keys in an armoured key file, one a line; nothing for other files. A bare host has no gpg.
# A fingerprint of version 4 is the SHA-1 over 0x99, two bytes of length and the key's packet (RFC 4880, 12.2).
fingerprints() {
  bytes=$1.bytes
  [ "$(grep -c 'BEGIN PGP PUBLIC KEY' "$1")" = 1 ] || return 0
  tr -d '\r' <"$1" | sed -n '/BEGIN PGP PUBLIC KEY/,/END PGP PUBLIC KEY/p' |
    awk 'body && !/^[-=]/ { print } /^$/ { body = 1 }' | base64 -d >"$bytes" 2>/dev/null || return 0
  od -An -v -tu1 "$bytes" | tr -s ' ' '\n' | awk '$1 != "" { b[n++] = $1 }
    function four(i) { return ((b[i] * 256 + b[i + 1]) * 256 + b[i + 2]) * 256 + b[i + 3] }
    END {
      for (i = 0; i < n; i += head + size) {
        if (b[i] >= 192) {
          type = b[i] - 192; one = b[i + 1]
          if (one < 192) { head = 2; size = one }
          else if (one < 224) { head = 3; size = (one - 192) * 256 + b[i + 2] + 192 }
          else if (one == 255) { head = 6; size = four(i + 2) }
          else { print "unknown"; exit }
        } else if (b[i] >= 128 && b[i] % 4 < 3) {
          type = int((b[i] - 128) / 4); kind = b[i] % 4
          if (kind == 0) { head = 2; size = b[i + 1] }
          else if (kind == 1) { head = 3; size = b[i + 1] * 256 + b[i + 2] }
          else { head = 5; size = four(i + 1) }
        } else { print "unknown"; exit }
        if (type == 6) print (b[i + head] == 4 && size < 65536) ? i + head " " size : "unknown"
      }
    }' | while read -r at size; do
    if [ "$at" = unknown ]; then echo unknown; continue; fi
    {
      printf '\231'
      # shellcheck disable=SC2059 - two bytes, as octal escapes
      printf "$(printf '\\%03o\\%03o' $((size / 256)) $((size % 256)))"
      tail -c +$((at + 1)) "$bytes" | head -c "$size"
    } | sha1sum | cut -c1-40 | tr a-f A-F
  done
  rm -f "$bytes"
}

# Every key in the file must be one of the pinned: apt would trust each of them. File, its address, fingerprints.
only_pinned() {
  found=$(fingerprints "$1")
  [ -n "$found" ] || fail "$2 did not answer with a key"
  for one in $found; do
    case " $3 " in *" $one "*) continue ;; esac
    rm -f "$1"
    printf '%s\n' "the key from $2 has the fingerprint $one, which is not pinned (pinned: $3), so it is not trusted"
    fail "compare it with what its owner publishes; only then write it into mirrors.docker_keys or mirrors.container_toolkit_keys (of a driver: mirrors.driver_keys)"
  done
}

# A third party's repository: name, key address, sources line, fingerprints of its keys.
add_repository() {
  [ -z "$bundle" ] || return 0
  keyring=/etc/apt/keyrings/rackwright-$1.asc sources=/etc/apt/sources.list.d/rackwright-$1.list
  printf '%s\n' "adding the repository $1"
  mkdir -p -m 0755 /etc/apt/keyrings
  (ulimit -f 4096; curl -fsSL --proto '=https' --proto-redir '=https' --max-redirs 5 --retry 3 --max-time 60 -o "$keyring.new" "$2" 2>"$log") ||
    no_key "$2" "$(grep -m 1 '^curl:' "$log")"
  only_pinned "$keyring.new" "$2" "$4"
  chmod 0644 "$keyring.new" && mv -f "$keyring.new" "$keyring"
  printf '%s\n' "$3" >"$sources.new" && chmod 0644 "$sources.new" && mv -f "$sources.new" "$sources"
  refresh_one "$sources"
}
