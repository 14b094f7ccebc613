// A window of a host in C++ with plain Vulkan and GLFW: every frame is drawn from a tensor that the engine computes
// on the host's device,
// in the host's command buffer. No pixel passes through the CPU. The mouse moves a slider along the lower edge,
// which shifts the rings.
//
//     ./dev embed_glfw [--slider S] [--frames N]
//
// With --slider it begins at S, from 0 to 1. With --frames it ends by itself after N frames.

#define GLFW_INCLUDE_VULKAN
#include <GLFW/glfw3.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tidemill.hpp>
#include <vector>

using tidemill::Tensor, tidemill::Value;

constexpr std::uint32_t SIDE = 480;
// Frames whose commands may be in flight.
constexpr std::size_t FRAMES = 2;

static void vk(VkResult result, const char *what) {
    if (result != VK_SUCCESS && result != VK_SUBOPTIMAL_KHR)
        throw std::runtime_error(std::string(what) + ": VkResult " + std::to_string(result));
}
#define VK(call) vk(call, #call)

// The picture, as the engine computes it.
class Rings {
public:
    explicit Rings(const tidemill::Accelerator &gpu) : gpu_(gpu) {
        auto axis = [](float *data, std::size_t n) {
            for (std::size_t i = 0; i < n; ++i) data[i] = (static_cast<float>(i) + 0.5f) / static_cast<float>(n);
        };
        x_ = gpu.upload_with<float>({1, SIDE}, axis);
        y_ = gpu.upload_with<float>({SIDE, 1}, axis);
        slider_ = gpu.empty<float>({1, 1});
    }

    // Records the pixels, blue in the lowest byte, into the host's command buffer.
    Tensor record(VkCommandBuffer commands, VkSemaphore done, std::uint64_t value, float slider) {
        slider_.write(&slider, 1);
        gpu_.flush();  // what was written is on its way before the commands are
        auto r = gpu_.begin_recording();
        Value x = r.of(x_) - 0.5, y = r.of(y_) - 0.5;
        Value phase = 40.0 * r.unary(TM_SQRT, x * x + y * y) - 6.2831853 * r.of(slider_);
        Value level = 0.5 + 0.5 * r.unary(TM_SIN, phase);
        Value red = r.unary(TM_FLOOR, 255.0 * level), green = r.unary(TM_FLOOR, 200.0 * (1.0 - level));
        // Below 2^24 every whole number is a float.
        Value rings = r.cast(65536.0 * red + 256.0 * green + 96.0, TM_U32);
        // The slider's knob, white.
        Value beside = r.binary(TM_LT, r.abs(r.of(x_) - slider_), 0.02), below = r.binary(TM_GT, r.of(y_), 0.95);
        Value pixels = r.select(beside * below, r.fill(TM_U32, {1, 1}, 0xffffff), rings);
        Tensor kept = r.keep(pixels);
        r.record_into(commands, reinterpret_cast<std::uint64_t>(done), value);
        return kept;
    }

private:
    const tidemill::Accelerator &gpu_;
    Tensor x_, y_, slider_;
};

// The host's own Vulkan: what any program with a window has.
class Screen {
public:
    explicit Screen(GLFWwindow *window) {
        std::uint32_t count = 0;
        const char **extensions = glfwGetRequiredInstanceExtensions(&count);
        if (extensions == nullptr) throw std::runtime_error("GLFW finds no surface extension of Vulkan");
        VkApplicationInfo app{};
        app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
        app.apiVersion = VK_API_VERSION_1_3;
        VkInstanceCreateInfo info{};
        info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
        info.pApplicationInfo = &app;
        info.enabledExtensionCount = count;
        info.ppEnabledExtensionNames = extensions;
        VK(vkCreateInstance(&info, nullptr, &instance));
        VK(glfwCreateWindowSurface(instance, window, nullptr, &surface));
        std::uint32_t one = 1;
        VkResult listed = vkEnumeratePhysicalDevices(instance, &one, &physical);
        if (one == 0 || listed < 0) throw std::runtime_error("no Vulkan device");
        family = find_family();
    }
    Screen(const Screen &) = delete;
    Screen &operator=(const Screen &) = delete;

    // The device, as the engine wants it, and the engine on it.
    tidemill::Accelerator make_device() {
        tidemill::DeviceNeeds needs(reinterpret_cast<tm_vulkan_fn>(vkGetInstanceProcAddr), instance, physical);
        if (!needs.missing().empty()) throw std::runtime_error(needs.missing().front());
        VkPhysicalDeviceVulkan13Features v13{};
        v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
        VkPhysicalDeviceVulkan12Features v12{};
        v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, v12.pNext = &v13;
        VkPhysicalDeviceVulkan11Features v11{};
        v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, v11.pNext = &v12;
        VkPhysicalDeviceFeatures2 core{};
        core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, core.pNext = &v11;
        needs.enable(&core.features, &v11, &v12, &v13);
        std::vector<const char *> extensions = needs.extensions();
        extensions.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
        float priority = 1;
        VkDeviceQueueCreateInfo queues{};
        queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
        queues.queueFamilyIndex = family, queues.queueCount = 1, queues.pQueuePriorities = &priority;
        VkDeviceCreateInfo made_with{};
        made_with.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, made_with.pNext = &core;
        made_with.queueCreateInfoCount = 1, made_with.pQueueCreateInfos = &queues;
        made_with.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
        made_with.ppEnabledExtensionNames = extensions.data();
        VK(vkCreateDevice(physical, &made_with, nullptr, &device));
        vkGetDeviceQueue(device, family, 0, &queue);

        tm_host_device host{};
        host.size = sizeof host;
        host.get_instance_proc_addr = reinterpret_cast<tm_vulkan_fn>(vkGetInstanceProcAddr);
        host.instance = instance, host.physical_device = physical, host.device = device, host.queue = queue;
        host.made_with = &made_with, host.api_version = VK_API_VERSION_1_3, host.queue_family = family;
        host.lock_queue = [](void *lock) { static_cast<std::mutex *>(lock)->lock(); };
        host.unlock_queue = [](void *lock) { static_cast<std::mutex *>(lock)->unlock(); };
        host.lock_user = &lock;
        return tidemill::Accelerator::from_raw(host, tm_config_defaults());
    }

    void make_swapchain() {
        VkSurfaceCapabilitiesKHR can{};
        VK(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(physical, surface, &can));
        VkSwapchainCreateInfoKHR info{};
        info.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR;
        info.surface = surface, info.minImageCount = can.minImageCount + 1;
        if (can.maxImageCount > 0 && info.minImageCount > can.maxImageCount) info.minImageCount = can.maxImageCount;
        info.imageFormat = VK_FORMAT_B8G8R8A8_UNORM, info.imageColorSpace = VK_COLOR_SPACE_SRGB_NONLINEAR_KHR;
        info.imageExtent = {SIDE, SIDE}, info.imageArrayLayers = 1;
        info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
        info.preTransform = can.currentTransform, info.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
        info.presentMode = VK_PRESENT_MODE_FIFO_KHR, info.clipped = VK_TRUE;
        VK(vkCreateSwapchainKHR(device, &info, nullptr, &swapchain));
        std::uint32_t count = 0;
        VK(vkGetSwapchainImagesKHR(device, swapchain, &count, nullptr));
        images.resize(count);
        VK(vkGetSwapchainImagesKHR(device, swapchain, &count, images.data()));
        for (std::uint32_t i = 0; i < count; ++i) drawn.push_back(make_semaphore(VK_SEMAPHORE_TYPE_BINARY));
        for (std::size_t i = 0; i < FRAMES; ++i) acquired.push_back(make_semaphore(VK_SEMAPHORE_TYPE_BINARY));
        timeline = make_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
        VkCommandPoolCreateInfo pool_info{};
        pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, pool_info.queueFamilyIndex = family;
        VK(vkCreateCommandPool(device, &pool_info, nullptr, &pool));
        VkCommandBufferAllocateInfo allocate{};
        allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, allocate.commandPool = pool;
        allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, allocate.commandBufferCount = FRAMES;
        commands.resize(FRAMES);
        VK(vkAllocateCommandBuffers(device, &allocate, commands.data()));
    }

    // Draws one frame: the engine's operations, a copy of the pixels into the window's image, and the image to
    // the screen.
    void draw(Rings &rings, float slider) {
        std::size_t slot = number % FRAMES;
        std::uint64_t value = ++number;
        if (value > FRAMES) wait(value - FRAMES);
        holds[slot].reset();  // the commands that used it are done
        std::uint32_t image = 0;
        VK(vkAcquireNextImageKHR(device, swapchain, UINT64_MAX, acquired[slot], VK_NULL_HANDLE, &image));
        VkCommandBuffer buffer = commands[slot];
        VkCommandBufferBeginInfo begin{};
        begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
        begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
        VK(vkBeginCommandBuffer(buffer, &begin));
        Tensor pixels = rings.record(buffer, timeline, value, slider);
        holds[slot].emplace(pixels);
        transition(buffer, images[image], VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
        VkBufferImageCopy region{};
        region.bufferOffset = holds[slot]->range().offset_bytes;
        region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
        region.imageExtent = {SIDE, SIDE, 1};
        vkCmdCopyBufferToImage(buffer, reinterpret_cast<VkBuffer>(holds[slot]->range().buffer), images[image],
                               VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
        transition(buffer, images[image], VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
        VK(vkEndCommandBuffer(buffer));
        submit(buffer, acquired[slot], drawn[image], value);
        VkPresentInfoKHR present{};
        present.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR;
        present.waitSemaphoreCount = 1, present.pWaitSemaphores = &drawn[image];
        present.swapchainCount = 1, present.pSwapchains = &swapchain, present.pImageIndices = &image;
        std::lock_guard<std::mutex> turn(lock);
        VK(vkQueuePresentKHR(queue, &present));
    }

    // All that was drawn is done, and nothing of the engine's is held.
    void finish() {
        if (number > 0) wait(number);
        for (auto &hold : holds) hold.reset();
    }

    ~Screen() {
        if (device != VK_NULL_HANDLE) {
            vkDeviceWaitIdle(device);
            vkDestroyCommandPool(device, pool, nullptr);
            vkDestroySemaphore(device, timeline, nullptr);
            for (VkSemaphore semaphore : acquired) vkDestroySemaphore(device, semaphore, nullptr);
            for (VkSemaphore semaphore : drawn) vkDestroySemaphore(device, semaphore, nullptr);
            vkDestroySwapchainKHR(device, swapchain, nullptr);
            vkDestroyDevice(device, nullptr);
        }
        vkDestroySurfaceKHR(instance, surface, nullptr);
        vkDestroyInstance(instance, nullptr);
    }

private:
    std::uint32_t find_family() const {
        std::uint32_t count = 0;
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
        std::vector<VkQueueFamilyProperties> families(count);
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
        for (std::uint32_t i = 0; i < count; ++i) {
            VkBool32 presents = VK_FALSE;
            VK(vkGetPhysicalDeviceSurfaceSupportKHR(physical, i, surface, &presents));
            if (presents && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) return i;
        }
        throw std::runtime_error("no queue that computes and presents");
    }

    VkSemaphore make_semaphore(VkSemaphoreType type) const {
        VkSemaphoreTypeCreateInfo kind{};
        kind.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, kind.semaphoreType = type;
        VkSemaphoreCreateInfo info{};
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, info.pNext = &kind;
        VkSemaphore semaphore = VK_NULL_HANDLE;
        VK(vkCreateSemaphore(device, &info, nullptr, &semaphore));
        return semaphore;
    }

    void wait(std::uint64_t value) const {
        VkSemaphoreWaitInfo info{};
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
        info.semaphoreCount = 1, info.pSemaphores = &timeline, info.pValues = &value;
        VK(vkWaitSemaphores(device, &info, UINT64_MAX));
    }

    static void transition(VkCommandBuffer buffer, VkImage image, VkImageLayout from, VkImageLayout to) {
        VkImageMemoryBarrier2 barrier{};
        barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2;
        barrier.srcStageMask = barrier.dstStageMask = VK_PIPELINE_STAGE_2_TRANSFER_BIT;
        bool begins = from == VK_IMAGE_LAYOUT_UNDEFINED;
        (begins ? barrier.dstAccessMask : barrier.srcAccessMask) = VK_ACCESS_2_TRANSFER_WRITE_BIT;
        barrier.oldLayout = from, barrier.newLayout = to, barrier.image = image;
        barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
        barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        VkDependencyInfo info{};
        info.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
        info.imageMemoryBarrierCount = 1, info.pImageMemoryBarriers = &barrier;
        vkCmdPipelineBarrier2(buffer, &info);
    }

    // Behind the image's acquisition; signals that it is drawn, and the frame's number.
    void submit(VkCommandBuffer buffer, VkSemaphore from, VkSemaphore to, std::uint64_t value) {
        auto point = [](VkSemaphore semaphore, std::uint64_t at) {
            VkSemaphoreSubmitInfo info{};
            info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, info.semaphore = semaphore, info.value = at;
            info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
            return info;
        };
        VkSemaphoreSubmitInfo waits = point(from, 0), signals[2] = {point(to, 0), point(timeline, value)};
        VkCommandBufferSubmitInfo buffers{};
        buffers.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, buffers.commandBuffer = buffer;
        VkSubmitInfo2 info{};
        info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
        info.waitSemaphoreInfoCount = 1, info.pWaitSemaphoreInfos = &waits;
        info.commandBufferInfoCount = 1, info.pCommandBufferInfos = &buffers;
        info.signalSemaphoreInfoCount = 2, info.pSignalSemaphoreInfos = signals;
        std::lock_guard<std::mutex> turn(lock);
        VK(vkQueueSubmit2(queue, 1, &info, VK_NULL_HANDLE));
    }

    VkInstance instance = VK_NULL_HANDLE;
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    VkSwapchainKHR swapchain = VK_NULL_HANDLE;
    VkCommandPool pool = VK_NULL_HANDLE;
    VkSemaphore timeline = VK_NULL_HANDLE;
    std::uint32_t family = 0;
    std::mutex lock;
    std::vector<VkImage> images;
    std::vector<VkSemaphore> acquired, drawn;
    std::vector<VkCommandBuffer> commands;
    std::optional<tidemill::BufferHold> holds[FRAMES];
    std::uint64_t number = 0;
};

static void run(GLFWwindow *window, float slider, unsigned long frames) {
    Screen screen(window);
    tidemill::Accelerator gpu = screen.make_device();
    screen.make_swapchain();
    {
        Rings rings(gpu);
        for (unsigned long n = 0; !glfwWindowShouldClose(window) && (frames == 0 || n < frames); ++n) {
            glfwPollEvents();
            if (glfwGetMouseButton(window, GLFW_MOUSE_BUTTON_LEFT) == GLFW_PRESS) {
                double x = 0, y = 0;
                glfwGetCursorPos(window, &x, &y);
                slider = static_cast<float>(x / SIDE < 0 ? 0 : x / SIDE > 1 ? 1 : x / SIDE);
            }
            screen.draw(rings, slider);
        }
        screen.finish();
    }
    gpu.synchronize();
    gpu.close();  // before the host destroys its device
}

int main(int argc, char **argv) {
    float slider = 0.5f;
    unsigned long frames = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--slider") == 0) slider = std::strtof(argv[i + 1], nullptr);
        if (std::strcmp(argv[i], "--frames") == 0) frames = std::strtoul(argv[i + 1], nullptr, 10);
    }
    if (!glfwInit()) {
        std::fprintf(stderr, "GLFW can't open a display\n");
        return 1;
    }
    int status = 0;
    try {
        glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
        glfwWindowHint(GLFW_RESIZABLE, GLFW_FALSE);
        GLFWwindow *window = glfwCreateWindow(SIDE, SIDE, "Tidemill: rings", nullptr, nullptr);
        if (window == nullptr) throw std::runtime_error("GLFW opens no window");
        run(window, slider, frames);
        glfwDestroyWindow(window);
        std::printf("%lu frames\n", frames);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        status = 1;
    }
    glfwTerminate();
    return status;
}
