#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "broker/provider.h"
#include "fault_io.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct fault_io fault;

static void begin(void)
{
    tree_make(&tree);
    fault_io_init(&fault, tree.root);
}

static void end(void)
{
    fault_io_free(&fault);
    tree_remove(&tree);
}

static int number(const char *text, size_t size, uint64_t *out)
{
    struct io_file file;
    tree_write_bytes(&tree, "/sys/number", text, size);
    io_file_init(&file, "/sys/%s", "number");
    int result = io_file_u64(&fault.io, &file, out);
    io_file_close(&fault.io, &file);
    return result;
}

static void numbers_are_read_with_any_padding_and_nothing_else(void)
{
    static char padded[4096] = "775\n";
    static const char *const bad[] = {"-1\n", "+1\n", "0x10\n", "12 Mhz\n", "abc\n", "99999999999999999999\n", "1\n2\n"};
    uint64_t value = 0;
    begin();
    CU_ASSERT_EQUAL(number("42\n", 3, &value), 0);
    CU_ASSERT_EQUAL(value, 42);
    CU_ASSERT_EQUAL(number(padded, sizeof padded, &value), 0);
    CU_ASSERT_EQUAL(value, 775);
    CU_ASSERT_EQUAL(number("  18446744073709551615 \t\n", 25, &value), 0);
    CU_ASSERT_EQUAL(value, UINT64_MAX);
    CU_ASSERT_EQUAL(number("", 0, &value), -ENODATA);
    CU_ASSERT_EQUAL(number("\n", 1, &value), -ENODATA);
    CU_ASSERT_EQUAL(number("\0\0\0", 3, &value), -ENODATA);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_EQUAL(number(bad[i], strlen(bad[i]), &value), -EPROTO);
    end();
}

static void signed_numbers_may_be_negative(void)
{
    struct io_file file;
    int64_t value = 0;
    begin();
    tree_write(&tree, "/sys/t", "-5000\n");
    io_file_init(&file, "/sys/t");
    CU_ASSERT_EQUAL(io_file_i64(&fault.io, &file, &value), 0);
    CU_ASSERT_EQUAL(value, -5000);
    io_file_close(&fault.io, &file);
    end();
}

static void short_reads_do_not_cut_a_number(void)
{
    uint64_t value = 0;
    begin();
    fault_io_rule(&fault, "/sys/number", 0)->short_read = 1;
    CU_ASSERT_EQUAL(number("123456\n", 7, &value), 0);
    CU_ASSERT_EQUAL(value, 123456);
    end();
}

static void a_kept_file_is_opened_once_and_again_when_it_is_gone(void)
{
    static const int gone[] = {ENODEV, ENOENT, ESTALE};
    struct io_file file;
    uint64_t value;
    begin();
    tree_write(&tree, "/sys/x", "1\n");
    io_file_init(&file, "/sys/x");
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), 0);
    CU_ASSERT_EQUAL(fault_io_opened(&fault, "/sys/x"), 1);
    for (int i = 0; i < 3; i++) {
        fault_io_clear_rules(&fault);
        fault_io_rule(&fault, "/sys/x", gone[i])->last = 1;
        CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), 0);
        CU_ASSERT_EQUAL(fault_io_opened(&fault, "/sys/x"), 2 + i);
    }
    fault_io_clear_rules(&fault);
    fault_io_rule(&fault, "/sys/x", EBUSY);
    CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), -EBUSY);
    CU_ASSERT_EQUAL(fault_io_opened(&fault, "/sys/x"), 4);
    io_file_close(&fault.io, &file);
    CU_ASSERT_EQUAL(fault_io_open_now(&fault), 0);
    end();
}

static void a_file_that_is_gone_for_good_tells_so_and_comes_back(void)
{
    struct io_file file;
    uint64_t value;
    begin();
    tree_write(&tree, "/sys/x", "1\n");
    io_file_init(&file, "/sys/x");
    CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), 0);
    tree_delete(&tree, "/sys/x");
    fault_io_rule(&fault, "/sys/x", ENODEV)->last = 1;
    CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), -ENODEV);
    CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), -ENOENT);
    tree_write(&tree, "/sys/x", "2\n");
    CU_ASSERT_EQUAL(io_file_u64(&fault.io, &file, &value), 0);
    CU_ASSERT_EQUAL(value, 2);
    io_file_close(&fault.io, &file);
    end();
}

static void a_long_file_is_read_to_its_end(void)
{
    char text[256];
    struct io_file file;
    begin();
    tree_write(&tree, "/proc/table", "one\ntwo\nthree\n");
    fault_io_rule(&fault, "/proc/table", 0)->short_read = 4; /* ends in a new line, as the kernel's pieces do */
    io_file_init(&file, "/proc/table");
    CU_ASSERT_EQUAL(io_file_read_all(&fault.io, &file, text, sizeof text), 13);
    CU_ASSERT_STRING_EQUAL(text, "one\ntwo\nthree");
    CU_ASSERT_EQUAL(io_file_read_all(&fault.io, &file, text, 6), 5);
    CU_ASSERT_STRING_EQUAL(text, "one\nt");
    io_file_close(&fault.io, &file);
    end();
}

static int seven(void *context, unsigned long request, void *argument)
{
    *(int *)context += 1;
    *(int *)argument = 7;
    return request == 42 ? 0 : -EINVAL;
}

/* The table of errors that the other tests stand on: the n-th access of each kind, and none but that. */
static void the_nth_access_of_each_kind_fails_as_told(void)
{
    char text[32];
    int asked = 0, value = 0;
    struct io_file file;
    begin();
    tree_write(&tree, "/sys/a", "1\n");
    tree_link(&tree, "/sys/link", "a");
    struct fault_rule *read = fault_io_rule(&fault, "/sys/a", EBUSY);
    read->first = 2, read->last = 3, read->delay_ns = 5;
    struct fault_rule *open_rule = fault_io_rule(&fault, "/sys/a", EMFILE);
    open_rule->at_open = true, open_rule->first = 2;
    struct fault_rule *link = fault_io_rule(&fault, "/sys/link", EIO);
    link->at_link = true, link->first = 2, link->last = 2;
    struct fault_rule *request = fault_io_rule(&fault, "/sys/a", ENODEV);
    request->at_ioctl = true, request->first = 2;
    fault.ioctl = (struct fault_ioctl){.match = "/sys/a", .answer = seven, .context = &asked};

    io_file_init(&file, "/sys/a");
    CU_ASSERT_EQUAL(io_file_read(&fault.io, &file, text, sizeof text), 1);
    uint64_t before = fault.io.operations->mono_ns(&fault.io);
    CU_ASSERT_EQUAL(io_file_read(&fault.io, &file, text, sizeof text), -EBUSY);
    CU_ASSERT_EQUAL(fault.io.operations->mono_ns(&fault.io), before + 5);
    CU_ASSERT_EQUAL(io_file_read(&fault.io, &file, text, sizeof text), -EBUSY);
    CU_ASSERT_EQUAL(io_file_read(&fault.io, &file, text, sizeof text), 1);
    CU_ASSERT_EQUAL(fault.io.operations->ioctl(&fault.io, file.fd, 42, &value), 0);
    CU_ASSERT_EQUAL(fault.io.operations->ioctl(&fault.io, file.fd, 42, &value), -ENODEV);
    CU_ASSERT_EQUAL(value, 7);
    CU_ASSERT_EQUAL(asked, 1);
    io_file_close(&fault.io, &file);
    CU_ASSERT_EQUAL(io_file_read(&fault.io, &file, text, sizeof text), -EMFILE);
    CU_ASSERT_EQUAL(io_link_name(&fault.io, "/sys/link", text, sizeof text), 1);
    CU_ASSERT_EQUAL(io_link_name(&fault.io, "/sys/link", text, sizeof text), -EIO);
    CU_ASSERT_EQUAL(io_link_name(&fault.io, "/sys/link", text, sizeof text), 1);
    end();
}

static bool join(void *context, const char *name)
{
    strcat(context, name);
    strcat(context, " ");
    return strcmp(name, "c") != 0;
}

static void folders_are_listed_in_order_until_told_to_stop(void)
{
    char all[64] = "";
    begin();
    tree_write(&tree, "/d/b", "");
    tree_write(&tree, "/d/a", "");
    tree_write(&tree, "/d/d", "");
    tree_write(&tree, "/d/c", "");
    CU_ASSERT_EQUAL(fault.io.operations->list(&fault.io, "/d", join, all), 0);
    CU_ASSERT_STRING_EQUAL(all, "a b c ");
    CU_ASSERT_EQUAL(fault.io.operations->list(&fault.io, "/none", join, all), -ENOENT);
    end();
}

static void asking_whether_it_exists_opens_nothing(void)
{
    char name[16];
    begin();
    tree_write(&tree, "/dev/dri/renderD128", "");
    tree_link(&tree, "/sys/driver", "../../bus/pci/drivers/amdgpu");
    CU_ASSERT_TRUE(io_exists(&fault.io, "/dev/dri/renderD128"));
    CU_ASSERT_TRUE(io_exists(&fault.io, "/sys/driver"));
    CU_ASSERT_FALSE(io_exists(&fault.io, "/dev/dri/renderD129"));
    CU_ASSERT_EQUAL(fault.traced, 0);
    CU_ASSERT_EQUAL(io_link_name(&fault.io, "/sys/driver", name, sizeof name), 6);
    CU_ASSERT_STRING_EQUAL(name, "amdgpu");
    CU_ASSERT_EQUAL(io_link_name(&fault.io, "/sys/driver", name, 4), -ENAMETOOLONG);
    CU_ASSERT_EQUAL(io_link_name(&fault.io, "/sys/none", name, sizeof name), -ENOENT);
    end();
}

static void no_request_reaches_a_device_below_a_root(void)
{
    struct io io;
    int left = 0;
    begin();
    io_init(&io, "/tmp///");
    CU_ASSERT_STRING_EQUAL(io.root, "/tmp");
    int pipes[2];
    CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
    CU_ASSERT_EQUAL(io.operations->ioctl(&io, pipes[0], 0x541B /* FIONREAD */, &left), -ENOTTY);
    io_init(&io, "");
    CU_ASSERT_EQUAL(io.operations->ioctl(&io, pipes[0], 0x541B, &left), 0);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    end();
}

static void files_are_closed_at_exec(void)
{
    struct io io;
    begin();
    tree_write(&tree, "/x", "1\n");
    io_init(&io, tree.root);
    int fd = io.operations->open(&io, "/x", O_RDONLY);
    CU_ASSERT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    io.operations->close(&io, fd);
    end();
}

static void errors_mean_what_they_mean(void)
{
    CU_ASSERT_EQUAL(io_reason(-EACCES), REASON_NO_PERMISSION);
    CU_ASSERT_EQUAL(io_reason(-EPERM), REASON_ERROR);
    CU_ASSERT_EQUAL(io_reason(-EBUSY), REASON_ERROR);
    CU_ASSERT_EQUAL(io_reason(-EIO), REASON_ERROR);
    CU_ASSERT_EQUAL(io_reason(-EPROTO), REASON_ERROR);
    CU_ASSERT_EQUAL(io_reason(-ENOENT), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(io_reason(-EINVAL), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(io_reason(-EOPNOTSUPP), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(io_reason(-ENODATA), REASON_NOT_SUPPORTED);
}

static void samples_begin_unknown_and_keep_nonsense_out(void)
{
    struct sample sample;
    sample_begin(&sample, 7);
    CU_ASSERT_EQUAL(sample.valid[0] | sample.valid[1], 0);
    CU_ASSERT_EQUAL(sample.reasons[METRIC_GFX_BUSY], REASON_NOT_SUPPORTED);
    sample_f64(&sample, METRIC_GFX_BUSY, NAN);
    CU_ASSERT_EQUAL(sample.reasons[METRIC_GFX_BUSY], REASON_ERROR);
    sample_f64_within(&sample, METRIC_TEMPERATURE_EDGE, 511, -40, 150);
    CU_ASSERT_EQUAL(sample.reasons[METRIC_TEMPERATURE_EDGE], REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(sample.values[METRIC_QUALITY].u64, QUALITY_IMPLAUSIBLE);
    sample_flag(&sample, QUALITY_SETTLING);
    CU_ASSERT_EQUAL(sample.values[METRIC_QUALITY].u64, QUALITY_IMPLAUSIBLE | QUALITY_SETTLING);
    sample_memory(&sample, METRIC_VRAM_TOTAL, UINT64_MAX, METRIC_VRAM_USED, 5); /* a sentinel, no size */
    CU_ASSERT_EQUAL(sample.reasons[METRIC_VRAM_TOTAL], REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(sample.reasons[METRIC_VRAM_USED], REASON_IMPLAUSIBLE);
    sample_memory(&sample, METRIC_VRAM_TOTAL, 100, METRIC_VRAM_USED, 101);
    CU_ASSERT_EQUAL(sample.values[METRIC_VRAM_TOTAL].u64, 100);
    CU_ASSERT_EQUAL(sample.reasons[METRIC_VRAM_USED], REASON_IMPLAUSIBLE);
    sample_memory(&sample, METRIC_GTT_TOTAL, 0, METRIC_GTT_USED, 0);
    CU_ASSERT_FALSE(metrics_valid(sample.valid, METRIC_GTT_TOTAL) || metrics_valid(sample.valid, METRIC_GTT_USED));
    sample_memory(&sample, METRIC_GTT_TOTAL, 100, METRIC_GTT_USED, 100);
    CU_ASSERT_EQUAL(sample.values[METRIC_GTT_USED].u64, 100);
    sample_u64(&sample, 4000, 1); /* no such slot: nothing is written */
}

TESTS({"numbers_are_read_with_any_padding_and_nothing_else", numbers_are_read_with_any_padding_and_nothing_else},
      {"signed_numbers_may_be_negative", signed_numbers_may_be_negative},
      {"short_reads_do_not_cut_a_number", short_reads_do_not_cut_a_number},
      {"a_kept_file_is_opened_once_and_again_when_it_is_gone", a_kept_file_is_opened_once_and_again_when_it_is_gone},
      {"a_file_that_is_gone_for_good_tells_so_and_comes_back", a_file_that_is_gone_for_good_tells_so_and_comes_back},
      {"a_long_file_is_read_to_its_end", a_long_file_is_read_to_its_end},
      {"the_nth_access_of_each_kind_fails_as_told", the_nth_access_of_each_kind_fails_as_told},
      {"folders_are_listed_in_order_until_told_to_stop", folders_are_listed_in_order_until_told_to_stop},
      {"asking_whether_it_exists_opens_nothing", asking_whether_it_exists_opens_nothing},
      {"no_request_reaches_a_device_below_a_root", no_request_reaches_a_device_below_a_root},
      {"files_are_closed_at_exec", files_are_closed_at_exec}, {"errors_mean_what_they_mean", errors_mean_what_they_mean},
      {"samples_begin_unknown_and_keep_nonsense_out", samples_begin_unknown_and_keep_nonsense_out})
