# Install the staged driver on a host that has none, and load it without a restart: nothing serves here.
# Parameters: version, fabric (yes: the machine runs a fabric manager), home, http_proxy, https_proxy, no_proxy, bundle. It stands behind
# event.sh, durable.sh, apt.sh and driver_packages.sh.
begin_driver
[ "$(value_of version)" = "$version" ] || fail "NVIDIA's driver $version is not staged here; next: pyinfra INVENTORY deploy.py"
kernel=$(value_of kernel)
[ -z "$kernel" ] || [ "$kernel" = "$(uname -r)" ] ||
  fail "NVIDIA's driver $version comes with the kernel $kernel, and a deploy restarts no host: nothing was installed; next: rackwright rollout INVENTORY --drivers --limit HOST, which installs both, and restarts it"
refuse_half_configured
refuse_broken_packages
names=$(names_in "$home/$version/new")

# Leave the host without a driver, as it was: half of one would be in the way of the next attempt.
take_away() {
  there=
  for name in $names; do
    # shellcheck disable=SC2016 - dpkg-query's own variables
    ! dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qvx -e not-installed -e config-files || there="$there $name"
  done
  # shellcheck disable=SC2086 - a list
  [ -z "$there" ] || (apt "taking NVIDIA's driver $version away again" purge $there)
}

# shellcheck disable=SC2046,SC2086 - options and lists
if ! (apt "installing NVIDIA's driver $version" $options install $(way "$home/$version/new" "$(value_of drop)")); then
  take_away
  fail "NVIDIA's driver $version could not be installed, and was taken away again; apt's words are above; next: another driver.version, or on this host: /var/log/apt/term.log"
fi
# shellcheck disable=SC2086 - a list
printf '%s\n' $names | durable_file "$home/holds" || fail "$home/holds could not be written"
hold "$home/$version/new"
start_at_boot
event progress "loading NVIDIA's driver $version"
loaded=$(modprobe nvidia 2>&1) ||
  fail "NVIDIA's driver $version is installed, and its module was not loaded: $(printf '%s\n' "$loaded" | tail -n 1); next: rackwright rollout INVENTORY --drivers --limit HOST, which restarts the host; or on it: journalctl -k --grep NVRM"
modprobe nvidia-uvm 2>/dev/null || :
load_umad
[ -z "$fabric" ] || systemctl start nvidia-fabricmanager || echo "nvidia-fabricmanager did not start; see: journalctl -u nvidia-fabricmanager"
! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || systemctl start nvidia-persistenced || :
# It makes the devices, too.
timeout 120 nvidia-smi -L || fail "NVIDIA's driver $version is loaded, and nvidia-smi does not answer; next, on this host: journalctl -k --grep NVRM"
