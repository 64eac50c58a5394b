# Put the driver of before back, while the host's endpoints rest; a restart follows. Parameters: version (that failed), why, home,
# http_proxy, https_proxy, no_proxy, bundle. It stands behind event.sh, durable.sh, apt.sh and driver_packages.sh.
begin_driver
old=$(value_of old)
[ -n "$old" ] || fail "there was no driver before $version"
event progress "going back to NVIDIA's driver $old"
printf '%s\n' "version=$version" "text=$why" | durable_file "$home/failed"
forget_kernel
refuse_broken_packages
# shellcheck disable=SC2046,SC2086 - options and lists
apt "going back to NVIDIA's driver $old" $options install $(way "$home/$version/old" "$(value_of remove)")
forget_locks "$(value_of remove)"
hold_as_before
exit 0
