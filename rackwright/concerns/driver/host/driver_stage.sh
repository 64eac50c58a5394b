# Bring the packages of another driver onto the host, and those of the way back; nothing is installed.
# Parameters: version, branch, old (version of now; empty: none), old_branch, packages (of now, their names), more (further ones, names to
# choose from with | between them), others (of versions of their own), lock (name of the driver's version-locking package), locks (those
# of now), home, key, source, fingerprints (empty: no repository is to be added), bundle, http_proxy, https_proxy, no_proxy. It stands
# behind apt.sh, driver_packages.sh and driver_kernel.sh.
begin_driver
refuse_half_configured
refresh
command -v curl >/dev/null || install curl ca-certificates
[ -z "$source" ] || add_repository driver "$key" "$source" "$fingerprints"
folder=$home/$version part=$home/$version.part plan=$home/plan
rm -rf "$part"; mkdir -p "$part/new" "$part/old"

# The newest version that apt knows of a package for that driver: an epoch may stand before it, a revision behind it.
version_of() { versions "$1" | grep -E "^([0-9]+:)?$(printf %s "$version" | sed 's/\./\\./g')(-|\$)" | sort -V | tail -n 1; }

# The names that a package may have in the wanted branch: from 590 on they are without one.
names_of() {
  [ -n "$old_branch" ] || { printf '%s\n' "$1"; return; }
  printf '%s\n' "$1" | sed "s/-$old_branch\\(-\\|\$\\)/-$branch\\1/"
  case $1 in *-"$old_branch" | *-"$old_branch"-*) printf '%s\n' "$1" | sed "s/-$old_branch\\(-\\|\$\\)/\\1/" ;; esac
}

# NAME=VERSION of the first of these names that apt knows in that version; nothing without one.
chosen() {
  for name in "$@"; do
    found=$(version_of "$name")
    [ -z "$found" ] || { printf '%s=%s\n' "$name" "$found"; return; }
  done
}

other="another driver.version" one_of="a driver.version of these, or mirrors.driver"
if [ -n "$bundle" ]; then other="where there is a way out: rackwright bundle INVENTORY --out DIR, with this driver.version" one_of=$other; fi
install= missing=
for package in $packages; do install="$install $(chosen $(names_of "$package"))"; done
for package in $more; do
  one=$(chosen $(printf %s "$package" | tr '|' ' '))
  [ -n "$one" ] || missing=${missing:-$package}
  install="$install $one"
done
case " $(printf '%s ' $install)" in
  *nvidia-kernel-*=* | *nvidia-dkms-*=* | *nvidia-headless-*=* | *linux-modules-nvidia-*=* | *nvidia-open*=*) ;;
  *)
    fail "apt knows no kernel modules of NVIDIA's driver $version; for $(set -- $packages; echo "${1:-$more}") it has: $(versions "$(set -- $packages; echo "${1:-nvidia-open}")" | tr '\n' ' '); next: $one_of" ;;
esac
[ -z "$missing" ] || fail "apt knows no $(printf %s "$missing" | sed 's/|/ and no /g') of NVIDIA's driver $version, which this machine needs beside it; next: $other"
for name in $others; do
  if [ -n "$(versions "$name")" ]; then install="$install $name"
  # shellcheck disable=SC2016 - dpkg-query's own variables
  elif ! dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed; then
    fail "apt knows no $name, which this machine needs beside its driver$([ "$name" != nvlsm ] || echo " for NVLink 5"); next: a repository on this host that has it (NVIDIA's has nvlsm, Ubuntu's archive does not), or driver.source: nvidia"
  fi
done
install=$(printf '%s ' $install)

# NVIDIA's own lock for exactly this driver, where its repository has one; that of another driver goes, and the
# way back brings it again; without one, that of the branch may stay.
found=$(versions "$lock" | sort -V | tail -n 1)
[ -z "$found" ] || install="$install$lock=$found "
drop= away=
for name in $locks; do
  case $name:$found in "$lock:"* | "${lock%-*}-$branch:") ;; *) drop="$drop$name " away="$away$name- " ;; esac
done

# As NVIDIA's version-locking packages do it: what the driver's packages need is of its version as well, and not the newest.
{ cat /etc/apt/preferences 2>/dev/null; printf '\nPackage: *nvidia* cuda-drivers* libcuda1 libnv*\nPin: version %s-*\nPin-Priority: 1001\n' "$version"; } >"$home/pin"
rm -rf "$home/preferences"; mkdir "$home/preferences"
for file in /etc/apt/preferences.d/*; do
  case $file:$(dpkg -S "$file" 2>/dev/null) in *nvidia*pinning* | *'/*:') ;; *) cp "$file" "$home/preferences/" ;; esac
done
from="$from -o Dir::Etc::preferences=$home/pin -o Dir::Etc::preferencesparts=$home/preferences"
# shellcheck disable=SC2086 - a list
simulate install $install $away || { tail -n 15 "$plan"; fail "apt cannot install $install; its words are above"; }
kernel=$(kernel_of "$plan")
refuse_kernel "$kernel" "$plan"
for name in $(sed -n 's/^Remv \([^ ]*\).*/\1/p' "$plan"); do
  case " $(printf '%s ' $packages $locks)" in *" $name "*) ;; *) fail "NVIDIA's driver $version would take the package $name away, which is not the driver's; next: apt-get remove $name, or another driver.version" ;; esac
done

# By name, and not by an installation that only fetches: that copies nothing from a repository on the host's own disk.
fetch_new() {
  # shellcheck disable=SC2086 - options and a list
  cd "$part/new" && apt-get -q $from -o Acquire::Retries=3 download $new
}
new=$(sed -n 's/^Inst \([^ ]*\) \(\[[^]]*\] \)\{0,1\}(\([^ ]*\) .*/\1=\3/p' "$plan" | sort -u | tr '\n' ' ')
quietly "fetching $new" fetch_new || fail "the packages of NVIDIA's driver $version could not be fetched; apt's words are above"

# A package of now: from its archive, from apt's cache, or packed again from what is installed.
fetch_old() {
  file=${1%%=*}_$(printf %s "${1#*=}" | sed 's/:/%3a/')
  for there in "$home"/*/new/"$file"_*.deb /var/cache/apt/archives/"$file"_*.deb; do
    [ ! -f "$there" ] || { cp "$there" "$part/old/"; return 0; }
  done
  # shellcheck disable=SC2086 - options
  (cd "$part/old" && apt-get -q $from -o Acquire::Retries=3 download "$1" >"$log" 2>&1) && return 0
  [ -z "$bundle" ] || command -v dpkg-repack >/dev/null || { before=$(installed) && install dpkg-repack && note_brought; }
  command -v dpkg-repack >/dev/null && (cd "$part/old" && dpkg-repack "${1%%=*}" >"$log" 2>&1) && return 0
  fail "there is no way back: the package ${1%%=*} ${1#*=}, which is installed now, is no longer in any archive; next, on this host: apt-get install dpkg-repack, which packs what is installed, or put that package's file into /var/cache/apt/archives"
}

sed -n 's/^\(Inst\|Remv\) \([^ ]*\) \[\([^]]*\)\].*/\2=\3/p' "$plan" | sort -u >"$part/before"
# The kernel stays: nothing can remove the one that runs.
remove=$(sed -n 's/^Inst \([^ ]*\) (.*/\1/p' "$plan" | sort -u | grep -Ev '^linux-(image|headers|kbuild|tools|modules-[0-9]|modules-extra)' | tr '\n' ' ')
while read -r package; do fetch_old "$package" || exit 1; done <"$part/before"

# The way back, as apt would go it once the new driver is installed: it is asked with the packages' list of then.
if [ -s "$part/before" ]; then
  gone=$(sed -n 's/^\(Inst\|Remv\) \([^ ]*\) .*/\2/p' "$plan")
  awk -v gone="$gone" 'BEGIN { RS = ""; ORS = "\n\n"; n = split(gone, all, "\n"); for (i = 1; i <= n; i++) drop[all[i]] = 1 }
    { split($0, rows, "\n"); name = rows[1]; sub(/^Package: /, "", name); if (!(name in drop)) print }' /var/lib/dpkg/status >"$part/status"
  for file in "$part"/new/*.deb; do
    dpkg-deb -f "$file" | sed 's/^Package: .*/&\nStatus: install ok installed/' && echo
  done >>"$part/status"
  back=$(printf '%s ' "$part"/old/*.deb; for name in $remove; do printf '%s- ' "$name"; done)
  # shellcheck disable=SC2086 - a list
  simulate -o "Dir::State::status=$part/status" install $back || {
    tail -n 15 "$plan"; fail "the way back from NVIDIA's driver $version to $old is not clean; apt's words are above; next: another driver.version, or dpkg --audit"
  }
fi
rm -f "$part/status" "$part/before"
(cd "$part" && find . -name '*.deb' -exec sha256sum {} + >sums) || fail "the packages could not be read again"
rm -rf "$folder"; mv "$part" "$folder"
find "$folder" -exec sync {} +
printf '%s\n' "version=$version" "old=$old" "install=$install" "remove=$remove" "drop=$drop" "kernel=$kernel" "hold=$(names_in "$folder/new" | tr '\n' ' ')" |
  durable_file "$home/staged" || fail "$home/staged could not be written"
for other in "$home"/*/; do [ "$other" = "$folder/" ] || rm -rf "$other"; done
rm -f "$home/failed"
echo "staged"
