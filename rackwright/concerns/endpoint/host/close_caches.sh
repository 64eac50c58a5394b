# Keep all users but root out of the folder in which an endpoint's container writes: a file that it has marked
# setuid there would make any user root. The container runs on. Parameters: folder.
[ ! -L "$folder" ] && chown root:root "$folder" && chmod 0700 "$folder"
