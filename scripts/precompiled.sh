#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler's command, as the makefile of a Verilator build gives it (its variable OBJCACHE stands
# before each of them), run with precompiled headers of Verilator. Reading these takes most of the time
# of a small block, and all builds with the same switches read the same: they are compiled once,
# beside the folders of the builds. What goes wrong with that costs time only: then the compiler
# reads them as ever. The header that Verilator precompiles for each large build is not made: compiling
# it twice takes longer than the few large files take to read it.
include='' switches='' own='' made=''
for word in "$@"; do
  case $word in
    -I*/verilator/include) include=${word#-I} ;;
    -include | -x) own=$word ;;
    *.gch) made=$word ;;
    -[DfgmO]* | -std=*) switches="$switches$word
" ;;
  esac
done
[ "$own" = -x ] && exec touch "$made"
if [ "$own" = -include ]; then
  skip=''
  for word in "$@"; do
    shift
    [ "$word" = -include ] && skip=1 && continue
    [ -n "$skip" ] && skip='' && continue
    set -- "$@" "$word"
  done
  exec "$@"
fi
[ -n "$include" ] && command -v flock >/dev/null || exec "$@"

key=$( (printf '%s\n' "$1" "$include" && printf '%s' "$switches" | sort &&
  cat "$include/verilated.h" "$include/verilated_config.h") | cksum)
folder=../headers_${key%% *}
header=$folder/all.h

precompile() { # the words of the command
  skip=''
  for word in "$@"; do
    shift
    case $skip$word in
      -o) skip=: ;;       # its file follows
      :*) skip='' ;;
      -c | -MMD | *.cpp) ;;
      *) set -- "$@" "$word" ;;
    esac
  done
  printf '#include "%s"\n' verilated.h verilated_dpi.h verilated_vpi.h >"$header" &&
    "$@" -x c++-header -o "$folder/new" "$header" && mv "$folder/new" "$header.gch"
}

mkdir -p "$folder" && (
  flock 9
  [ -e "$header.gch" ] || precompile "$@" || rm -f "$header"
) 9>"$folder/.lock" && [ -e "$header.gch" ] && set -- "$@" -include "$header"
exec "$@"
