# Functions of jobs that handle the driver's packages; they stand behind apt.sh. Parameters: http_proxy, https_proxy, no_proxy, bundle.
options="--no-install-recommends --allow-downgrades --allow-change-held-packages"

# As apt.sh's begin, without its note of what was brought: a teardown leaves the driver.
begin_driver() {
  [ -z "$http_proxy" ] || export http_proxy https_proxy no_proxy
  [ -z "$bundle" ] || only_bundle
  mkdir -p /run/rackwright "$home"
  wait_for_others
}

# Files of the folder $1, and behind them the packages that are not to be there, each with a minus.
way() {
  printf '%s ' "$1"/*.deb
  for name in $2; do
    # shellcheck disable=SC2016 - dpkg-query's own variables
    ! dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || printf '%s- ' "$name"
  done
}

# The driver's packages among the files of the folder $1, and not what they brought along: these are held.
names_in() { for file in "$1"/*.deb; do dpkg-deb -f "$file" Package; done | grep -E 'nvidia|^cuda-drivers|^libcuda1|^libnv|^nvlsm'; }

# Hold the driver's packages in the folder $1.
hold() {
  # shellcheck disable=SC2046 - a list
  apt-mark hold $(names_in "$1") >/dev/null
}

# A removed package leaves its configuration, and apt keeps to a version-locking one's: the names of those that are to be gone.
forget_locks() {
  for name in $1; do
    case $name in nvidia-driver-pinning-*) dpkg --purge "$name" >/dev/null ;; esac
  done
}

# The subnet manager of NVLink 5 reaches the switches by the module ib_umad, which nothing else loads.
load_umad() {
  # shellcheck disable=SC2016 - dpkg-query's own variables
  dpkg-query -W -f '${db:Status-Status}\n' nvlsm 2>/dev/null | grep -qx installed || return 0
  if modprobe ib_umad 2>/dev/null; then echo ib_umad >/etc/modules-load.d/rackwright-ib-umad.conf
  else echo "this kernel has no module ib_umad, without which NVLink 5's subnet manager does not start; on Ubuntu: apt-get install linux-modules-extra-$(uname -r)"; fi
}

# What starts with the driver at each boot, which NVIDIA's packages leave to the operator. `fabric`: yes where the machine runs one.
start_at_boot() {
  [ -z "$fabric" ] || systemctl enable --quiet nvidia-fabricmanager || echo "nvidia-fabricmanager does not start at boot; next, on this host: systemctl enable --now nvidia-fabricmanager"
  [ -n "$(value_of old)" ] || ! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || systemctl enable --quiet nvidia-persistenced || :
}

# What is held before the switch, for the way back.
note_holds() { [ -e "$home/$version/held" ] || apt-mark showhold >"$home/$version/held"; }

# After the way back: held is what was held before.
hold_as_before() {
  for name in $(names_in "$home/$version/new"; names_in "$home/$version/old"); do
    if grep -qxF "$name" "$home/$version/held" 2>/dev/null; then apt-mark hold "$name"; else apt-mark unhold "$name"; fi >/dev/null 2>&1
  done
  rm -f "$home/$version/held"
}

value_of() { sed -n "s/^$1=//p" "$home/staged"; }

# Whole as they were staged: a package that is gone or broken is no way back.
refuse_broken_packages() {
  (cd "$home/$version" && sha256sum --status --check sums) ||
    fail "the staged packages in $home/$version are not as they were fetched; next: pyinfra INVENTORY deploy.py, which stages them again"
}

# apt's plan for these words, into the file $plan; its caches stay those of the real state.
simulate() {
  # shellcheck disable=SC2086 - options
  apt-get -s -q -y $from $options -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@" >"$plan" 2>&1
}
