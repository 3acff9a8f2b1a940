#include "shm/segment.h"
#include "tests/helpers/os.h"
#include "tests/unit/check.h"

static char folder[256];
static char message[1280];

static const struct segment_config config = {
    .device_slots = 3, .provider_slots = 2, .period_ns = 5000, .simulated = true, .mode = 0644, .group = -1, .version = "1.2.3"};

static void enter_folder(void)
{
    if (!os_make_private_folder(folder, sizeof folder))
        abort();
}

static void leave_folder(void)
{
    if (!os_remove_files(folder))
        abort();
}

static void make_snapshot(struct layout_snapshot *snapshot, double busy)
{
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->tick = 9;
    metrics_set_valid(snapshot->valid, METRIC_GFX_BUSY);
    snapshot->metrics[METRIC_GFX_BUSY].f64 = busy;
}

static void what_is_written_is_read_through_a_second_mapping(void)
{
    struct segment_writer writer;
    struct segment_view view;
    struct region region;
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    struct series series;
    struct layout_snapshot snapshot, read_back;
    uint64_t words[LAYOUT_SNAPSHOT_WORDS - 1], last = 0;
    segment_device_series(&writer, 2, &series);
    make_snapshot(&snapshot, 42.5);
    memcpy(words, &snapshot, sizeof words);
    ring_publish(&series.ring, words);
    segment_set_devices(&writer, 3);
    segment_announce(&writer, 9);

    CU_ASSERT_EQUAL_FATAL(region_open(&region, folder, PLACE_SEGMENT, true, NULL, 0, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL_FATAL(segment_view(&view, region.memory, region.bytes, message, sizeof message), VIEW_OK);
    CU_ASSERT_STRING_EQUAL(view.version, "1.2.3");
    CU_ASSERT(view.simulated);
    CU_ASSERT_EQUAL(view.device_slots, 3);
    CU_ASSERT_EQUAL(view_device_count(&view), 3);
    CU_ASSERT_EQUAL(word_get(&view.header->tick), 9);
    CU_ASSERT_EQUAL(word_get(&view.header->period_ns), 5000);
    view_device_series(&view, 2, &series);
    CU_ASSERT_EQUAL(ring_latest_words(&series.ring, words, LAYOUT_SNAPSHOT_WORDS - 1, &last, 0), RING_OK);
    memcpy(&read_back, words, sizeof read_back);
    CU_ASSERT_EQUAL(memcmp(&snapshot, &read_back, sizeof snapshot), 0);
    view_device_series(&view, 1, &series);
    CU_ASSERT_EQUAL(ring_latest_words(&series.ring, words, LAYOUT_SNAPSHOT_WORDS - 1, &last, 0), RING_EMPTY);
    region_unmap(region.memory, region.bytes);
    segment_close(&writer);
    leave_folder();
}

static void next_start_makes_a_new_inode_and_marks_the_old_one(void)
{
    struct segment_writer first, second;
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(segment_create(&first, &config, folder, message, sizeof message), REGION_OK);
    CU_ASSERT(segment_in_place(&first, folder));
    uint32_t wake = word32_get(&first.header->wake);
    CU_ASSERT_EQUAL_FATAL(segment_create(&second, &config, folder, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL(word32_get(&first.header->state), SEGMENT_SUPERSEDED);
    CU_ASSERT_NOT_EQUAL(word32_get(&first.header->wake), wake);
    CU_ASSERT_EQUAL(word32_get(&second.header->state), SEGMENT_LIVE);
    CU_ASSERT_FALSE(segment_in_place(&first, folder));
    CU_ASSERT_NOT_EQUAL(first.region.identity.inode, second.region.identity.inode);
    CU_ASSERT_NOT_EQUAL(memcmp(first.header->epoch, second.header->epoch, 16), 0);
    segment_close(&first);
    segment_close(&second);
    leave_folder();
}

/* Any byte of header and region table may be wrong: an error, or a view whose every ring lies inside the mapping. */
static void damaged_segments_are_refused_or_harmless(void)
{
    struct segment_writer writer;
    struct segment_view view;
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    size_t bytes = writer.region.bytes;
    uint8_t *copy = malloc(bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    srand(1);
    unsigned refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, writer.region.memory, LAYOUT_HEADER_BYTES);
        for (int changes = rand() % 4 + 1; changes > 0; changes--) {
            size_t at = rand() % 3 ? 1024 + (size_t)rand() % 384 : (size_t)rand() % 160;
            static const uint8_t picks[] = {0, 1, 0x7F, 0x80, 0xFF};
            copy[at] = rand() % 2 ? picks[rand() % 5] : (uint8_t)rand();
        }
        size_t seen = rand() % 10 ? bytes : (size_t)rand() % bytes;
        if (segment_view(&view, copy, seen, message, sizeof message) != VIEW_OK) {
            refused++;
            continue;
        }
        struct series series;
        uint64_t words[LAYOUT_COARSE_WORDS], last = 0;
        for (uint32_t d = 0; d < view.device_slots; d++) {
            view_device_series(&view, d, &series);
            uintptr_t end = (uintptr_t)series.ring.slots + (series.ring.mask + 1) * series.ring.stride * 8;
            CU_ASSERT(end <= (uintptr_t)copy + seen && (uintptr_t)series.ring.header >= (uintptr_t)copy);
            (void)ring_latest_words(&series.ring, words, LAYOUT_SNAPSHOT_WORDS - 1, &last, 0);
            (void)ring_latest_words(&series.coarse, words, LAYOUT_COARSE_WORDS - 1, &last, 0);
        }
    }
    CU_ASSERT(refused > 5000);
    free(copy);
    segment_close(&writer);
    leave_folder();
}

static void another_major_version_is_named(void)
{
    struct segment_writer writer;
    struct segment_view view;
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    writer.header->abi_major = 7;
    CU_ASSERT_EQUAL(segment_view(&view, writer.region.memory, writer.region.bytes, message, sizeof message), VIEW_EVERSION);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "ABI 7"));
    writer.header->abi_major = LAYOUT_ABI_MAJOR;
    writer.header->abi_minor = 99; /* appended fields only: readable */
    CU_ASSERT_EQUAL(segment_view(&view, writer.region.memory, writer.region.bytes, message, sizeof message), VIEW_OK);
    CU_ASSERT_EQUAL(segment_view(&view, writer.region.memory, 4095, message, sizeof message), VIEW_ECORRUPT);
    segment_close(&writer);
    leave_folder();
}

static void leavings_of_a_killed_start_are_swept(void)
{
    struct segment_writer writer;
    struct region unfinished;
    char path[512];
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(region_create(&unfinished, folder, PLACE_SEGMENT, 4096, 0644, -1, message, sizeof message), REGION_OK);
    region_destroy(&unfinished); /* as a kill would: the file stays */
    snprintf(path, sizeof path, "%s/.%s.0123456789abcdef", folder, PLACE_SEGMENT);
    FILE *left = fopen(path, "wb");
    CU_ASSERT(left && fclose(left) == 0);
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    CU_ASSERT_FALSE(os_exists(path));
    CU_ASSERT(segment_in_place(&writer, folder));
    segment_close(&writer);
    leave_folder();
}

static void instance_names_cannot_leave_the_folder(void)
{
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "../x", "a b", "\303\251", NULL};
    for (int i = 0; bad[i]; i++)
        CU_ASSERT_FALSE(place_valid_instance(bad[i]));
    CU_ASSERT_FALSE(place_valid_instance(NULL));
    CU_ASSERT(place_valid_instance("default"));
    CU_ASSERT(place_valid_instance("A-1_x.y"));
    char longest[66];
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    CU_ASSERT(place_valid_instance(longest));
    longest[64] = 'a';
    longest[65] = '\0';
    CU_ASSERT_FALSE(place_valid_instance(longest));
}

TESTS({"what_is_written_is_read_through_a_second_mapping", what_is_written_is_read_through_a_second_mapping},
      {"next_start_makes_a_new_inode_and_marks_the_old_one", next_start_makes_a_new_inode_and_marks_the_old_one},
      {"damaged_segments_are_refused_or_harmless", damaged_segments_are_refused_or_harmless},
      {"another_major_version_is_named", another_major_version_is_named},
      {"leavings_of_a_killed_start_are_swept", leavings_of_a_killed_start_are_swept},
      {"instance_names_cannot_leave_the_folder", instance_names_cannot_leave_the_folder})
