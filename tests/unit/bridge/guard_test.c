#include "bridge/guard.h"
#include "bridge/mime.h"
#include "tests/unit/check.h"

static const char *const hosts[] = {"gpu.example", "proxy.example:9000", "[fd00::7]:8288"};
static const char *const origins[] = {"http://127.0.0.1:8188", "https://app.example"};
static const struct guard_rules rules = {
    .hosts = hosts, .host_count = 3, .origins = origins, .origin_count = 2, .token = "0123456789abcdef"};
static const struct guard_local loopback = {.address = "127.0.0.1", .port = 8288};
static const struct guard_local loopback6 = {.address = "::1", .port = 8288};
static const struct guard_local lan = {.address = "192.168.1.5", .port = 8288};
static const struct guard_local web = {.address = "127.0.0.1", .port = 80};
static const struct guard_local socket_file = {.local_socket = true};

static void host_names_that_are_ours(void)
{
    static const char *const good[] = {"127.0.0.1:8288",         "localhost:8288",     "LocalHost:8288", "[::1]:8288",
                                       "[0:0:0:0:0:0:0:1]:8288", "gpu.example",        "GPU.Example",    "gpu.example:1",
                                       "gpu.example:65535",      "proxy.example:9000", "[fd00::7]:8288", "[FD00:0::7]:8288"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!guard_host_ok(&rules, &loopback, good[i]) || !guard_host_ok(&rules, &loopback6, good[i]))
            CU_FAIL(good[i]);
    CU_ASSERT(guard_host_ok(&rules, &lan, "192.168.1.5:8288"));
    CU_ASSERT(guard_host_ok(&rules, &web, "localhost"));
    CU_ASSERT(guard_host_ok(&rules, &web, "127.0.0.1:80"));
    CU_ASSERT(guard_host_ok(&rules, &socket_file, "localhost"));
}

static void host_names_that_are_tricks(void)
{
    static const char *const bad[] = {"",
                                      ":8288",
                                      "localhost",
                                      "127.0.0.1",
                                      "localhost:",
                                      "localhost:0",
                                      "localhost:8289",
                                      "localhost:08288x",
                                      "localhost:828800",
                                      "localhost:+8288",
                                      "localhost:-1",
                                      "localhost: 8288",
                                      "localhost:8288 ",
                                      " localhost:8288",
                                      "localhost.:8288",
                                      "localhost:8288:8288",
                                      "localhost:8288/",
                                      "localhost:8288@evil.example",
                                      "evil@localhost:8288",
                                      "localhost.evil.example:8288",
                                      "evil-localhost:8288",
                                      "xlocalhost:8288",
                                      "127.0.0.1.evil.example:8288",
                                      "127.0.0.1.nip.io:8288",
                                      "127.1:8288",
                                      "0127.0.0.1:8288",
                                      "2130706433:8288",
                                      "0x7f000001:8288",
                                      "127.0.0.2:8288",
                                      "0.0.0.0:8288",
                                      "[::]:8288",
                                      "[::1]",
                                      "[::1:8288",
                                      "::1:8288",
                                      "[::1]8288",
                                      "[::1]:",
                                      "[::1%lo]:8288",
                                      "[::ffff:127.0.0.1]:8288",
                                      "[127.0.0.1]:8288",
                                      "[localhost]:8288",
                                      "gpu.example.evil",
                                      "xgpu.example",
                                      "gpu.exampl",
                                      "gpu.example.",
                                      "proxy.example",
                                      "proxy.example:9001",
                                      "[fd00::7]",
                                      "[fd00::8]:8288",
                                      "192.168.1.5:8288",
                                      "local\xc4\xb1host:8288",
                                      "localhost\t:8288",
                                      "127.0.0.1:8288,evil.example",
                                      "127.0.0.1:8288, 127.0.0.1:8288"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (guard_host_ok(&rules, &loopback, bad[i]))
            CU_FAIL(bad[i]);
    CU_ASSERT_FALSE(guard_host_ok(&rules, &loopback, NULL));
    CU_ASSERT_FALSE(guard_host_ok(&rules, &lan, "192.168.1.6:8288"));
    CU_ASSERT_FALSE(guard_host_ok(&rules, &socket_file, ""));
    char endless[2000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    CU_ASSERT_FALSE(guard_host_ok(&rules, &loopback, endless));
}

static void origins_by_exact_list(void)
{
    static const char *const good[] = {"",
                                       "http://127.0.0.1:8288",
                                       "http://localhost:8288",
                                       "http://[::1]:8288",
                                       "http://127.0.0.1:8188",
                                       "https://app.example",
                                       "http://gpu.example",
                                       "https://gpu.example",
                                       "https://proxy.example:9000"};
    static const char *const bad[] = {"null",
                                      "NULL",
                                      "http://",
                                      "https://127.0.0.1:8288",
                                      "http://127.0.0.1",
                                      "http://127.0.0.1:8288/",
                                      "http://127.0.0.1:8288.evil.example",
                                      "http://evil.example",
                                      "http://127.0.0.1:8188.evil.example",
                                      "http://127.0.0.1:8188/",
                                      "https://app.example.evil",
                                      "https://app.example:443",
                                      "http://app.example",
                                      "https://xapp.example",
                                      "file://",
                                      "file://localhost:8288",
                                      "chrome-extension://abc",
                                      "127.0.0.1:8288",
                                      "http:/127.0.0.1:8288",
                                      "HTTP://127.0.0.1:8288",
                                      "http://user@127.0.0.1:8288",
                                      "http://127.0.0.1:8288 http://evil.example"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!guard_origin_ok(&rules, &loopback, good[i]))
            CU_FAIL(good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (guard_origin_ok(&rules, &loopback, bad[i]))
            CU_FAIL(bad[i]);
    CU_ASSERT(guard_origin_ok(&rules, &loopback, NULL));
    CU_ASSERT_FALSE(guard_origin_ok(&rules, &socket_file, "http://localhost"));
    CU_ASSERT(guard_origin_listed(&rules, "https://app.example"));
    CU_ASSERT_FALSE(guard_origin_listed(&rules, "http://127.0.0.1:8288"));
}

static void tokens(void)
{
    static const struct guard_rules none = {0};
    CU_ASSERT(guard_token_ok(&none, NULL, NULL));
    CU_ASSERT(guard_token_ok(&rules, "Bearer 0123456789abcdef", NULL));
    CU_ASSERT(guard_token_ok(&rules, "bearer 0123456789abcdef", ""));
    CU_ASSERT(guard_token_ok(&rules, NULL, "gputap.v1, token.0123456789abcdef"));
    CU_ASSERT(guard_token_ok(&rules, NULL, "token.0123456789abcdef,gputap.v1"));
    CU_ASSERT(guard_token_ok(&rules, "Bearer wrong", "gputap.v1 , token.0123456789abcdef "));
    static const char *const bad[] = {"",
                                      "Bearer ",
                                      "Bearer  0123456789abcdef",
                                      "Bearer 0123456789abcdef ",
                                      "Bearer 0123456789abcde",
                                      "Bearer 0123456789abcdefg",
                                      "Bearer 0123456789ABCDEF",
                                      "Basic 0123456789abcdef",
                                      "0123456789abcdef",
                                      "token.0123456789abcde",
                                      "token.0123456789abcdefg",
                                      "token.",
                                      "gputap.v1, 0123456789abcdef",
                                      "Token.0123456789abcdef",
                                      "xtoken.0123456789abcdef"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (guard_token_ok(&rules, bad[i], bad[i]))
            CU_FAIL(bad[i]);
    CU_ASSERT_FALSE(guard_token_ok(&rules, NULL, NULL));
    CU_ASSERT(guard_protocol_offered("a, gputap.v1 ,b", "gputap.v1"));
    CU_ASSERT_FALSE(guard_protocol_offered("gputap.v1x, xgputap.v1, gputap.v", "gputap.v1"));
    CU_ASSERT_FALSE(guard_protocol_offered(NULL, "gputap.v1"));
    CU_ASSERT_FALSE(guard_protocol_offered(" , ,", "gputap.v1"));
}

static void paths_stay_inside(void)
{
    static const char *const good[] = {"index.html", "locale/en.json", "a/b/c.d", "a-b_c+d@2x.png", "x..y"};
    static const char *const bad[] = {"",       ".",           "..",        "../x", "a/..", "a/../b", "a/./b", ".git/config",
                                      "a/.git", "/etc/passwd", "a/",        "a//b", "a\\b", "a b",    "a%2e",  "a\tb",
                                      "a\nb",   "a?b",         "a\xc3\xa4", "a:b"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!mime_path_clean(good[i]))
            CU_FAIL(good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (mime_path_clean(bad[i]))
            CU_FAIL(bad[i]);
}

static void media_types(void)
{
    CU_ASSERT_STRING_EQUAL(mime_type("a.html"), "text/html; charset=utf-8");
    CU_ASSERT_STRING_EQUAL(mime_type("a.b.mjs"), "text/javascript; charset=utf-8");
    CU_ASSERT_STRING_EQUAL(mime_type("a.WASM"), "application/wasm");
    CU_ASSERT_STRING_EQUAL(mime_type("a.webmanifest"), "application/manifest+json; charset=utf-8");
    CU_ASSERT_STRING_EQUAL(mime_type("a.svg"), "image/svg+xml; charset=utf-8");
    CU_ASSERT_STRING_EQUAL(mime_type("Makefile"), "application/octet-stream");
    CU_ASSERT_STRING_EQUAL(mime_type("a."), "application/octet-stream");
}

TESTS({"host_names_that_are_ours", host_names_that_are_ours}, {"host_names_that_are_tricks", host_names_that_are_tricks},
      {"origins_by_exact_list", origins_by_exact_list}, {"tokens", tokens}, {"paths_stay_inside", paths_stay_inside},
      {"media_types", media_types})
