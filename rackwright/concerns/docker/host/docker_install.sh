# Install what is missing, prerequisites first. Parameters (empty: not wanted): basics, toolkit, toolkit_key,
# toolkit_source, toolkit_fingerprints, toolkit_pin, engine, engine_key, engine_source, engine_fingerprints, hold, trust, finish, bundle, http_proxy, https_proxy, no_proxy.
#include stale_socket.sh
begin
[ -n "$finish" ] && finish_half_configured
refuse_half_configured
refresh
[ -n "$basics" ] && install $basics
[ -f "$trust" ] && quietly "trusting the site's certificate authority" update-ca-certificates
if [ -n "$toolkit" ]; then
  add_repository container-toolkit "$toolkit_key" "$toolkit_source" "$toolkit_fingerprints"
  there=$(versions nvidia-container-toolkit)
  [ -z "$toolkit_pin" ] || printf '%s\n' "$there" | grep -qxF "$toolkit_pin" ||
    fail "container_toolkit.version: the repository has no $toolkit_pin; it has:" $there
  install $toolkit
fi
if [ -n "$engine" ]; then
  end_stale_socket
  [ -n "$engine_key" ] && add_repository docker "$engine_key" "$engine_source" "$engine_fingerprints"
  install $engine
fi
held=
for package in $hold; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed && held="$held $package"
done
[ -z "$held" ] || apt-mark hold $held >/dev/null
echo "installed"
