#!/bin/sh
# Publishes a page into a folder that machines share: `spanlock-lease run --resource site -- publish.sh FOLDER PAGE`.
# Whoever was overtaken while he stood still is refused: the folder keeps the largest fence that has written.
set -eu
exec 9>>"$1/fence"
flock 9
seen=$(tail -n 1 "$1/fence")
if [ "$SPANLOCK_FENCE" -lt "${seen:-0}" ]; then
    echo "too late: somebody with fence $seen has published" >&2
    exit 1
fi
echo "$SPANLOCK_FENCE" >&9
cp "$2" "$1/page"
