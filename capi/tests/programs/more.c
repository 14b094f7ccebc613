// What takes long and what looks inside: contents by a function, memory of the program's own, GLSL, pipelines ahead, tuning, captures,
// explanations and figures as JSON.
//
// usage: more FOLDER; leaves explain.json, tuning.json, variants.json and peaks.json in FOLDER.

#include "check.h"

static void save(const char *folder, const char *name, char *text) {
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    tm_string_free(text);
}

// Counts up from the number that it is given, or fails.
static int32_t count_up(void *data, size_t size_bytes, void *user) {
    float *element = data, next = *(float *)user;
    if (next < 0) return 7;
    for (size_t i = 0; i < size_bytes / sizeof *element; ++i) element[i] = next++;
    return 0;
}

static void contents(tm_accelerator *gpu) {
    size_t dims[2] = {2, 3};
    float from = 1, never = -1, got[6];
    tm_tensor *x, *none = NULL;
    OK(tm_upload_with(gpu, TM_F32, dims, 2, count_up, &from, &x));
    FAILS(tm_upload_with(gpu, TM_F32, dims, 2, count_up, &never, &none), TM_CALLBACK, "fill gave 7");
    CHECK(none == NULL);
    OK(tm_tensor_read(x, got, sizeof got));
    CHECK(got[0] == 1 && got[5] == 6);
    from = 10;
    OK(tm_tensor_write_with(x, count_up, &from));
    OK(tm_tensor_read(x, got, sizeof got));
    CHECK(got[0] == 10 && got[5] == 15);
    FAILS(tm_tensor_write_with(x, count_up, &never), TM_CALLBACK, "fill gave 7");
    tm_accelerator *same;
    OK(tm_tensor_accelerator(x, &same));
    OK(tm_synchronize(same));
    tm_accelerator_free(same);
    tm_tensor_free(x);
}

static int released = 0;

static void release(void *user) {
    free(user);
    ++released;
}

static void own_memory(tm_accelerator *gpu) {
    enum { N = 4096 };
    size_t n = N, bytes = N * sizeof(float);
    float *data = aligned_alloc(65536, 65536), got[N];
    for (int i = 0; i < N; ++i) data[i] = (float)i;
    tm_host_memory *memory;
    FAILS(tm_host_memory_new(NULL, 4, NULL, NULL, &memory), TM_INVALID_ARGUMENT, "data is NULL");
    OK(tm_host_memory_new(data, bytes, release, data, &memory));
    tm_tensor *x, *y;
    char *why;
    OK(tm_import_or_upload(gpu, memory, 0, TM_F32, &n, 1, &why, &x));
    CHECK((why == NULL) == tm_tensor_is_imported(x) && !tm_tensor_is_imported(NULL));
    tm_string_free(why);
    FAILS(tm_import(gpu, memory, 4, TM_F32, &n, 1, &y), TM_HOST, "16384");
    CHECK(y == NULL);
    size_t half = N / 2;
    if (tm_tensor_is_imported(x)) {
        OK(tm_import(gpu, memory, bytes / 2, TM_F32, &half, 1, &y));
        OK(tm_tensor_read(y, got, bytes / 2));
        CHECK(got[0] == N / 2);
        tm_tensor_free(y);
    }
    tm_host_memory_free(memory);
    OK(tm_tensor_read(x, got, bytes));
    CHECK(got[0] == 0 && got[N - 1] == N - 1);
    tm_tensor_free(x);
    OK(tm_synchronize(gpu));
    OK(tm_trim(gpu, NULL));
    CHECK(released == 1);
}

static void glsl(tm_accelerator *gpu) {
    tm_define factor = {.name = "FACTOR", .value = "3.0"};
    tm_glsl source = {
        .size = sizeof source,
        .name = "scale",
        .text = "#version 460\n"
                "layout(local_size_x = 64) in;\n"
                "layout(binding = 0) readonly buffer In { float x[]; };\n"
                "layout(binding = 1) writeonly buffer Out { float y[]; };\n"
                "void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = FACTOR * x[i]; }\n",
        .defines = &factor,
        .define_count = 1,
    };
    tm_kernel *kernel;
    if (!tm_has_glsl()) {
        FAILS(tm_kernel_from_glsl(&source, &kernel), TM_KERNEL, "built without shaderc");
        return;
    }
    OK(tm_kernel_from_glsl(&source, &kernel));
    float data[3] = {1, 2, 3}, got[3];
    size_t three = 3;
    tm_tensor *x = vector_f32(gpu, data, 3), *y;
    tm_recording *r;
    tm_value scaled;
    OK(tm_begin_recording(gpu, &r));
    tm_argument arguments[2] = {tm_input(tm_of(x)), tm_output(TM_F32, &three, 1)};
    tm_dispatch_info info = {.size = sizeof info, .kernel = kernel, .arguments = arguments, .argument_count = 2};
    OK(tm_dispatch(r, &info, &scaled, 1));
    OK(tm_keep(r, scaled, &y));
    OK(tm_end_recording(r, NULL));
    OK(tm_tensor_read(y, got, sizeof got));
    CHECK(got[0] == 3 && got[2] == 9);
    tm_recording_free(r);
    tm_kernel_free(kernel);
    tm_tensor_free(x);
    tm_tensor_free(y);
    OK(tm_kernel_from_glsl_unguarded(&source, &kernel));
    tm_kernel_free(kernel);
    const char *folder = ".";
    source.include_dirs = &folder;
    source.include_dir_count = 1;
    // The crate shaderc 0.10 leaks the result of a compilation that fails, so not where leaks are looked for.
    if (getenv("NO_VALIDATION") == NULL) {
        source.text = "#version 460\nvoid main() { nonsense; }\n";
        FAILS(tm_kernel_from_glsl(&source, &kernel), TM_KERNEL, "scale");
    }
    source.file = "/nowhere/x.comp";
    FAILS(tm_kernel_from_glsl(&source, &kernel), TM_INVALID_ARGUMENT, "file and text are both set");
    source.text = NULL;
    FAILS(tm_kernel_from_glsl(&source, &kernel), TM_KERNEL, "x.comp");
    CHECK(kernel == NULL);
}

typedef struct {
    int told;
    bool stop;
    bool trials;
} Watch;

static int32_t watch(const tm_progress *progress, void *user) {
    Watch *watch = user;
    CHECK(progress->size == sizeof *progress && progress->done <= progress->total);
    CHECK((progress->trial != NULL) == watch->trials);
    ++watch->told;
    return watch->stop;
}

static void ahead(tm_accelerator *gpu, const char *folder) {
    float data[64] = {1};
    tm_tensor *x = upload_f32(gpu, data, 8, 8), *y;
    tm_recording *r;
    tm_value product, soft;
    OK(tm_begin_recording(gpu, &r));
    OK(tm_matmul(r, tm_of(x), tm_of(x), NULL, &product));
    OK(tm_softmax(r, product, -1, &soft));
    OK(tm_keep(r, soft, &y));
    Watch stops = {.stop = true}, goes = {0};
    FAILS(tm_prepare(r, watch, &stops), TM_CANCELLED, "");
    CHECK(stops.told == 1);
    OK(tm_prepare(r, watch, &goes));
    CHECK(goes.told > 0);
    char *text;
    OK(tm_explain_json(r, &text));
    save(folder, "explain.json", text);
    OK(tm_explain_svg(r, &text));
    CHECK(strncmp(text, "<svg", 4) == 0);
    tm_string_free(text);
    OK(tm_explain_dot(r, &text));
    CHECK(strncmp(text, "digraph", 7) == 0);
    tm_string_free(text);
    tm_plan *plan;
    OK(tm_into_plan(r, &plan));
    tm_recording_free(r);
    OK(tm_plan_prepare(plan, NULL, NULL));
    OK(tm_plan_submit(plan, NULL));
    OK(tm_tensor_read(y, data, sizeof data));
    tm_plan_free(plan);
    tm_tensor_free(x);
    tm_tensor_free(y);
    tm_prewarming status = {.size = sizeof status};
    OK(tm_prewarm_status(gpu, &status));
    OK(tm_wait_prewarmed(gpu, &status));
    status.size = 2;
    FAILS(tm_prewarm_status(gpu, &status), TM_ABI_MISMATCH, "the size of tm_prewarming is 2");
}

static void tuning(tm_accelerator *gpu, const char *folder) {
    const char *families[1] = {"softmax"};
    tm_tune_options options = {.size = sizeof options, .families = families, .family_count = 1};
    Watch stops = {.stop = true, .trials = true};
    char *json;
    OK(tm_tune(gpu, &options, watch, &stops, &json));
    CHECK(stops.told == 1);
    save(folder, "tuning.json", json);
    families[0] = "no such family";
    FAILS(tm_tune(gpu, &options, NULL, NULL, &json), TM_KERNEL, "no such family");
    CHECK(json == NULL);
    OK(tm_variants_json(gpu, &json));
    save(folder, "variants.json", json);
    OK(tm_peaks_json(gpu, &json));
    save(folder, "peaks.json", json);
    OK(tm_cache_json(gpu, &json));
    CHECK(strcmp(json, "{\"file\":null,\"loaded\":false,\"problem\":null}") == 0);
    tm_string_free(json);
}

static int32_t never_called(void *user) {
    (void)user;
    FAIL("without RenderDoc nothing is captured");
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    tm_accelerator *gpu = make_gpu();
    contents(gpu);
    own_memory(gpu);
    glsl(gpu);
    ahead(gpu, argv[1]);
    tuning(gpu, argv[1]);
    char *file;
    FAILS(tm_capture(gpu, "c", never_called, NULL, &file), TM_PROFILE, "RenderDoc");
    CHECK(file == NULL);
    finish(gpu);
    return 0;
}
