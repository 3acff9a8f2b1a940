#include "bridge/waiter.h"

#include <time.h>

#include "bridge/hub.h"

/* The service loop's cost of a wake grows with the clients, and nobody gets frames faster than every 100 ms. */
#define BETWEEN_TICKS_MS 45
/* What a session says is passed on at once, and what follows it within this time together. */
#define BETWEEN_NEWS_MS 5
/* So many steps are looked through for news. */
#define MOST_STEPS 256

struct waiter {
    struct hub *hub;
    uint64_t change, tick;
    bool ticked; /* there is a tick that the service loop does not know of */
    gputap_cursor cursor;
    bool placed;
    int64_t woke_ms;
};

static void sleep_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * 1000000)};
    nanosleep(&pause, NULL);
}

/* Has a session said more than how far it is? Steps come with the ticks and wait for them. The cursor goes to the newest before the
 * service loop is woken, so whatever it skips, the loop finds. */
static bool news(struct waiter *waiter)
{
    gputap_event event = GPUTAP_EVENT_INIT;
    bool found = !waiter->placed;
    int steps = 0;
    while (!found && steps < MOST_STEPS && gputap_next_event(waiter->hub->tap, &waiter->cursor, &event) == 1) {
        found = event.type != GPUTAP_EVENT_STEP;
        steps++;
    }
    found |= steps == MOST_STEPS;
    if (found)
        waiter->placed = gputap_event_cursor_init(waiter->hub->tap, &waiter->cursor, GPUTAP_FROM_NEWEST) == GPUTAP_OK;
    return found;
}

static void wake(struct waiter *waiter)
{
    waiter->woke_ms = hub_now_ms();
    waiter->ticked = false;
    waiter->hub->wake(waiter->hub->wake_context);
}

/* How long until a wake is due even if nothing more happens. */
static int64_t patience(const struct waiter *waiter, int64_t now_ms)
{
    int64_t limit = atomic_load(&waiter->hub->hurry) ? BETWEEN_NEWS_MS : waiter->ticked ? BETWEEN_TICKS_MS : WAITER_IDLE_MS;
    int64_t rest = waiter->woke_ms + limit - now_ms;
    return rest > 0 ? rest : 0;
}

static void wait_once(struct waiter *waiter)
{
    gputap *tap = waiter->hub->tap;
    int64_t rest = patience(waiter, hub_now_ms());
    if (rest == 0) {
        wake(waiter);
        return;
    }
    int result = gputap_wait_change(tap, &waiter->change, (int)rest);
    if (result == GPUTAP_ETIMEDOUT)
        return;
    if (result != GPUTAP_OK) { /* no broker */
        sleep_ms(rest);
        return;
    }
    uint64_t tick = gputap_tick(tap);
    bool between = tick == waiter->tick;
    waiter->ticked |= !between;
    waiter->tick = tick;
    if (!atomic_load(&waiter->hub->prompt) || !(between || news(waiter)))
        return;
    int64_t early = waiter->woke_ms + BETWEEN_NEWS_MS - hub_now_ms();
    if (early > 0)
        sleep_ms(early);
    wake(waiter);
}

void *waiter_run(void *hub)
{
    struct waiter waiter = {.hub = hub};
    while (!atomic_load(&waiter.hub->ended))
        wait_once(&waiter);
    return NULL;
}
