# Write when the certificate that the site has given ends. Parameters: served (PEM) folder (of metrics) place (of the file's path).
#include certificate_metrics.sh
metrics "$served" "$folder" "$place"
