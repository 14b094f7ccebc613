// A host that opens the library as a plugin and closes it while its background thread is at work.
//
// usage: plugin LIBRARY

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tidemill.h>

// On a thread of its own, which ends: nothing of it pins the library.
static void *work(void *library) {
    tm_status (*global)(tm_accelerator **);
    void (*release)(tm_accelerator *);
    // C has no cast from an object pointer to a function.
    void *symbol = dlsym(library, "tm_accelerator_global");
    memcpy(&global, &symbol, sizeof global);
    symbol = dlsym(library, "tm_accelerator_free");
    memcpy(&release, &symbol, sizeof release);
    tm_accelerator *gpu;
    if (global(&gpu) != TM_OK) return NULL;
    release(gpu);
    return library;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    pthread_t thread;
    void *done;
    if (pthread_create(&thread, NULL, work, library) != 0 || pthread_join(thread, &done) != 0) return 1;
    if (done == NULL || dlclose(library) != 0) return 1;
    printf("ok\n");
    return 0;
}
