# Before anything is stopped: the staged packages are whole, and apt would install them now. Parameters: version, home, http_proxy,
# https_proxy, no_proxy, bundle. It stands behind apt.sh and driver_packages.sh.
begin_driver
plan=$home/plan
[ "$(value_of version)" = "$version" ] || fail "NVIDIA's driver $version is not staged here; next: pyinfra INVENTORY deploy.py"
refuse_half_configured
refuse_broken_packages
# shellcheck disable=SC2046 - a list
simulate install $(way "$home/$version/new" "$(value_of drop)") || { tail -n 15 "$plan"; fail "apt would not install the staged packages; its words are above"; }
