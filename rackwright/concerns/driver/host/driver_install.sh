# Install the staged driver, while the host's endpoints rest; a restart follows whatever becomes of it, and shows what counts.
# Parameters: version, home, http_proxy, https_proxy, no_proxy, bundle. It stands behind event.sh, durable.sh, apt.sh and driver_packages.sh.
begin_driver
event progress "installing NVIDIA's driver $version"
# shellcheck disable=SC2046,SC2086 - options and lists
if (apt "installing NVIDIA's driver $version" $options install $(way "$home/$version/new" "")); then
  # shellcheck disable=SC2046 - a list
  apt-mark hold $(names_in "$home/$version/new") >/dev/null
  exit 0
fi
printf '%s\n' "version=$version" "text=its packages could not be installed" | durable_file "$home/failed"
echo "going back to the driver $(value_of old)"
# shellcheck disable=SC2046,SC2086 - options and lists
[ -z "$(value_of old)" ] || (apt "going back to NVIDIA's driver $(value_of old)" $options install $(way "$home/$version/old" "$(value_of remove)"))
exit 0
