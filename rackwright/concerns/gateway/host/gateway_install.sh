# Install HAProxy from the system's repositories. Parameters: packages, bundle, http_proxy, https_proxy, no_proxy.
begin
refuse_half_configured
# A service of this name from before is the operator's, as of an HAProxy that was built by hand.
theirs=yes
case " $packages " in *' haproxy '*) systemctl cat haproxy.service >/dev/null 2>&1 || theirs= ;; esac
refresh
# shellcheck disable=SC2086 - a list of names
install $packages
# The package begins a service with a file of its own, which serves nothing.
[ "$theirs" ] || systemctl disable --quiet --now haproxy.service 2>/dev/null
echo "installed"
