# Install the staged driver, while the host's endpoints rest; a restart follows whatever becomes of it, and shows what counts.
# Parameters: version, fabric (yes: the machine runs a fabric manager), home, http_proxy, https_proxy, no_proxy, bundle. It stands behind
# event.sh, durable.sh, apt.sh and driver_packages.sh.
begin_driver
note_holds
kernel=$(value_of kernel)
# shellcheck disable=SC2046,SC2086 - options and lists
if keep_kernel "$kernel" && (apt "installing NVIDIA's driver $version" $options install $(way "$home/$version/new" "$(value_of drop)")) && boot_once "$kernel"; then
  forget_locks "$(value_of drop)"
  hold "$home/$version/new"
  load_umad
  start_at_boot
  exit 0
fi
forget_kernel
printf '%s\n' "version=$version" "text=its packages could not be installed" | durable_file "$home/failed"
if [ -n "$(value_of old)" ]; then
  echo "going back to the driver $(value_of old)"
  # shellcheck disable=SC2046,SC2086 - options and lists
  (apt "going back to NVIDIA's driver $(value_of old)" $options install $(way "$home/$version/old" "$(value_of remove)"))
  forget_locks "$(value_of remove)"
  hold_as_before
fi
exit 0
