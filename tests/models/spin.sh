#!/bin/bash
# Checks the Spin models: each must hold over all its states, and each of its named mistakes must be caught, or the model proves
# nothing. Two run at a time, each within 1 GiB.
set -u
cd "$(dirname "$0")" || exit 1
for program in spin gcc; do
    if ! command -v $program >/dev/null; then
        echo "skipped spin models: no $program here"
        echo "spin: 0 passed, 0 failed, 1 skipped"
        exit 0
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# MODEL EXPECTED(holds|breaks) NAME [SPIN DEFINITIONS]
cases() {
    cat <<'CASES'
handover holds two threads, four segments
handover holds three threads, three segments -DTHREADS=3 -DREADS=1 -DEPOCHS=3
handover breaks mistake: no look at the generation -DNO_CHECK
handover breaks mistake: generation before the new mapping -DBUMP_FIRST
handover breaks mistake: new mapping after the old is retired -DCURRENT_LATE
handover breaks mistake: retired before the generation -DRETIRE_FIRST
handover breaks mistake: two threads re-attach at once -DNO_BUSY
sessions holds two clients, one slot
sessions holds two clients, two slots -DCLIENTS=2 -DSLOTS=2
sessions holds three clients, two slots, no spans -DCLIENTS=3 -DSLOTS=2 -DSPANS=0
sessions holds one client that is lost track of, three spans -DCLIENTS=1 -DPLACES=2 -DSPANS=3
sessions holds one client that is lost track of, four spans -DCLIENTS=1 -DPLACES=2 -DSPANS=4
sessions breaks mistake: reader looks at the slot alone -DNO_GENERATION
sessions breaks mistake: a slot's memory is used again -DOLD_MEMORY
sessions breaks mistake: death by pid, and pids come again -DPID_CHECK -DCLIENTS=3
sessions breaks mistake: event before state -DEVENT_FIRST -DCLIENTS=1 -DPLACES=2 -DSPANS=3
sessions breaks mistake: bell before event -DBELL_FIRST -DCLIENTS=1 -DPLACES=2 -DSPANS=3
sessions breaks mistake: only higher ids are concluded -DCONCLUDE_ABOVE_LAST -DCLIENTS=1 -DPLACES=2 -DSPANS=3
sessions breaks mistake: concluded while events come in -DNO_SECOND_LOOK -DCLIENTS=1 -DPLACES=2 -DSPANS=4
CASES
}

check() { # NUMBER MODEL EXPECTED NAME DEFINITIONS...
    local here=$work/$1 model=$2 expected=$3 name=$4 found=fails verdict=WRONG level=-O2
    shift 4
    mkdir "$here" && cd "$here" || return
    [ "$expected" = holds ] || level=-O0 # a mistake is found sooner than code is optimised
    if spin -a "$@" "$models/$model.pml" >log 2>&1 && gcc $level -w -DSAFETY -DCOLLAPSE -DMEMLIM=1024 pan.c -o pan >>log 2>&1; then
        ./pan -m1000000 -E >>log 2>&1
        if grep -q 'errors: 0' log && ! grep -qE 'not completed|too small|out of memory' log; then
            found=holds
        elif grep -q 'assertion violated' log && grep -qE 'errors: [1-9]' log; then
            found=breaks
        fi
    fi
    [ "$found" = "$expected" ] && verdict=ok
    printf '%-5s %-10s %-58s %s, %s states\n' "$verdict" "$model" "$name" "$found" \
        "$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' log)" | tee result
    [ "$found" != fails ] || tail -5 log
}

models=$PWD
number=0
while read -r model expected rest; do
    name=${rest%% -D*}
    read -ra definitions <<<"${rest#"$name"}"
    number=$((number + 1))
    check $number "$model" "$expected" "$name" "${definitions[@]}" &
    [ $((number % 2)) -ne 0 ] || wait
done < <(cases)
wait
passed=$(cat "$work"/*/result | grep -c '^ok ')
echo "spin: $passed passed, $((number - passed)) failed, 0 skipped"
[ "$passed" -eq "$number" ]
