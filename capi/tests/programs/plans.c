// A kernel of one's own from SPIR-V, a plan submitted again and again, and profiles as JSON.
//
// usage: plans SCALE.SPV FOLDER; leaves profile.json, run.json, trace.json, stats.json and device.json in FOLDER.

#include "check.h"

static void save(const char *folder, const char *name, char *text) {
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    tm_string_free(text);
}

static tm_kernel *load(const char *path, bool guarded) {
    static uint32_t words[4096];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t count = fread(words, sizeof *words, 4096, file);
    CHECK(count > 5 && fclose(file) == 0);
    tm_kernel *kernel;
    OK(guarded ? tm_kernel_from_spirv_guarded("scale", words, count, &kernel)
               : tm_kernel_from_spirv("scale", words, count, &kernel));
    return kernel;
}

// The same kernel, guarded: what is behind its bindings is not read. The history of pipelines is the named application's.
static void guarded(const char *spirv, const char *folder) {
    char cache[4096];
    CHECK(snprintf(cache, sizeof cache, "%s/cache", folder) < (int)sizeof cache);
    tm_config config;
    OK(tm_config_init(&config, sizeof config));
    config.prewarm = TM_PREWARM_OFF;
    config.cache_dir = cache;
    config.application = "c_host";
    tm_accelerator *gpu;
    OK(tm_accelerator_new(&config, &gpu));
    tm_kernel *kernel = load(spirv, true);
    float data[3] = {1, 2, 3}, factor = 10, got[2];
    size_t two = 2;
    tm_tensor *x = vector_f32(gpu, data, 3), *y;
    tm_recording *r;
    OK(tm_begin_recording(gpu, &r));
    tm_argument arguments[2] = {tm_input(tm_of(x)), tm_output(TM_F32, &two, 1)};
    tm_specialization workgroup = {.id = 0, .bits = 64};
    tm_dispatch_info info = {
        .size = sizeof info,
        .kernel = kernel,
        .arguments = arguments,
        .argument_count = 2,
        .push = &factor,
        .push_bytes = sizeof factor,
        .specializations = &workgroup,
        .specialization_count = 1,
    };
    tm_value scaled, negated;
    OK(tm_dispatch(r, &info, &scaled, 1));
    OK(tm_unary(r, TM_NEG, scaled, &negated));
    OK(tm_keep(r, negated, &y));
    OK(tm_end_recording(r, NULL));
    OK(tm_tensor_read(y, got, sizeof got));
    CHECK(got[0] == -10 && got[1] == -20);
    tm_recording_free(r);
    // An existing tensor in place of a new value.
    OK(tm_begin_recording(gpu, &r));
    arguments[1] = tm_inout(y);
    OK(tm_dispatch(r, &info, NULL, 0));
    OK(tm_end_recording(r, NULL));
    OK(tm_tensor_read(y, got, sizeof got));
    CHECK(got[0] == 10 && got[1] == 20);
    tm_recording_free(r);
    tm_kernel_free(kernel);
    tm_tensor_free(x);
    tm_tensor_free(y);
    OK(tm_accelerator_close(gpu));
    tm_accelerator_free(gpu);
}

// A row of a table by its number, and rows up to it, by one plan.
static void numbered(void) {
    tm_accelerator *gpu = make_gpu();
    size_t dims[2] = {4, 2}, one[2] = {1, 2};
    float zeros[8] = {0}, row[2] = {1, 2}, got[8];
    tm_tensor *table, *token, *sums, *taken;
    OK(tm_upload(gpu, TM_F32, dims, 2, zeros, sizeof zeros, &table));
    OK(tm_upload(gpu, TM_F32, one, 2, row, sizeof row, &token));
    tm_recording *r;
    OK(tm_begin_recording(gpu, &r));
    tm_value at, count, factor, scaled, seen, sum, part;
    OK(tm_declare_argument(r, "at", TM_U32, 0, 3, &at));
    OK(tm_declare_argument(r, "count", TM_I32, 0, 4, &count));
    OK(tm_declare_argument(r, "factor", TM_F32, -INFINITY, INFINITY, &factor));
    FAILS(tm_declare_argument(r, "at", TM_U32, 0, 3, &part), TM_PARAMETER, "there is an argument \"at\" already");
    FAILS(tm_declare_argument(r, "b", TM_U32, -1, 3, &part), TM_PARAMETER, "argument \"b\" is u32, which has no -1");
    FAILS(tm_declare_argument(r, NULL, TM_U32, 0, 3, &part), TM_INVALID_ARGUMENT, "name is NULL");
    OK(tm_binary(r, TM_MUL, tm_of(token), factor, &scaled));
    OK(tm_update_at(r, table, 0, at, scaled));
    OK(tm_mask_from(r, tm_of(table), 0, count, 0, &seen));
    OK(tm_reduce(r, TM_SUM, seen, 0, false, &sum));
    OK(tm_slice_at(r, tm_of(table), 0, at, 1, &part));
    FAILS(tm_slice_at(r, tm_of(table), 0, at, 2, &part), TM_PARAMETER, "2 elements from argument \"at\" on");
    OK(tm_slice_at(r, tm_of(table), 0, at, 1, &part));
    OK(tm_keep(r, sum, &sums));
    OK(tm_keep(r, part, &taken));
    tm_plan *plan;
    OK(tm_into_plan(r, &plan));
    tm_recording_free(r);
    OK(tm_plan_set_argument(plan, "count", 3));
    OK(tm_plan_set_argument(plan, "factor", 1));
    FAILS(tm_plan_submit(plan, NULL), TM_PARAMETER, "argument \"at\" was never set");
    FAILS(tm_plan_set_argument(plan, "at", 4), TM_PARAMETER, "argument \"at\" is 4; it was declared from 0 to 3");
    FAILS(tm_plan_set_argument(plan, "at", 0.5), TM_PARAMETER, "which has no 0.5");
    FAILS(tm_plan_set_argument(plan, "rows", 0), TM_PARAMETER, "it has: at, count, factor");
    for (int i = 3; i >= 0; i--) {
        OK(tm_plan_set_argument(plan, "at", i));
        OK(tm_plan_set_argument(plan, "factor", 10 * i + 1));
        OK(tm_plan_submit(plan, NULL));
    }
    OK(tm_tensor_read(table, got, sizeof got));
    for (int i = 0; i < 4; i++) CHECK(got[2 * i] == 10 * i + 1 && got[2 * i + 1] == 2 * (10 * i + 1));
    OK(tm_tensor_read(sums, got, 2 * sizeof *got));
    CHECK(got[0] == 33 && got[1] == 66);
    OK(tm_tensor_read(taken, got, 2 * sizeof *got));
    CHECK(got[0] == 1 && got[1] == 2);
    tm_plan_free(plan);
    tm_tensor_free(table);
    tm_tensor_free(token);
    tm_tensor_free(sums);
    tm_tensor_free(taken);
    OK(tm_accelerator_close(gpu));
    tm_accelerator_free(gpu);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    guarded(argv[1], argv[2]);
    numbered();
    tm_accelerator *gpu = make_gpu();
    tm_kernel *kernel = load(argv[1], false);
    char *described;
    OK(tm_kernel_json(kernel, &described));
    CHECK(strstr(described, "\"name\":\"scale\"") != NULL && strstr(described, "\"push_constant_bytes\":4") != NULL);
    tm_string_free(described);
    float data[3] = {1, 2, 3}, got[3];
    size_t three = 3;
    tm_tensor *x = vector_f32(gpu, data, 3), *y, *other;

    // y = 10 x + 0.5, by a kernel with push constants and specialization; then its square, by the library.
    tm_recording *r;
    OK(tm_begin_recording(gpu, &r));
    OK(tm_recording_profiling(r, TM_PROFILING_TIMELINE));
    tm_argument arguments[2] = {tm_input(tm_of(x)), tm_output(TM_F32, &three, 1)};
    float factor = 10, offset = 0.5f;
    tm_specialization constants[2] = {{.id = 0, .bits = 64}, {.id = 1, .bits = 0}};
    memcpy(&constants[1].bits, &offset, sizeof offset);
    tm_dispatch_info info = {
        .size = sizeof info,
        .kernel = kernel,
        .arguments = arguments,
        .argument_count = 2,
        .push = &factor,
        .push_bytes = sizeof factor,
        .specializations = constants,
        .specialization_count = 2,
    };
    tm_value scaled, square;
    FAILS(tm_dispatch(r, &info, &scaled, 0), TM_INVALID_ARGUMENT, "1 outputs among the arguments, and room for 0");
    FAILS(tm_dispatch(r, &info, NULL, 1), TM_INVALID_ARGUMENT, "1 outputs among the arguments");
    FAILS(tm_dispatch(r, NULL, &scaled, 1), TM_INVALID_ARGUMENT, "info is NULL");
    info.push_bytes = 2;
    FAILS(tm_dispatch(r, &info, &scaled, 1), TM_KERNEL, "kernel scale: its push constants are 4 bytes, 2 were given");
    info.push_bytes = sizeof factor;
    constants[0].id = 9;
    FAILS(tm_dispatch(r, &info, &scaled, 1), TM_KERNEL, "it has no specialization constant 9");
    constants[0].id = 0;
    arguments[1].rank = 9;
    FAILS(tm_dispatch(r, &info, &scaled, 1), TM_SHAPE, "rank 9 is above the maximum of 8; merge dimensions");
    arguments[1] = tm_output(TM_F32, NULL, 11);
    FAILS(tm_dispatch(r, &info, &scaled, 1), TM_SHAPE, "rank 11 is above the maximum of 8; merge dimensions");
    arguments[1] = tm_output(TM_F32, &three, 1);
    OK(tm_dispatch(r, &info, &scaled, 1));
    tm_kernel_free(kernel);  // the recording keeps it
    OK(tm_binary(r, TM_MUL, scaled, scaled, &square));
    OK(tm_keep(r, square, &y));
    tm_plan *plan, *again = NULL;
    OK(tm_into_plan(r, &plan));
    FAILS(tm_into_plan(r, &again), TM_CLOSED, "the recording has ended");
    CHECK(again == NULL);
    tm_recording_free(r);

    tm_submission *done = NULL;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++) data[i] = (float)(round + i);
        OK(tm_tensor_write(x, data, sizeof data));
        tm_submission_free(done);
        OK(tm_plan_submit(plan, &done));
        OK(tm_tensor_read(y, got, sizeof got));
        for (int i = 0; i < 3; i++) CHECK(got[i] == (10 * data[i] + 0.5f) * (10 * data[i] + 0.5f));
    }
    char *text;
    OK(tm_submission_profile_json(done, &text));
    save(argv[2], "profile.json", text);
    tm_submission_free(done);

    // Another tensor in the place of y; y keeps what it has.
    OK(tm_empty(gpu, TM_F32, &three, 1, &other));
    OK(tm_plan_bind(plan, y, other));
    FAILS(tm_plan_bind(plan, other, other), TM_BINDING, "not among the plan's");
    FAILS(tm_plan_bind(plan, NULL, other), TM_INVALID_ARGUMENT, "recorded is NULL");
    data[0] = 100;
    OK(tm_tensor_write(x, data, sizeof data));
    OK(tm_plan_submit(plan, NULL));
    float before = got[0];
    OK(tm_tensor_read(y, got, sizeof got));
    CHECK(got[0] == before);
    OK(tm_tensor_read(other, got, sizeof got));
    CHECK(got[0] == 1000.5f * 1000.5f);

    // A whole run.
    tm_session *session, *second;
    tm_run *run;
    OK(tm_begin_profiling(gpu, "a run from C", TM_PROFILING_TIMELINE, &session));
    FAILS(tm_begin_profiling(gpu, "another", TM_PROFILING_TIMELINE, &second), TM_PROFILE, "already");
    OK(tm_plan_profiling(plan, TM_PROFILING_TIMELINE));
    for (int i = 0; i < 3; i++) OK(tm_plan_submit(plan, NULL));
    OK(tm_session_note(session, "host", "before", 2000, 1000));
    tm_recording *drawn;
    tm_value negated;
    tm_tensor *late;
    OK(tm_begin_recording(gpu, &drawn));
    OK(tm_unary(drawn, TM_NEG, tm_of(x), &negated));
    OK(tm_keep(drawn, negated, &late));
    OK(tm_session_graph(session, "drawn", drawn));
    tm_recording_free(drawn);
    tm_tensor_free(late);
    OK(tm_session_finish(session, &run));
    OK(tm_run_check(run));
    FAILS(tm_session_note(session, "host", "late", 2, 1), TM_CLOSED, "the session has ended");
    OK(tm_html_report("Two runs", (const tm_run *const[2]){run, run}, 2, &text));
    CHECK(strstr(text, "Two runs") != NULL && strstr(text, "drawn") != NULL);
    tm_string_free(text);
    tm_run *again_run;
    FAILS(tm_session_finish(session, &again_run), TM_CLOSED, "the session has ended");
    CHECK(again_run == NULL);
    tm_session_free(session);
    OK(tm_run_json(run, &text));
    save(argv[2], "run.json", text);
    OK(tm_run_trace_json(run, &text));
    save(argv[2], "trace.json", text);
    OK(tm_run_table(run, &text));
    CHECK(strstr(text, "scale") != NULL);
    tm_string_free(text);
    OK(tm_run_html(run, &text));
    CHECK(strstr(text, "<html") != NULL);
    tm_string_free(text);
    tm_run_free(run);
    OK(tm_stats_json(gpu, &text));
    save(argv[2], "stats.json", text);
    OK(tm_device_json(gpu, &text));
    save(argv[2], "device.json", text);
    OK(tm_devices_json(&text));
    CHECK(text[0] == '[');
    tm_string_free(text);
    OK(tm_validation_messages_json(gpu, &text));
    CHECK(strcmp(text, "[]") == 0);
    tm_string_free(text);

    uint64_t freed;
    OK(tm_synchronize(gpu));
    tm_plan_free(plan);
    tm_tensor_free(x);
    tm_tensor_free(y);
    tm_tensor_free(other);
    OK(tm_trim(gpu, &freed));
    CHECK(freed > 0);
    finish(gpu);
    return 0;
}
