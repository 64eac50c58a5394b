# Exit with 0 if this host's gateway answers at all: that no model has a host is no reason for the address to move.
exec curl --silent --insecure --noproxy '*' --max-time 2 --output /dev/null "$url"
