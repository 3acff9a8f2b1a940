/* The hand-over from one segment to the next inside a reader's handle (client/handle.h): threads read while one of them maps the
 * next segment, retires the old range to zero pages, and uses it again for a later segment of the same geometry.
 *
 * Claimed: an accepted copy is whole, of one epoch, never of zero pages, and never older than what the same thread had before.
 * Mistakes, each of which must be caught: -DNO_CHECK, -DBUMP_FIRST, -DRETIRE_FIRST, -DNO_BUSY, -DCURRENT_LATE.
 * Orders of memory are the ring model's business: this one interleaves whole steps. */
#ifndef EPOCHS
#define EPOCHS 4
#endif
#define RANGES 2
#ifndef THREADS
#define THREADS 2
#endif
#ifndef READS
#define READS 2
#endif
#define ZERO 0

byte segment = 1; /* the newest that a broker has put in place */
byte first_word[RANGES], second_word[RANGES], epoch_of[RANGES];
bool retired[RANGES];
byte current, generation, attached = 1;
bool busy;

/* mapping_open and publish; words are replaced one by one, as a reader may see pages change. */
inline attach(fresh, target, old)
{
    fresh = segment;
    target = 0;
    do
    :: target < RANGES && !retired[target] -> target++
    :: else -> break
    od;
    assert(target < RANGES); /* one range more than geometries is enough */
    retired[target] = false;
    first_word[target] = fresh;
    second_word[target] = fresh;
    epoch_of[target] = fresh;
    old = current;
#ifdef BUMP_FIRST
    generation++;
    current = target;
#else
#ifndef CURRENT_LATE
    current = target;
#endif
#ifdef RETIRE_FIRST
    first_word[old] = ZERO;
    second_word[old] = ZERO;
#endif
    generation++;
#endif
    first_word[old] = ZERO;
    second_word[old] = ZERO;
    retired[old] = true;
#ifdef CURRENT_LATE
    current = target;
#endif
    attached = fresh;
    d_step { fresh = 0; target = 0; old = 0 } /* what is dead must not tell states apart */
}

inline read(pass_generation, pass_range, a, b, e, last)
{
    pass_generation = generation;
    pass_range = current;
    a = first_word[pass_range];
    e = epoch_of[pass_range];
    b = second_word[pass_range];
    if
#ifdef NO_CHECK
    :: true ->
#else
    :: generation == pass_generation ->
#endif
        d_step {
            assert(a != ZERO && b != ZERO);
            assert(a == b && a == e);
            assert(a >= last);
            last = a
        }
#ifndef NO_CHECK
    :: else /* thrown away */
#endif
    fi;
    d_step { pass_generation = 0; pass_range = 0; a = 0; b = 0; e = 0 }
}

proctype Thread()
{
    byte reads, fresh, target, old, g, m, a, b, e, last;
    bool mine;
    do
    :: reads < READS ->
        reads++;
        read(g, m, a, b, e, last)
    :: segment != attached ->
#ifdef NO_BUSY
        mine = !busy;
        busy = true;
#else
        d_step { mine = !busy; busy = true }
#endif
        if
        :: mine ->
            if
            :: segment != attached -> attach(fresh, target, old)
            :: else
            fi;
            d_step { busy = false; mine = false }
        :: else
        fi
    :: reads == READS -> break
    od
}

proctype Broker()
{
    do
    :: segment < EPOCHS -> segment++
    :: segment == EPOCHS -> break
    od
}

init
{
    byte i;
    atomic {
        first_word[0] = 1; second_word[0] = 1; epoch_of[0] = 1;
        i = 1;
        do
        :: i < RANGES -> retired[i] = true; i++
        :: else -> break
        od;
        run Broker();
        i = 0;
        do
        :: i < THREADS -> run Thread(); i++
        :: else -> break
        od
    }
}
