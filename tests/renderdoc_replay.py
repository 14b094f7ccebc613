"""Replays a capture: prints the label of the last dispatch, then the first N floats of each buffer it can write."""

import struct
import sys

import renderdoc as rd


def last_dispatch(actions, label, found):
    for action in actions:
        inside = action.customName or label
        if action.flags & rd.ActionFlags.Dispatch:
            found[:] = [action, label]
        last_dispatch(action.children, inside, found)


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    rd.InitialiseReplay(rd.GlobalEnvironment(), [])
    capture = rd.OpenCaptureFile()
    status = capture.OpenFile(path, "", None)
    assert status == rd.ResultCode.Succeeded, status
    status, controller = capture.OpenCapture(rd.ReplayOptions(), None)
    assert status == rd.ResultCode.Succeeded, status
    found = []
    last_dispatch(controller.GetRootActions(), "", found)
    action, label = found
    print(label)
    controller.SetFrameEvent(action.eventId, True)
    state = controller.GetPipelineState()
    for binding in state.GetReadWriteResources(rd.ShaderStage.Compute):
        for resource in binding.resources:
            data = controller.GetBufferData(resource.resourceId, 0, 4 * count)
            print(*struct.unpack(f"{len(data) // 4}f", data))
    controller.Shutdown()
    capture.Shutdown()
    rd.ShutdownReplay()


main()
