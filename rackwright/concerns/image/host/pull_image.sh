# Pull one image, with progress, retries, and an error text of its own for each way in which it can fail.
set -u
# Where its files are here already, a registry of the host's own has them.
[ -z "${led_to:-}${loaded:-}" ] || bundle=${led_to:-}
export http_proxy https_proxy no_proxy HTTP_PROXY="$http_proxy" HTTPS_PROXY="$https_proxy" NO_PROXY="$no_proxy"
export DOCKER_CONFIG="$kept"
[ -e "$SECRETS/config.json" ] && export DOCKER_CONFIG="$SECRETS"
case $(uname -m) in x86_64) machine=amd64 ;; aarch64) machine=arm64 ;; *) machine=$(uname -m) ;; esac
work=$(mktemp -d "$run/pull.XXXXXXXX")
pull=
way=
pulled=$reference # as Docker asks for it
trap 'rm -rf "$work"; [ -z "$pull" ] || kill "$pull" 2>/dev/null; [ -z "$way" ] || { kill "$way" 2>/dev/null; own_names; forget_address; }' EXIT
trap 'exit 143' TERM INT
fail() { printf 'error: %s\n' "$@"; exit 1; }
mistake() { printf 'error: %s\n' "$@"; exit 78; } # what only other settings help against
said() { grep -Eqi "$1" "$work/out"; }
lines() { grep -Ec "$1" "$work/out"; }
docker_root() { timeout 60 docker info --format '{{.DockerRootDir}}' 2>/dev/null; }
in_containerd() { timeout 60 docker info --format '{{.DriverStatus}}' 2>/dev/null | grep -qF io.containerd.snapshotter; }
images_root() { if in_containerd && [ -d /var/lib/containerd/io.containerd.content.v1.content ]; then echo /var/lib/containerd; else docker_root; fi; }
here_of() { du -scb "$@" 2>/dev/null | tail -n 1 | cut -f 1; } # bytes
layer_sizes() { # reads what `docker manifest inspect --verbose` prints; prints the short name and the size of each layer for this machine
  awk -v machine="$machine" '
    function value(line) { sub(/^[^:]*: */, "", line); gsub(/[",]/, "", line); return line }
    /"architecture":/ { arch = value($0) }
    /"layers": \[/ { layers = 1 }
    layers && /"size":/ { size = value($0) }
    layers && /"digest":/ { name = substr(value($0), 8, 12) }
    layers && /}/ { if (name != "" && arch == machine) print name, size; name = size = "" }
    /\]/ { layers = 0 }'
}
bytes_of() { # an expression; prints the bytes of the layers of which Docker says so
  grep -E "$1" "$work/out" | cut -d: -f1 | awk 'NR == FNR { size[$1] = $2; next } !seen[$1]++ { sum += size[$1] } END { printf "%.0f\n", sum }' "$work/sizes" -
}
how_much() { # what Docker's own store holds until it is unpacked, what containerd's has in flight, seconds since the last; sets `text`: how much of all is here, and the rate
  text=
  [ -s "$work/sizes" ] || return 0
  unpacked=$(bytes_of ': (Pull complete|Already exists)') complete=$(bytes_of ': (Download complete|Pull complete|Already exists)')
  text=$(awk -v a="$((unpacked + $1))" -v b="$((complete + $2))" -v was="$was" -v seconds="$3" '
    function size(bytes) { return bytes >= 2 ^ 30 ? sprintf("%.1f GiB", bytes / 2 ^ 30) : sprintf("%.1f MiB", bytes / 2 ^ 20) }
    { all += $2 }
    END { now = a > b ? a : b; if (now > all) now = all
      rate = now > was ? (now - was) / seconds : 0
      if (all) printf "%.0f %s of %s (%d%%), %.1f MiB/s", now, size(now), size(all), 100 * now / all, rate / 2 ^ 20 }' "$work/sizes")
  was=${text%% *} text=${text#* }
}

# From a bundle, an image comes from this host itself while the pull lasts: from a port of a loopback address, behind which
# the bundle answers. dockerd takes an address of 127.0.0.0/8 without TLS, and every byte by its digest.
# To a graph driver the registry's own name leads there: only a pull by that name records its digest. containerd's store has one
# digest for all names of an image, so there it is pulled by the address and named afterwards: dockerd may want a certificate of a name.
#include bundle_names.sh
lead_to_bundle() {
  if in_containerd && [ "$reference" != "${reference#*@}" ]; then
    listen_at 600
    pulled=$loopback:600/${repository#"$registry/"}@${reference##*@}
    return
  fi
  name=${registry%:*}; case $registry in *:*) port=${registry##*:} ;; *) port=80 ;; esac
  listen_at "$port"
  { sed "s/^\([^#].*[[:space:]]$name\([[:space:]].*\)\{0,1\}\)\$/$tag: \1/" $hosts; printf '%s %s %s\n' "$loopback" "$name" "$tag"; } >"$hosts.rackwright" &&
    chmod 0644 "$hosts.rackwright" && mv -f "$hosts.rackwright" $hosts || fail "$hosts could not be written" "look at it: ls -l $hosts"
}
listen_at() { # a port of the address
  proxyd=$(ls /lib/systemd/systemd-socket-proxyd /usr/lib/systemd/systemd-socket-proxyd 2>/dev/null | head -n 1)
  { command -v systemd-socket-activate && [ -n "$proxyd" ]; } >/dev/null || fail "systemd's socket-proxyd is not on this host" "it is part of the package systemd"
  systemd-socket-activate -l "$loopback:$1" "$proxyd" "$bundle" 2>"$work/way" &
  way=$!
  sleep 1
  kill -0 "$way" 2>/dev/null || { way=; fail "port $1 of $loopback cannot be listened at: $(tail -n 1 "$work/way")" "see which program has it: ss -ltnp 'sport = :$1'"; }
}
give_own_name() { # to what was pulled by the address; a tag that is here stays what it is
  [ "$pulled" != "$reference" ] || return 0
  name=$tagged
  ! timeout 60 docker image inspect "$name" >/dev/null 2>&1 || name=$repository:rackwright-$(printf %.12s "${reference##*:}")
  timeout 60 docker tag "$pulled" "$name" || fail "$reference could not be named" "look at: journalctl -u docker"
}
forget_address() { [ "$pulled" = "$reference" ] || timeout 60 docker rmi "$pulled" >/dev/null 2>&1; }

check_machine() { # what the registry says of the image's machines, where this Docker can tell; Docker 20.10 reads no manifest of OCI
  printf '%s\n' "$sizes" | sed -nE "s/^(-|$machine) //p" >"$work/sizes"
  timeout 30 docker manifest inspect --verbose "$pulled" >"$work/manifest" 2>/dev/null || return 0
  layer_sizes <"$work/manifest" >"$work/layers"
  [ ! -s "$work/layers" ] || mv -f "$work/layers" "$work/sizes"
  offered=$(sed -n 's/.*"architecture": "\([a-z0-9_]*\)".*/\1/p' "$work/manifest" | sort -u | grep -v unknown)
  [ -z "$offered" ] || printf '%s\n' "$offered" | grep -qx "$machine" || wrong_machine "$(printf '%s\n' "$offered" | tr '\n' ' ')"
}

wrong_machine() {
  mistake "$reference is for ${1% }, and this host is $machine: nothing was pulled" \
    "choose an image with linux/$machine: set image (and image_digest) for this host's group"
}

show_progress() { # beside the pull; stops it when nothing moves for $stall seconds
  beat=0 quiet=0 before= was=0
  while kill -0 "$pull" 2>/dev/null; do
    sleep 2
    [ $beat != 0 ] || root=$(docker_root)
    beat=$((beat + 2)); quiet=$((quiet + 2))
    layers=$(lines ': (Pulling fs layer|Already exists)'); fetched=$(lines ': (Download complete|Already exists)')
    done=$(lines ': (Pull complete|Already exists)'); own=$(here_of "$root"/tmp/GetImageBlob*) other=$(here_of /var/lib/containerd/io.containerd.content.v1.content/ingest)
    bytes=$((${own:-0} + ${other:-0}))
    [ "$layers $fetched $done $bytes" = "$before" ] || quiet=0
    before="$layers $fetched $done $bytes"
    if [ $((beat % 4)) = 0 ]; then
      how_much "${own:-0}" "${other:-0}" 4
      event progress "layers: $fetched of $layers fetched, $done unpacked, $((bytes / 1048576)) MiB in flight, $beat s${text:+; $text}"
    fi
    # Unpacking a large layer says nothing for minutes: only a download can stall.
    if [ "$quiet" -ge "$stall" ] && { [ "$layers" = 0 ] || [ "$fetched" -lt "$layers" ]; }; then
      kill "$pull"; printf '%s\n' "stalled: no byte for $stall s" >>"$work/out"
    fi
  done
}

pull_once() {
  docker pull "$pulled" >"$work/out" 2>&1 &
  pull=$!
  show_progress &
  beside=$!
  wait "$pull"; status=$?; pull=
  kill "$beside" 2>/dev/null
  [ $status = 0 ] && ! said '^stalled'
}

transient='timeout|timed out|stalled|i/o|EOF|connection re|TLS handshake|no such host|no route|unreachable|unexpected HTTP status: 5|50[0234] |toomanyrequests|Too Many|429'
denied='unauthorized|authentication required|no basic auth|denied|forbidden|status: 40[13]|40[13] (unauthorized|forbidden)'

explain() {
  text=$(grep -v ': \(Pulling fs layer\|Waiting\|Verifying Checksum\|Download complete\|Pull complete\|Already exists\)$' "$work/out" | tail -n 3)
  if [ -n "${led_to:-}" ] && said 'unknown blob|manifest unknown|not found'; then
    fail "$reference cannot be loaded from what other hosts handed on" "$text" "run again: what is wrong is taken again"
  elif [ -n "$bundle" ] && said 'unknown blob|manifest unknown|not found'; then
    mistake "$reference cannot be taken from the bundle" "$text" \
      "a line above says which of its files is damaged (RW3893); all of them: rackwright bundle INVENTORY --verify DIR"
  elif said 'no space left'; then
    root=$(images_root)
    fail "the disk is full: $reference does not fit into $root" "$text" "free space there (df -h $root) and run again; what was pulled is kept"
  elif said "$denied"; then
    if [ "$key" = given ]; then
      mistake "$registry refuses the key (registry.key) for $reference" "$text" \
        "make a new key, or one with access to this image; put it into group_vars (ansible-vault edit) and run again"
    fi
    mistake "$registry wants a key for $reference, and none is set" "$text" "set registry.key in group_vars (ansible-vault encrypt_string) and run again"
  elif said 'no matching manifest|does not match the specified platform'; then
    mistake "$reference has no image for linux/$machine" "$text" "choose another image for this host's group"
  elif said 'manifest unknown|name unknown|not found|NAME_INVALID'; then
    mistake "$registry has no $reference (404)" "$text" "check image and image_digest in group_vars; to follow the tag again: rackwright pin"
  elif said 'x509|certificate'; then
    fail "$registry's certificate is not trusted here" "$text" "set paths.private_ca if the site has its own authority, and run again"
  elif said 'Cannot connect to the Docker daemon'; then
    fail "dockerd went away during the pull" "$text" "look at: journalctl -u docker"
  fi
  fail "$reference could not be pulled from $registry after $try tries" "$text" "run again later; layers that arrived are kept"
}

mkdir -p "$work/none"
# One pull at a time leads a name to the bundle; what a pull that was killed has left is taken away first.
exec 8>>"$run/bundle.lock"
# Others wait for its end: the name must not lead them there.
lock() { # as the arguments say
  flock --nonblock "$@" 8 || { printf '%s\n' "another pull on this host leads a registry's name to a bundle: waiting for its end"; flock "$@" 8; }
}
if [ -n "$bundle" ]; then lock && own_names; echo used >&8; lead_to_bundle; else ! flock -n 8 || own_names; lock -s; fi
[ -n "${led_to:-}${loaded:-}" ] || check_machine
try=1
until [ -n "${loaded:-}" ] || pull_once; do
  if said "$denied" && [ "$DOCKER_CONFIG" != "$work/none" ]; then
    # An image that is open to all must not fail by a key that has expired.
    cp "$work/out" "$work/refused"; export DOCKER_CONFIG="$work/none"
    pull_once && { [ "$key" = none ] || printf '%s\n' "warning: $registry refuses the key, and gives this image without one"; break; }
    cp "$work/refused" "$work/out"; explain
  fi
  said "$denied|no space left|no matching manifest|manifest unknown|x509" && explain
  said "$transient" && [ $try -lt 4 ] || explain
  wait_for=$((2 * try * try))
  printf '%s\n' "try $try failed ($(tail -n 1 "$work/out")); again in $wait_for s"
  sleep $wait_for; try=$((try + 1))
done

give_own_name
# One question for all: each of Docker's clients costs more than what it asks. The second line is the tag's, if it is there.
found=$(timeout 60 docker image inspect --format '{{.Architecture}} {{join .RepoDigests " "}}' "$reference" "$tagged" 2>/dev/null)
{ read -r got digests; read -r is_tagged _; } <<END
$found
END
if [ "$got" != "$machine" ]; then timeout 60 docker rmi "$reference" >/dev/null; wrong_machine "$got"; fi
# Images without a tag are what `docker image prune` removes.
[ -n "$is_tagged" ] || timeout 60 docker tag "$reference" "$tagged"
if [ -n "$pin" ]; then
  digest=
  for name in $digests; do case $name in *"$repository@"*) digest=${digest:-$name} ;; esac; done
  [ -n "$digest" ] || fail "$reference came without a digest" "pull it from a registry, not from an archive"
  mkdir -p -m 0755 "${pin%/*}"
  printf '%s %s\n' "$tagged" "${digest##*@}" >"$pin.new" && sync -d "$pin.new" && mv -f "$pin.new" "$pin"
fi
printf '%s\n' "pulled $reference"
