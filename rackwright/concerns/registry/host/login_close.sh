# Let only root read root's logins. Parameters: config.
#include behind.sh
config=$(behind "$config") && chown root:root "$config" && chmod 0600 "$config"
