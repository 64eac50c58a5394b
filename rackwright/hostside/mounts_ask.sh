# Which of the settings' folders are on a file system that does not answer: a process that touches one waits for ever.
# It runs in the reading's own shell. Parameters: reading_folders.
reading_hung=' ' reading_remote=
while read -r _ reading_mount reading_kind _; do
  case $reading_mount in /proc/* | /run/* | /sys/*) continue ;; esac
  case $reading_kind in nfs* | cifs | smb* | ceph | lustre | gpfs | beegfs* | glusterfs | 9p | autofs | fuse.*) reading_remote=yes ;; esac
done </proc/self/mounts
# Processes only where such a file system is mounted at all; a link may lead there from anywhere.
[ -z "$reading_remote" ] || for reading_folder in $reading_folders; do
  timeout -k 1 5 stat -f -t "$reading_folder/." >/dev/null 2>&1
  case $? in 124 | 137) reading_hung="$reading_hung$reading_folder " ;; esac
done
hangs() { case $reading_hung in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
