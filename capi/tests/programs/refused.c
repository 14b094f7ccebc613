// A program that was compiled against the header of ABI 1: the library says so before anything else happens.

#include <stdio.h>
#include <string.h>
#include <tidemill.h>

int main(void) {
    if (tm_check_abi(TM_ABI_VERSION) != TM_ABI_MISMATCH) return 1;
    if (strstr(tm_last_error_message(), "compiled against ABI 1") == NULL) return 2;
    tm_config config;
    memset(&config, 7, sizeof config);
    if (tm_config_init(&config, TM_ABI_VERSION) != TM_ABI_MISMATCH) return 3;
    if (config.device_index != 0x07070707) return 4;
    tm_accelerator *gpu;
    config.abi_version = TM_ABI_VERSION;
    if (tm_accelerator_new(&config, &gpu) != TM_ABI_MISMATCH || gpu != NULL) return 5;
    printf("ok\n");
    return 0;
}
