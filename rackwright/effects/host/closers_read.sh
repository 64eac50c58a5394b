# Print the filter tables of one family, nft's ruleset, and the interfaces of who could not connect, in base64.
# Parameters: source (its address).
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
have() { command -v "$1" >/dev/null 2>&1; }
encoded() { printf '%s\n' "$1 $(base64 -w0)"; }
save() { have "$1-save" && text=$("$1-save" -t filter 2>/dev/null) && printf '%s\n' "$text" | encoded "table $1"; }
case $source in
*:*) command=ip6tables used=/proc/net/ip6_tables_names ;;
*) command=iptables used=/proc/net/ip_tables_names ;;
esac
save "$command"
# The legacy commands load kernel modules when asked about a table that nobody uses.
case $("$command" -V 2>/dev/null) in
*nf_tables*) grep -qx filter "$used" 2>/dev/null && save "$command-legacy" ;;
*) save "$command-nft" ;;
esac
have nft && nft list ruleset 2>/dev/null | encoded nft
ip -o route get "$source" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p' | encoded came_by
timeout 5 docker network inspect bridge --format '{{index .Options "com.docker.network.bridge.name"}}' 2>/dev/null | encoded bridge
exit 0
