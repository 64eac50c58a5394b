# Install HAProxy from the system's repositories. Parameters: packages, http_proxy, https_proxy, no_proxy.
[ -z "$http_proxy" ] || export http_proxy https_proxy no_proxy
mkdir -p /run/rackwright /var/lib/rackwright
# Dependencies come along unnamed: teardown takes away what this run has brought, so it is written down however this ends.
installed() { dpkg-query -W -f '${Package} ${db:Status-Status}\n' | sed -n 's/ installed$//p' | sort; }
brought=/var/lib/rackwright/packages
before=$(installed)
note() { { cat $brought 2>/dev/null; installed | grep -vxF "$before"; } | sort -u >$brought.new; mv $brought.new $brought; }
trap note EXIT
wait_for_others
refuse_half_configured
refresh
# shellcheck disable=SC2086 - a list of names
install $packages
# The package begins a service with a file of its own, which serves nothing.
case " $packages " in *' haproxy '*) systemctl disable --quiet --now haproxy.service 2>/dev/null ;; esac
echo "installed"
