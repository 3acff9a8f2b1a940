/* Sessions between clients and broker (broker/control_linux.c, sessions.c, session_merge.c; client/annotate.c): slots are handed out
 * and reaped, each client writes state entry, then event, then bell into memory of its own, and may die between any two steps.
 *
 * Claimed: a slot has one owner and is never lost; an event is never attributed to another client; a span that was told begins once
 * and ends once, by its END, by conclusion after a loss or abandoned, and not by conclusion before its client ended it; while a
 * client is quiet and was heard, the broker believes in just the spans that are open.
 * Mistakes, each of which must be caught: -DNO_GENERATION, -DOLD_MEMORY, -DEVENT_FIRST, -DBELL_FIRST, -DPID_CHECK,
 * -DCONCLUDE_ABOVE_LAST, -DNO_SECOND_LOOK.
 * Orders of memory, and a slot overwritten while it is read, are the ring model's business: here a record is read in one step. */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef SPANS
#define SPANS 1
#endif
#ifndef PLACES
#define PLACES 1
#endif
#define DEPTH 2 /* of a client's event ring */
#define NOBODY 255
#define BEGIN 1
#define END 2

/* A client's memory, its bell, its socket. */
typedef memory {
    byte state[PLACES]; /* id of the open span, 0 = none */
    byte kind[DEPTH];
    byte id[DEPTH];
    byte author[DEPTH]; /* seen by the assertions alone */
    byte head;
    bool bell
}
memory memories[CLIENTS];
bool started[CLIENTS], asks[CLIENTS], granted[CLIENTS], refused[CLIENTS], alive[CLIENTS], quiet[CLIENTS];

/* The broker's. */
typedef slot_view {
    byte state; /* 0 free, 1 open, 2 resting */
    byte generation;
    byte owner;
    byte next; /* event to be read */
    byte last; /* highest id seen */
    bool lost; /* events, and no conclusion was drawn yet */
    bool open[SPANS + 1]
}
slot_view slots[SLOTS];

/* What a reader of the segment has: the newest event, and the mirrors. */
byte event_slot, event_generation, event_author = NOBODY;

/* For the assertions. */
bool ending[CLIENTS * (SPANS + 1)]; /* the client means to end it */
byte begun[CLIENTS * (SPANS + 1)], over[CLIENTS * (SPANS + 1)];
#define OF(client, span) ((client) * (SPANS + 1) + (span))
#ifdef OLD_MEMORY
#define MEMORY(client, slot) memories[slot] /* the slot's, as the last client left it */
#else
#define MEMORY(client, slot) memories[client]
#endif

byte slot_of[CLIENTS];
#define SHOWN(client, place) MEMORY(client, slot_of[client]).state[place]
#define IS_OPEN(client, span) (SHOWN(client, 0) == (span) || SHOWN(client, PLACES - 1) == (span))

/* --- a client ------------------------------------------------------------------------------------------------------------- */

/* Whatever it does, it may be killed instead. */
#define STEP(what)         \
    if                     \
    :: atomic { what }     \
    :: goto gone           \
    fi

inline say(what, which)
{
    STEP(MEMORY(me, slot_of[me]).kind[MEMORY(me, slot_of[me]).head % DEPTH] = what;
         MEMORY(me, slot_of[me]).id[MEMORY(me, slot_of[me]).head % DEPTH] = which;
         MEMORY(me, slot_of[me]).author[MEMORY(me, slot_of[me]).head % DEPTH] = me;
         MEMORY(me, slot_of[me]).head++)
}
inline write_state(place, value) { STEP(MEMORY(me, slot_of[me]).state[place] = value) }
inline ring_bell() { STEP(MEMORY(me, slot_of[me]).bell = true) }

inline tell(place, value, what, which)
{
#ifdef EVENT_FIRST
    say(what, which);
    ring_bell();
    write_state(place, value);
#else
    write_state(place, value);
#ifdef BELL_FIRST
    ring_bell();
    say(what, which);
#else
    say(what, which);
    ring_bell();
#endif
#endif
}

proctype Client(byte me)
{
    byte count, place, span, mine[PLACES];
#ifdef PID_CHECK
    /* The last client runs under the number of the first, which is gone. */
    if
    :: me == CLIENTS - 1 -> started[0] && !alive[0]
    :: else
    fi;
#endif
    d_step { alive[me] = true; started[me] = true; asks[me] = true; quiet[me] = true }
    if
    :: granted[me]
    :: refused[me] -> goto gone
    :: goto gone
    fi;
    do
    :: count < SPANS ->
        place = 0;
        do
        :: place < PLACES && mine[place] != 0 -> place++
        :: else -> break
        od;
        if
        :: place < PLACES ->
            STEP(quiet[me] = false; count++; mine[place] = count);
            tell(place, count, BEGIN, count);
            STEP(quiet[me] = true)
        :: else -> goto must_end
        fi
    :: mine[0] != 0 || mine[PLACES - 1] != 0 ->
must_end:
        if
        :: mine[0] != 0 -> place = 0
        :: mine[PLACES - 1] != 0 -> place = PLACES - 1
        fi;
        STEP(quiet[me] = false; span = mine[place]; mine[place] = 0; ending[OF(me, span)] = true);
        tell(place, 0, END, span);
        STEP(quiet[me] = true; span = 0)
    :: break /* leaves, with spans open or not */
    od;
gone:
    alive[me] = false
}

/* --- the broker ----------------------------------------------------------------------------------------------------------- */

inline publish(author)
{
    event_slot = s;
    event_generation = slots[s].generation;
    event_author = author
}

inline session_begin(which)
{
    slots[s].open[which] = true;
    if
    :: which > slots[s].last -> slots[s].last = which
    :: else
    fi;
    begun[OF(c, which)]++;
    assert(begun[OF(c, which)] == 1);
    publish(c)
}

inline session_end(which, abandoned)
{
    slots[s].open[which] = false;
    over[OF(c, which)]++;
    assert(begun[OF(c, which)] == 1 && over[OF(c, which)] == 1);
    assert(abandoned || ending[OF(c, which)]);
    publish(c)
}

/* Events up to the head of this moment. */
inline take_events()
{
    head = MEMORY(c, s).head;
    if
    :: head > slots[s].next + DEPTH -> slots[s].next = head - DEPTH / 2; slots[s].lost = true
    :: else
    fi;
    do
    :: slots[s].next < head ->
        atomic {
            if
            :: MEMORY(c, s).head > slots[s].next + DEPTH -> slots[s].lost = true /* overwritten meanwhile */
            :: else ->
                at = slots[s].next % DEPTH;
                span = MEMORY(c, s).id[at];
                assert(MEMORY(c, s).author[at] == c);
                if
                :: MEMORY(c, s).kind[at] == BEGIN && span > slots[s].last -> session_begin(span)
                :: MEMORY(c, s).kind[at] == END && slots[s].open[span] -> session_end(span, false)
                :: MEMORY(c, s).kind[at] == END && span > slots[s].last -> session_begin(span); session_end(span, false)
                :: else /* concluded already */
                fi
            fi;
            slots[s].next++;
            at = 0;
            span = 0
        }
    :: else -> break
    od
}

/* What the state does not show any more has ended. What it shows and was never heard of has begun: believed only if no event came
 * while it was read, since one that is still to come would be taken for an old one. */
inline conclude()
{
    do
    :: at < PLACES -> found[at] = MEMORY(c, s).state[at]; at++
    :: else -> break
    od;
    atomic {
        at = 0;
        span = 1;
        do
        :: span <= SPANS ->
            if
            :: slots[s].open[span] && found[0] != span && found[PLACES - 1] != span -> session_end(span, false)
            :: else
            fi;
            span++
        :: else -> break
        od;
        span = 1;
        if
#ifndef NO_SECOND_LOOK
        :: MEMORY(c, s).head == head ->
#else
        :: true ->
#endif
            slots[s].lost = false;
            do
            :: span <= SPANS ->
                if
#ifdef CONCLUDE_ABOVE_LAST
                :: (found[0] == span || found[PLACES - 1] == span) && span > slots[s].last -> session_begin(span)
#else
                :: (found[0] == span || found[PLACES - 1] == span) && !slots[s].open[span] -> session_begin(span)
#endif
                :: else
                fi;
                span++
            :: else -> break
            od
#ifndef NO_SECOND_LOOK
        :: else /* the bell of that event brings the broker back */
#endif
        fi;
        found[0] = 0;
        found[PLACES - 1] = 0;
        span = 0
    }
}

inline merge()
{
    take_events();
    if
    :: slots[s].lost -> conclude()
    :: else
    fi;
    head = 0
}

inline reap()
{
    merge();
    atomic {
        span = 1;
        do
        :: span <= SPANS ->
            if
            :: slots[s].open[span] -> session_end(span, true)
            :: else
            fi;
            assert(begun[OF(c, span)] == over[OF(c, span)]);
            span++
        :: else -> break
        od;
        span = 0;
        slots[s].state = 2 /* mirror and generation stay readable */
    }
}

/* Is the owner of slot i gone, as the broker can tell? */
#ifdef PID_CHECK
#define GONE(i) (slots[i].state == 1 && !alive[slots[i].owner] && \
                 !((slots[i].owner == 0 || slots[i].owner == CLIENTS - 1) && (alive[0] || alive[CLIENTS - 1])))
#else
#define GONE(i) (slots[i].state == 1 && !alive[slots[i].owner])
#endif
#define RINGS(i) (slots[i].state == 1 && MEMORY(slots[i].owner, i).bell)

inline grant()
{
    atomic {
        asks[c] = false;
        s = 0;
        do
        :: s < SLOTS && slots[s].state != 0 -> s++
        :: else -> break
        od;
        if
        :: s < SLOTS ->
            assert(slots[s].owner == NOBODY || !alive[slots[s].owner]);
            slots[s].state = 1;
            slots[s].generation++;
            slots[s].owner = c;
            slots[s].next = 0;
            slots[s].last = 0;
            slots[s].lost = false;
            slot_of[c] = s;
            granted[c] = true
        :: else -> refused[c] = true
        fi;
        s = 0
    }
}

/* Nothing to do: then no dead client holds a slot, and what quiet ones have open is known. */
inline rest()
{
    atomic {
        s = 0;
        do
        :: s < SLOTS ->
            if
            :: slots[s].state == 1 ->
                assert(alive[slots[s].owner] || GONE(s));
                span = 1;
                do
                :: span <= SPANS ->
                    assert(!quiet[slots[s].owner] || RINGS(s) || slots[s].open[span] == IS_OPEN(slots[s].owner, span));
                    span++
                :: else -> break
                od
            :: else
            fi;
            s++
        :: else -> break
        od;
        s = 0;
        span = 0
    }
}

#define TAKE(i) s = i; c = slots[i].owner
#define DONE d_step { s = 0; c = 0 }

proctype Broker()
{
    byte s, c, head, at, span, found[PLACES];
    do
    :: asks[0] -> c = 0; grant(); c = 0
#if CLIENTS > 1
    :: asks[1] -> c = 1; grant(); c = 0
#endif
#if CLIENTS > 2
    :: asks[2] -> c = 2; grant(); c = 0
#endif
    :: GONE(0) -> TAKE(0); reap(); DONE
    :: RINGS(0) -> TAKE(0); MEMORY(c, 0).bell = false; merge(); DONE
    :: slots[0].state == 2 -> slots[0].state = 0 /* a second is over */
#if SLOTS > 1
    :: GONE(1) -> TAKE(1); reap(); DONE
    :: RINGS(1) -> TAKE(1); MEMORY(c, 1).bell = false; merge(); DONE
    :: slots[1].state == 2 -> slots[1].state = 0
#endif
    :: else -> rest()
    od
}

/* --- a reader of the segment ------------------------------------------------------------------------------------------------ */

/* Says whose event it is by the mirror of its slot, some time after it was published. */
proctype Reader()
{
    byte slot, generation, author;
    d_step { event_author != NOBODY -> slot = event_slot; generation = event_generation; author = event_author }
    atomic {
#ifdef NO_GENERATION
        if
        :: true
#else
        if
        :: slots[slot].generation == generation
#endif
           -> assert(slots[slot].owner == author)
        :: else /* its slot is another's by now */
        fi
    }
}

init
{
    byte i;
    atomic {
        do
        :: i < SLOTS -> slots[i].owner = NOBODY; i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < CLIENTS -> run Client(i); i++
        :: else -> break
        od;
        run Broker();
        run Reader()
    }
}
