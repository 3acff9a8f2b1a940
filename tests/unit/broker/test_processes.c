/* Which processes hold a GPU: on a /proc made of files. */
#include <errno.h>
#include <math.h>

#include "broker/providers/process_scan.h"
#include "probe.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct probe probe;
static struct layout_process_table table;

static void write_stat(int pid, int ticks, unsigned flags)
{
    char path[64], text[200];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (a) b (c) S 1 1 1 0 -1 %u 1 1 1 1 1 1 1 1 20 0 1 0 %d 1 1\n", pid, flags, ticks);
    tree_write(&tree, path, text);
}

static void process(int pid, const char *comm)
{
    char path[64];
    write_stat(pid, 5000 + pid, 4194304);
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    tree_write(&tree, path, comm);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    tree_write(&tree, path, "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
    snprintf(path, sizeof path, "/proc/%d/fd/0", pid);
    tree_link(&tree, path, "/dev/null");
}

static void fdinfo(int pid, int fd, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, fd);
    tree_write(&tree, path, text);
}

static void descriptor(int pid, int fd, const char *target, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    tree_link(&tree, path, target);
    fdinfo(pid, fd, text);
}

static const char *client(int id, const char *more)
{
    static char text[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(text[turn], sizeof text[turn],
             "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\ndrm-memory-vram:\t2068 KiB\ndrm-memory-gtt: \t8192 "
             "KiB\n%s",
             id, more);
    return text[turn];
}

#define NODE "/dev/dri/renderD128"

static void begin(void)
{
    tree_make(&tree);
    tree_amd_card(&tree);
    tree_write(&tree, CARD "/drm/renderD128/dev", "226:128\n");
    tree_write(&tree, CARD "/drm/card0/dev", "226:0\n");
    tree_write(&tree, "/proc/stat", "cpu 1\nbtime 1700000000\n");
    tree_write(&tree, "/proc/self/stat", "no process\n");
}

static void run(void)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "processes", tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
    probe.fault.now = UINT64_C(1000000000000);
}

/* One tick later: the sample, and the table where there is a new one. */
static bool tick(uint64_t ms)
{
    probe_forward_ms(&probe, ms);
    probe.context.tick++;
    probe_sample(&probe, 0);
    return probe.provider->processes(&probe.context, 0, &table);
}

static void end(void)
{
    probe_stop(&probe);
    CU_ASSERT_EQUAL(fault_io_open_now(&probe.fault), 0);
    tree_remove(&tree);
}

static void one_client_of_three_descriptors_is_counted_once(void)
{
    begin();
    process(800, "parent\n");
    process(801, "child\n");
    descriptor(800, 7, NODE, client(217, "drm-engine-gfx:\t107322799 ns\n"));
    descriptor(800, 9, NODE, client(217, "drm-engine-gfx:\t107322799 ns\n"));
    descriptor(801, 7, NODE, client(217, "drm-engine-gfx:\t107322799 ns\n"));
    run();
    CU_ASSERT_TRUE(tick(1));
    CU_ASSERT_EQUAL(table.count, 1);
    CU_ASSERT_EQUAL(table.rows[0].pid, 800);
    CU_ASSERT_EQUAL(table.rows[0].sharers, 1);
    CU_ASSERT_EQUAL(table.rows[0].vram, 2117632);
    CU_ASSERT_EQUAL(table.rows[0].gtt, 8388608);
    CU_ASSERT_EQUAL(table.rows[0].uid, 1000);
    CU_ASSERT_STRING_EQUAL(table.rows[0].comm, "parent");
    CU_ASSERT_EQUAL(table.rows[0].start_ms, UINT64_C(1700000000000) + 5800 * 10);
    CU_ASSERT_TRUE(isnan(table.rows[0].gfx_busy)); /* of one reading nothing can be said */
    CU_ASSERT_EQUAL(table.flags, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_VRAM), 2117632);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), 1);
    /* The driver answers a lower number for a while (drm-usage-stats): nothing happened, and the account does not fall. */
    fdinfo(800, 7, client(217, "drm-engine-gfx:\t107322000 ns\n"));
    CU_ASSERT_TRUE(tick(1000));
    CU_ASSERT_EQUAL(table.rows[0].gfx_busy, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 0);
    fdinfo(800, 7, client(217, "drm-engine-gfx:\t157322799 ns\n"));
    (void)tick(100);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 50, 1e-9);
    end();
}

static void a_client_lives_on_in_the_process_that_inherited_it(void)
{
    begin();
    process(800, "parent\n");
    process(801, "child\n");
    descriptor(800, 7, NODE, client(1, ""));
    descriptor(801, 7, NODE, client(1, ""));
    run();
    (void)tick(1);
    tree_delete(&tree, "/proc/800");
    CU_ASSERT_TRUE(tick(1000));
    CU_ASSERT_EQUAL(table.count, 1);
    CU_ASSERT_EQUAL(table.rows[0].pid, 801);
    CU_ASSERT_EQUAL(table.rows[0].sharers, 0);
    tree_delete(&tree, "/proc/801");
    CU_ASSERT_TRUE(tick(1000));
    CU_ASSERT_EQUAL(table.count, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_VRAM), 0);
    end();
}

static void engines_run_side_by_side_and_capacity_divides(void)
{
    begin();
    process(800, "a\n");
    process(801, "b\n");
    descriptor(800, 7, NODE, client(1, "drm-engine-dec:\t0 ns\ndrm-engine-capacity-dec:\t2\ndrm-engine-compute:\t0 ns\n"));
    descriptor(801, 7, NODE, client(2, "drm-engine-gfx:\t0 ns\n"));
    run();
    (void)tick(1);
    fdinfo(800, 7, client(1, "drm-engine-dec:\t100000000 ns\ndrm-engine-capacity-dec:\t2\ndrm-engine-compute:\t80000000 ns\n"));
    fdinfo(801, 7, client(2, "drm-engine-gfx:\t30000000 ns\n"));
    (void)tick(100);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_DECODE_BUSY), 50, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 80, 1e-9);
    /* A driver that counts too much does not make more than all of an engine. */
    fdinfo(800, 7, client(1, "drm-engine-dec:\t900000000 ns\ndrm-engine-capacity-dec:\t2\n"));
    fdinfo(801, 7, client(2, "drm-engine-gfx:\t900000000 ns\n"));
    (void)tick(100);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_DECODE_BUSY), 100);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 100);
    end();
}

static void cycles_are_a_share_of_the_gpus_own_clock(void)
{
    begin();
    process(800, "a\n");
    descriptor(800, 7, NODE, client(1, "drm-cycles-rcs:\t1000\ndrm-total-cycles-rcs:\t5000\n"));
    run();
    (void)tick(1);
    fdinfo(800, 7, client(1, "drm-cycles-rcs:\t1500\ndrm-total-cycles-rcs:\t7000\n"));
    (void)tick(100);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 25, 1e-9);
    (void)tick(100); /* neither moved: the device slept */
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 0);
    end();
}

static void a_new_process_is_seen_within_a_second_and_a_new_descriptor_within_ten(void)
{
    begin();
    process(800, "a\n");
    run();
    CU_ASSERT_TRUE(tick(1));
    CU_ASSERT_EQUAL(table.count, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 0); /* nobody is there, and everybody was seen */
    process(900, "new\n");
    descriptor(900, 3, NODE, client(5, ""));
    CU_ASSERT_TRUE(tick(1000));
    CU_ASSERT_EQUAL(table.count, 1);
    descriptor(800, 3, NODE, client(6, ""));
    (void)tick(5000);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), 1);
    (void)tick(5000);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), 2);
    end();
}

static void a_pid_that_is_given_again_is_another_process(void)
{
    begin();
    process(800, "old\n");
    descriptor(800, 7, NODE, client(1, ""));
    run();
    (void)tick(1);
    process(800, "new\n");
    write_stat(800, 99999, 4194304);
    fdinfo(800, 7, client(2, ""));
    CU_ASSERT_TRUE(tick(1000));
    CU_ASSERT_EQUAL(table.count, 1);
    CU_ASSERT_STRING_EQUAL(table.rows[0].comm, "new");
    CU_ASSERT_EQUAL(table.rows[0].start_ms, UINT64_C(1700000999990));
    end();
}

static void a_descriptor_that_becomes_another_file_is_no_client_any_more(void)
{
    begin();
    process(800, "a\n");
    descriptor(800, 7, NODE, client(1, ""));
    run();
    (void)tick(1);
    fdinfo(800, 7, "pos:\t0\n");
    tree_delete(&tree, "/proc/800/fd/7");
    (void)tick(10000);
    (void)tick(1000);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), 0);
    end();
}

/* The files of other users: what could not be read is missing, and said to be. */
static void processes_of_other_users_make_the_answer_partial(void)
{
    begin();
    process(800, "mine\n");
    process(801, "other\n");
    process(802, "kworker\n");
    write_stat(802, 1, 0x00200000 | 64);
    descriptor(800, 7, NODE, client(1, "drm-engine-gfx:\t0 ns\n"));
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "processes", tree.root), 0);
    probe.fault.now = UINT64_C(1000000000000);
    fault_io_rule(&probe.fault, "/proc/801/fd|list", EACCES);
    fault_io_rule(&probe.fault, "/proc/802/fd|list", EACCES);
    CU_ASSERT_TRUE(tick(1));
    CU_ASSERT_EQUAL(table.count, 1);
    CU_ASSERT_EQUAL(table.hidden, 1); /* a thread of the kernel hides nothing */
    CU_ASSERT_EQUAL(table.flags, PROCESS_TABLE_PARTIAL);
    fdinfo(800, 7, client(1, "drm-engine-gfx:\t20000000 ns\n"));
    (void)tick(100);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 20, 1e-9);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_ESTIMATED);
    tree_delete(&tree, "/proc/800");
    (void)tick(1000);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_BUSY)); /* who knows what 801 does */
    end();
}

static void a_driver_that_prints_nothing_is_missed_and_not_zero(void)
{
    begin();
    process(800, "a\n");
    descriptor(800, 7, NODE, client(1, "drm-engine-gfx:\t0 ns\n"));
    run();
    (void)tick(1);
    struct fault_rule *rule = fault_io_rule(&probe.fault, "/proc/800/fdinfo/7", EIO);
    (void)tick(100);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_VRAM), 2117632);
    rule->match[0] = '\0';
    fdinfo(800, 7, client(1, "drm-engine-gfx:\t100000000 ns\n"));
    (void)tick(100);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 50, 1e-9); /* over the two ticks */
    end();
}

static void by_minor_where_the_driver_tells_no_address(void)
{
    begin();
    process(800, "a\n");
    descriptor(800, 7, "/dev/dri/card0", "drm-driver:\tmsm\ndrm-client-id:\t1\ndrm-memory-vram:\t1 KiB\n");
    descriptor(800, 8, "/dev/dri/renderD129", "drm-driver:\tmsm\ndrm-client-id:\t2\ndrm-memory-vram:\t2 KiB\n");
    run();
    CU_ASSERT_TRUE(tick(1));
    CU_ASSERT_EQUAL(table.count, 1);
    CU_ASSERT_EQUAL(table.rows[0].vram, 1024);
    end();
}

static void the_largest_have_rows_and_the_rest_are_summed_up(void)
{
    char text[256];
    begin();
    for (int i = 0; i < LAYOUT_PROCESS_ROWS + 6; i++) {
        process(1000 + i, "p\n");
        snprintf(text, sizeof text, "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\ndrm-memory-vram:\t%d KiB\n",
                 i, i + 1);
        descriptor(1000 + i, 4, NODE, text);
    }
    run();
    CU_ASSERT_TRUE(tick(1));
    CU_ASSERT_EQUAL(table.count, LAYOUT_PROCESS_ROWS);
    CU_ASSERT_EQUAL(table.rows[0].pid, 1000 + LAYOUT_PROCESS_ROWS + 5);
    CU_ASSERT_EQUAL(table.others, 6);
    CU_ASSERT_EQUAL(table.others_vram, (1 + 2 + 3 + 4 + 5 + 6) * 1024);
    CU_ASSERT_EQUAL(table.others_gtt, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), LAYOUT_PROCESS_ROWS + 6);
    end();
}

/* What takes longer than a tick's share is gone on with in the next: until all is seen, nothing is said. */
static void a_slow_proc_is_looked_into_a_little_at_a_time(void)
{
    begin();
    for (int pid = 1000; pid < 1010; pid++)
        process(pid, "p\n");
    descriptor(1009, 4, NODE, client(1, ""));
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "processes", tree.root), 0);
    probe.fault.now = UINT64_C(1000000000000);
    for (int pid = 1000; pid < 1010; pid++) {
        char part[32];
        snprintf(part, sizeof part, "/proc/%d/fd|list", pid);
        fault_io_rule(&probe.fault, part, 0)->delay_ns = 2000000;
    }
    CU_ASSERT_FALSE(tick(1));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_PROCESS_COUNT), REASON_NOT_SAMPLED);
    int ticks = 1;
    while (!tick(1) && ticks < 20)
        ticks++;
    CU_ASSERT_TRUE(ticks >= 3 && ticks < 20);
    CU_ASSERT_EQUAL(table.count, 1);
    end();
}

static void known_clients_cost_one_read_a_tick(void)
{
    begin();
    for (int pid = 1000; pid < 1050; pid++)
        process(pid, "p\n");
    descriptor(1009, 4, NODE, client(1, ""));
    run();
    (void)tick(1);
    fault_io_clear_trace(&probe.fault);
    for (int i = 0; i < 5; i++)
        (void)tick(100);
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "/proc/"), 0);
    end();
}

static void compute_jobs_hide_from_the_drivers_accounts(void)
{
    begin();
    tree_write(&tree, "/sys/class/kfd/kfd/topology/nodes/0/properties", "simd_count 0\n");
    tree_write(&tree, "/sys/class/kfd/kfd/topology/nodes/1/properties",
               "simd_count 192\nsimd_per_cu 2\nlocation_id 768\ndomain 0\ndevice_id 29772\ngfx_target_version 110000\n");
    tree_write(&tree, "/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51123\n");
    tree_write(&tree, "/sys/class/kfd/kfd/proc/800/vram_51123", "4194304\n");
    tree_write(&tree, "/sys/class/kfd/kfd/proc/800/stats_51123/cu_occupancy", "24\n");
    tree_write(&tree, "/sys/class/kfd/kfd/proc/802/vram_51123", "1048576\n");
    tree_write(&tree, "/sys/class/kfd/kfd/proc/803/vram_99", "1048576\n"); /* of another GPU */
    process(800, "python3\n");
    process(802, "rocm\n");
    process(803, "else\n");
    descriptor(800, 7, NODE, client(1, "drm-engine-gfx:\t0 ns\n"));
    run();
    CU_ASSERT_TRUE(tick(1));
    CU_ASSERT_EQUAL(table.count, 2);
    CU_ASSERT_EQUAL(table.rows[0].pid, 800);
    CU_ASSERT_EQUAL(table.rows[0].vram, 4194304); /* not added to the client's 2117632 */
    CU_ASSERT_EQUAL(table.rows[0].flags, PROCESS_KFD);
    CU_ASSERT_EQUAL(table.rows[0].compute_busy, 25);
    CU_ASSERT_EQUAL(table.rows[1].pid, 802);
    CU_ASSERT_STRING_EQUAL(table.rows[1].comm, "rocm");
    CU_ASSERT_TRUE(isnan(table.rows[1].compute_busy)); /* not told is not idle */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_VRAM), 4194304 + 1048576);
    (void)tick(100);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_BUSY));
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "/dev/"), 0);
    tree_delete(&tree, "/sys/class/kfd/kfd/proc/802");
    CU_ASSERT_TRUE(tick(1000));
    CU_ASSERT_EQUAL(table.count, 1);
    end();
}

static void xe_is_left_alone_while_it_sleeps(void)
{
    begin();
    tree_delete(&tree, CARD "/driver");
    tree_link(&tree, CARD "/driver", "../../../../../../bus/pci/drivers/xe");
    tree_write(&tree, "/sys/bus/pci/drivers/xe/module", "");
    process(800, "a\n");
    descriptor(800, 7, NODE, client(1, ""));
    run();
    (void)tick(1);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_VRAM), 2117632);
    tree_write(&tree, CARD "/power/runtime_status", "suspended\n");
    fdinfo(800, 7, client(1, "drm-engine-gfx:\t100000000 ns\n"));
    (void)tick(100);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_BUSY));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ASLEEP);
    end();
}

static void a_sleeping_card_is_neither_busy_nor_idle(void)
{
    begin();
    process(800, "a\n");
    tree_write(&tree, CARD "/power/runtime_status", "suspended\n");
    run();
    (void)tick(1);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PROCESS_COUNT), 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_BUSY));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ASLEEP);
    end();
}

static void without_a_list_of_processes_nothing_is_known(void)
{
    begin();
    tree_delete(&tree, "/proc");
    run();
    CU_ASSERT_FALSE(tick(1));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_PROCESS_COUNT));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_PROCESS_VRAM));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_BUSY));
    end();
}

/* A worker of the broker has a node open for the moment of a question. */
static void the_brokers_own_workers_are_no_users(void)
{
    struct process_scan scan;
    const struct scan_device device = {.id = "0000:03:00.0", .minors = {128, 0}};
    begin();
    process(800, "worker\n");
    descriptor(800, 7, NODE, client(1, ""));
    struct fault_io fault;
    fault_io_init(&fault, tree.root);
    for (uint32_t parent = 0; parent < 3; parent++) {
        scan_init(&scan, &fault.io);
        scan.own_parent = parent;
        scan_set_devices(&scan, &device, 1);
        scan_run(&scan, 1000000000, 1000000000);
        CU_ASSERT_EQUAL(scan.holder_count, parent == 1 ? 0 : 1); /* written as its parent */
        scan_free(&scan);
    }
    fault_io_free(&fault);
    tree_remove(&tree);
}

static void containers_are_known_by_the_end_of_their_group(void)
{
    static const struct {
        const char *cgroup, *expected;
    } cases[] = {
        {"0::/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope", "0123456789ab"},
        {"12:devices:/docker/fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210\n11:cpu:/x", "fedcba987654"},
        {"0::/user.slice/libpod-aaaaaaaaaaaabbbbbbbbbbbbccccccccccccddddddddddddeeeeeeeeeeeeffff.scope/container", "aaaaaaaaaaaa"},
        {"0::/kubepods.slice/cri-containerd-00000000000011111111111122222222222233333333333344444444444455.scope", ""},
        {"0::/lxc.payload.my-box/init.scope", "my-box"},
        {"4:cpu:/lxc/other\n", "other"},
        {"0::/user.slice/user-1000.slice/session-2.scope", ""},
        {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[16];
        process_container(cases[i].cgroup, out, sizeof out);
        CU_ASSERT_STRING_EQUAL(out, cases[i].expected);
    }
}

TESTS({"one_client_of_three_descriptors_is_counted_once", one_client_of_three_descriptors_is_counted_once},
      {"a_client_lives_on_in_the_process_that_inherited_it", a_client_lives_on_in_the_process_that_inherited_it},
      {"engines_run_side_by_side_and_capacity_divides", engines_run_side_by_side_and_capacity_divides},
      {"cycles_are_a_share_of_the_gpus_own_clock", cycles_are_a_share_of_the_gpus_own_clock},
      {"a_new_process_is_seen_within_a_second_and_a_new_descriptor_within_ten",
       a_new_process_is_seen_within_a_second_and_a_new_descriptor_within_ten},
      {"a_pid_that_is_given_again_is_another_process", a_pid_that_is_given_again_is_another_process},
      {"a_descriptor_that_becomes_another_file_is_no_client_any_more",
       a_descriptor_that_becomes_another_file_is_no_client_any_more},
      {"processes_of_other_users_make_the_answer_partial", processes_of_other_users_make_the_answer_partial},
      {"a_driver_that_prints_nothing_is_missed_and_not_zero", a_driver_that_prints_nothing_is_missed_and_not_zero},
      {"by_minor_where_the_driver_tells_no_address", by_minor_where_the_driver_tells_no_address},
      {"the_largest_have_rows_and_the_rest_are_summed_up", the_largest_have_rows_and_the_rest_are_summed_up},
      {"a_slow_proc_is_looked_into_a_little_at_a_time", a_slow_proc_is_looked_into_a_little_at_a_time},
      {"known_clients_cost_one_read_a_tick", known_clients_cost_one_read_a_tick},
      {"compute_jobs_hide_from_the_drivers_accounts", compute_jobs_hide_from_the_drivers_accounts},
      {"xe_is_left_alone_while_it_sleeps", xe_is_left_alone_while_it_sleeps},
      {"a_sleeping_card_is_neither_busy_nor_idle", a_sleeping_card_is_neither_busy_nor_idle},
      {"without_a_list_of_processes_nothing_is_known", without_a_list_of_processes_nothing_is_known},
      {"the_brokers_own_workers_are_no_users", the_brokers_own_workers_are_no_users},
      {"containers_are_known_by_the_end_of_their_group", containers_are_known_by_the_end_of_their_group})
