#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "client/cli/cli.h"

static struct termios before;
static bool entered;
static volatile sig_atomic_t quit_asked;
static volatile sig_atomic_t suspend_asked;

static void on_signal(int number)
{
    if (number == SIGTSTP)
        suspend_asked = 1;
    else
        quit_asked = 1;
}

static void on_resize(int number) { (void)number; } /* only to end the wait, so that the table is drawn anew */

/* Signals that do not end the program let a write that they came upon go on: cut short, it would count as failed. */
static void catch_signal(int number, void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

bool terminal_is(FILE *stream) { return isatty(fileno(stream)) != 0; }

void terminal_catch_signals(void)
{
    catch_signal(SIGINT, on_signal, 0);
    catch_signal(SIGTERM, on_signal, 0);
    catch_signal(SIGHUP, on_signal, 0);
    catch_signal(SIGPIPE, SIG_IGN, 0); /* a closed pipe shows as a failed write */
}

/* Alternate screen, no cursor; keys come at once and are not echoed. */
static void take_screen(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
    fflush(stdout);
}

static void give_screen(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void terminal_enter(void)
{
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return;
    terminal_catch_signals();
    catch_signal(SIGTSTP, on_signal, SA_RESTART);
    catch_signal(SIGWINCH, on_resize, SA_RESTART);
    entered = true;
    take_screen();
}

void terminal_leave(void)
{
    if (entered)
        give_screen();
    entered = false;
}

void terminal_size(int *columns, int *rows)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

/* Stopping by Ctrl-Z gives the screen back for as long as it lasts. */
static void suspend(void)
{
    suspend_asked = 0;
    give_screen();
    (void)raise(SIGSTOP);
    take_screen();
}

bool terminal_quit(void)
{
    char key;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (entered && suspend_asked)
        suspend();
    while (entered && !quit_asked && poll(&input, 1, 0) == 1 && (input.revents & POLLIN) && read(STDIN_FILENO, &key, 1) == 1)
        if (key == 'q' || key == 'Q')
            quit_asked = 1;
    if (entered && (input.revents & (POLLHUP | POLLERR)))
        quit_asked = 1;
    return quit_asked != 0;
}

unsigned long terminal_user(void) { return (unsigned long)geteuid(); }

bool terminal_closed(FILE *stream)
{
    struct pollfd output = {.fd = fileno(stream)};
    return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLNVAL));
}
