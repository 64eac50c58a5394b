#!/bin/bash
# mpirun's agent in the head's container: leaves what is to run on another host where the head's own host reads it.
# Arguments: ADDRESS and a command line, maybe with assignments in front of it. No key ever comes into a container.
place=/scratch/launch/$1
shift
line=$*
printf '%s\n' "orted ${line#*orted }" >"$place.new" && mv "$place.new" "$place"
