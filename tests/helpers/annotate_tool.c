/* A process that annotates what a test tells it to, by lines on stdin; "-" stands for the empty text or none. Prints each call's
 * result. Its session ends with it.
 *     attach LABEL | begin KEY JOB NODE NAME PARENT-KEY [GPU...] | step KEY VALUE MAX | end KEY | instant JOB NODE NAME
 *     gauge GPU ALLOCATED RESERVED | poll | detach */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gputap.h"

enum { WORDS = 16, KEYS = 64 };

static struct {
    char key[32];
    uint64_t span;
} known[KEYS];
static int known_count;

static const char *text(const char *word) { return strcmp(word, "-") == 0 ? "" : word; }

static uint64_t span_of(const char *key)
{
    for (int i = known_count - 1; i >= 0; i--)
        if (strcmp(known[i].key, key) == 0)
            return known[i].span;
    return 0;
}

static int begin(gputap *tap, char **word, int count)
{
    int devices[WORDS], device_count = 0;
    for (int i = 6; i < count; i++)
        devices[device_count++] = atoi(word[i]);
    int at = known_count < KEYS ? known_count++ : KEYS - 1;
    snprintf(known[at].key, sizeof known[at].key, "%s", word[1]);
    uint64_t parent = span_of(word[5]);
    return gputap_span_begin(tap, text(word[2]), text(word[3]), text(word[4]), parent, devices, device_count, &known[at].span);
}

static int obey(gputap *tap, char **word, int count)
{
    const char *what = word[0];
    if (strcmp(what, "attach") == 0 && count == 2)
        return gputap_attach(tap, text(word[1]));
    if (strcmp(what, "begin") == 0 && count >= 6)
        return begin(tap, word, count);
    if (strcmp(what, "step") == 0 && count == 4)
        return gputap_span_step(tap, span_of(word[1]), atof(word[2]), atof(word[3]));
    if (strcmp(what, "end") == 0 && count == 2)
        return gputap_span_end(tap, span_of(word[1]), NULL, 0);
    if (strcmp(what, "instant") == 0 && count == 4)
        return gputap_instant(tap, text(word[1]), text(word[2]), text(word[3]));
    if (strcmp(what, "gauge") == 0 && count == 4)
        return gputap_gauge(tap, atoi(word[1]), strtoull(word[2], NULL, 10), strtoull(word[3], NULL, 10), UINT64_MAX);
    if (strcmp(what, "poll") == 0)
        return gputap_poll(tap);
    if (strcmp(what, "detach") == 0)
        return gputap_detach(tap);
    return GPUTAP_EINVAL;
}

int main(void)
{
    char line[1024];
    gputap *tap;
    if (gputap_open(&tap, NULL, GPUTAP_OPEN_DETACHED) != GPUTAP_OK) {
        fprintf(stderr, "%s\n", gputap_message(NULL));
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        char *word[WORDS];
        int count = 0;
        for (char *at = strtok(line, " \n"); at && count < WORDS; at = strtok(NULL, " \n"))
            word[count++] = at;
        if (count == 0)
            continue;
        int result = obey(tap, word, count);
        printf("%d %s\n", result, result < 0 ? gputap_message(tap) : "");
        fflush(stdout);
    }
    gputap_close(tap);
    return 0;
}
