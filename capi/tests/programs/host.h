// A host of the test programs: an instance and a device of its own, made with plain Vulkan, under validation unless NO_VALIDATION
// is set. A message of the layer fails the program.

#ifndef HOST_H
#define HOST_H

#include "check.h"

#include <pthread.h>
#include <vulkan/vulkan.h>

#define VK(call)                                                        \
    do {                                                                \
        VkResult result_ = (call);                                      \
        if (result_ != VK_SUCCESS) FAIL("%s: %d", #call, (int)result_); \
    } while (0)

typedef struct {
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkCommandPool pool;
    VkSemaphore timeline;
    pthread_mutex_t lock;
    int held;  // by whom the lock is held: 0 or 1
    int turns;
    bool prewarm;  // whether pipelines are made ahead in the background
} Host;

typedef struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
    float *mapped;
} Shared;

static inline VKAPI_ATTR VkBool32 VKAPI_CALL on_validation(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                           VkDebugUtilsMessageTypeFlagsEXT type,
                                                           const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)severity;
    (void)type;
    fprintf(stderr, "validation of the host: %s\n", data->pMessage);
    ++*(int *)user;
    return VK_FALSE;
}

static inline void lock_queue(void *user) {
    Host *host = user;
    CHECK(pthread_mutex_lock(&host->lock) == 0);
    CHECK(host->held++ == 0);
    ++host->turns;
}

static inline void unlock_queue(void *user) {
    Host *host = user;
    CHECK(--host->held == 0);
    CHECK(pthread_mutex_unlock(&host->lock) == 0);
}

static inline int make_instance(void *user) {
    Host *host = user;
    bool validation = getenv("NO_VALIDATION") == NULL;
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    const char *layer = "VK_LAYER_KHRONOS_validation", *extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkValidationFeatureEnableEXT synchronization = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = &synchronization,
    };
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .pNext = &features,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_validation,
        .pUserData = &complaints,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validation ? &messenger : NULL,
        .pApplicationInfo = &app,
        .enabledLayerCount = validation,
        .ppEnabledLayerNames = &layer,
        .enabledExtensionCount = validation,
        .ppEnabledExtensionNames = &extension,
    };
    VK(vkCreateInstance(&info, NULL, &host->instance));
    if (validation) {
        PFN_vkCreateDebugUtilsMessengerEXT create = (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
            host->instance, "vkCreateDebugUtilsMessengerEXT");
        CHECK(create != NULL);
        messenger.pNext = NULL;
        VK(create(host->instance, &messenger, NULL, &host->messenger));
    }
    uint32_t one = 1;
    VkResult listed = vkEnumeratePhysicalDevices(host->instance, &one, &host->physical);
    CHECK((listed == VK_SUCCESS || listed == VK_INCOMPLETE) && one == 1);
    return 0;
}

static inline VkSemaphore make_timeline(const Host *host) {
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkSemaphore semaphore;
    VK(vkCreateSemaphore(host->device, &info, NULL, &semaphore));
    return semaphore;
}

// Makes the host's device, with what the library wants or with nothing, and offers it to the library.
static inline tm_status offer(Host *host, bool bare, tm_accelerator **gpu) {
    tm_device_needs *needs;
    OK(tm_device_needs_of((tm_vulkan_fn)vkGetInstanceProcAddr, host->instance, host->physical, &needs));
    uint32_t missing = 7, extension_count = 0, feature_count = 0;
    CHECK(tm_device_needs_missing(needs, &missing) != NULL && missing == 0);
    const char *const *extensions = tm_device_needs_extensions(needs, &extension_count);
    const char *const *features = tm_device_needs_features(needs, &feature_count);
    CHECK(feature_count >= 3 && strcmp(features[0], "timelineSemaphore") == 0);

    uint32_t families = 16;
    VkQueueFamilyProperties properties[16];
    vkGetPhysicalDeviceQueueFamilyProperties(host->physical, &families, properties);
    host->family = 0;
    while (host->family < families && !(properties[host->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++host->family;
    CHECK(host->family < families);

    VkPhysicalDeviceVulkan13Features v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v13};
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
    VkPhysicalDeviceFeatures2 core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v11};
    FAILS(tm_device_needs_enable(needs, &core.features, &v12, &v11, &v13), TM_INVALID_ARGUMENT, "v11 has the sType 51, not 49");
    if (!bare) {
        OK(tm_device_needs_enable(needs, &core.features, &v11, &v12, &v13));
        CHECK(v12.timelineSemaphore && v13.synchronization2 && v13.maintenance4);
    }
    float priority = 1;
    VkDeviceQueueCreateInfo queues = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = host->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkDeviceCreateInfo made_with = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &core,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queues,
        .enabledExtensionCount = bare ? 0 : extension_count,
        .ppEnabledExtensionNames = extensions,
    };
    VK(vkCreateDevice(host->physical, &made_with, NULL, &host->device));
    vkGetDeviceQueue(host->device, host->family, 0, &host->queue);
    CHECK(pthread_mutex_init(&host->lock, NULL) == 0);

    tm_host_device device = {
        .size = sizeof device,
        .get_instance_proc_addr = (tm_vulkan_fn)vkGetInstanceProcAddr,
        .instance = host->instance,
        .physical_device = host->physical,
        .device = host->device,
        .queue = host->queue,
        .made_with = &made_with,
        .api_version = VK_API_VERSION_1_3,
        .queue_family = host->family,
        .lock_queue = lock_queue,
        .unlock_queue = unlock_queue,
        .lock_user = host,
        .debug_utils = host->messenger != VK_NULL_HANDLE,
        .quiet = true,
    };
    tm_config config = tm_config_defaults();
    config.memory_checks = true;
    config.no_cache = true;
    config.prewarm = host->prewarm ? TM_PREWARM_BACKGROUND : TM_PREWARM_OFF;
    tm_status status = tm_accelerator_from_raw(&device, &config, gpu);
    if (!bare) {
        tm_accelerator *none;
        device.unlock_queue = NULL;
        FAILS(tm_accelerator_from_raw(&device, &config, &none), TM_INVALID_ARGUMENT, "of lock_queue and unlock_queue, one is NULL");
        device.unlock_queue = unlock_queue;
        device.queue = NULL;
        FAILS(tm_accelerator_from_raw(&device, &config, &none), TM_INVALID_ARGUMENT, "queue is NULL");
        device.made_with = &queues;
        FAILS(tm_accelerator_from_raw(&device, &config, &none), TM_INVALID_ARGUMENT, "made_with has the sType 2, not 3");
        CHECK(none == NULL);
        VkCommandPoolCreateInfo pool = {
            .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = host->family};
        VK(vkCreateCommandPool(host->device, &pool, NULL, &host->pool));
        host->timeline = make_timeline(host);
    }
    tm_device_needs_free(needs);
    return status;
}

// A buffer of `n` floats in memory that the CPU sees.
static inline Shared make_shared(const Host *host, size_t n, VkBufferUsageFlags usage) {
    Shared shared;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = n * sizeof(float), .usage = usage};
    VK(vkCreateBuffer(host->device, &info, NULL, &shared.buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(host->device, shared.buffer, &needs);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(host->physical, &memory);
    VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (type < memory.memoryTypeCount &&
           (!(needs.memoryTypeBits >> type & 1) || (memory.memoryTypes[type].propertyFlags & wanted) != wanted))
        ++type;
    CHECK(type < memory.memoryTypeCount);
    VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
    VK(vkAllocateMemory(host->device, &allocate, NULL, &shared.memory));
    VK(vkBindBufferMemory(host->device, shared.buffer, shared.memory, 0));
    VK(vkMapMemory(host->device, shared.memory, 0, VK_WHOLE_SIZE, 0, (void **)&shared.mapped));
    return shared;
}

static inline void destroy_shared(const Host *host, Shared shared) {
    vkDestroyBuffer(host->device, shared.buffer, NULL);
    vkFreeMemory(host->device, shared.memory, NULL);
}

static inline VkCommandBuffer begin_commands(const Host *host) {
    VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = host->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkCommandBuffer commands;
    VK(vkAllocateCommandBuffers(host->device, &allocate, &commands));
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VK(vkBeginCommandBuffer(commands, &begin));
    return commands;
}

// Ends and submits commands under the lock: behind a point of a timeline, and to signal the next one of the host's.
static inline void submit_commands(Host *host, VkCommandBuffer commands, VkSemaphore wait, uint64_t wait_value,
                                   uint64_t signal_value) {
    VK(vkEndCommandBuffer(commands));
    VkSemaphoreSubmitInfo waits = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = wait,
        .value = wait_value,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
    VkSemaphoreSubmitInfo signals = waits;
    signals.semaphore = host->timeline;
    signals.value = signal_value;
    VkCommandBufferSubmitInfo buffers = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = commands};
    VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .waitSemaphoreInfoCount = wait != VK_NULL_HANDLE,
        .pWaitSemaphoreInfos = &waits,
        .commandBufferInfoCount = 1,
        .pCommandBufferInfos = &buffers,
        .signalSemaphoreInfoCount = 1,
        .pSignalSemaphoreInfos = &signals,
    };
    lock_queue(host);
    VK(vkQueueSubmit2(host->queue, 1, &info, VK_NULL_HANDLE));
    unlock_queue(host);
}

static inline void wait_host(const Host *host, uint64_t value) {
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &host->timeline,
        .pValues = &value,
    };
    VK(vkWaitSemaphores(host->device, &info, 20000000000u));
}

static inline int destroy_device(void *user) {
    Host *host = user;
    if (host->pool != VK_NULL_HANDLE) {
        VK(vkDeviceWaitIdle(host->device));
        vkDestroySemaphore(host->device, host->timeline, NULL);
        vkDestroyCommandPool(host->device, host->pool, NULL);
        host->pool = VK_NULL_HANDLE;
    }
    vkDestroyDevice(host->device, NULL);
    pthread_mutex_destroy(&host->lock);
    return 0;
}

static inline int destroy_instance(void *user) {
    Host *host = user;
    if (host->messenger != VK_NULL_HANDLE) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy = (PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
            host->instance, "vkDestroyDebugUtilsMessengerEXT");
        destroy(host->instance, host->messenger, NULL);
    }
    vkDestroyInstance(host->instance, NULL);
    return 0;
}

#endif
