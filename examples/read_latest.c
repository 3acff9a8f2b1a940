/* Prints a few numbers of the first GPU, once a second, for ten seconds.
 *     cc read_latest.c $(pkg-config --cflags --libs gputap) -o read_latest */
#include <gputap.h>
#include <stdio.h>

int main(void)
{
    static const int metrics[] = {GPUTAP_GFX_BUSY, GPUTAP_VRAM_USED, GPUTAP_POWER_NOW};
    gputap *tap;
    gputap_device device = GPUTAP_DEVICE_INIT;
    double values[3];
    uint64_t tick = 0;

    if (gputap_open(&tap, NULL, 0) != GPUTAP_OK || gputap_device_info(tap, 0, &device) != GPUTAP_OK) {
        fprintf(stderr, "%s\n", gputap_message(tap));
        gputap_close(tap);
        return 1;
    }
    printf("%s\n", device.name);
    for (int line = 0; line < 10; line++) {
        if (gputap_wait(tap, &tick, 5000) != GPUTAP_OK || gputap_read(tap, 0, metrics, 3, values) != GPUTAP_OK)
            break;
        for (int i = 0; i < 3; i++) {
            const gputap_metric *info = gputap_metric_info(0, metrics[i]);
            printf("%s %.*f %s  ", info->name, info->decimals, values[i], info->unit); /* nan = unknown */
        }
        printf("\n");
    }
    gputap_close(tap);
    return 0;
}
