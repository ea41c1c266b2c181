// Package boot takes the agent from the kernel's hands, as process 1 on the initramfs, to a running workload:
// kernel filesystems, modules, drives, network, and then the workload's own namespaces.
package boot

import (
	"fmt"
	"os"

	"space/guest/internal/console"
	"space/guest/internal/poll"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

// Where the agent mounts things in its own namespace, which the workload does not see.
const (
	driveMount = "/drive"
	runMount   = "/workload-run"
	agentFiles = 1 << 16
)

// ModulesMount is where the agent has the drive with the kernel's modules.
const ModulesMount = "/lib/modules"

// initialHostname is the workload's until the node gives one with Wake.
const initialHostname = "space"

// Run brings the guest up and starts the workload.
func Run(poller *poll.Poller) (*workload.Workload, error) {
	if err := mountKernelFilesystems(); err != nil {
		return nil, err
	}
	parameters := readParameters()
	console.Debug = parameters.debug
	limit := unix.Rlimit{Cur: agentFiles, Max: 1 << 20}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("limit of open files: %w", err)
	}
	if err := loadModules("/modules"); err != nil {
		return nil, err
	}
	drive, err := findDrive("root")
	if err != nil {
		return nil, err
	}
	if err := mountAt(drive, driveMount, "ext4", unix.MS_NOATIME, ""); err != nil {
		return nil, err
	}
	if err := mountAt("tmpfs", runMount, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return nil, err
	}
	if err := mountAt("devpts", workload.TerminalMount, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "ptmxmode=0666,mode=0620,gid=5"); err != nil {
		return nil, err
	}
	modules := mountModules()
	if err := bringUpNetwork(); err != nil {
		console.Printf("network: %v", err)
	}
	w, err := workload.Start(workload.Config{
		Drive: drive, DriveMount: driveMount, RunMount: runMount, ModulesMount: modules, Hostname: initialHostname,
		Systemd: parameters.systemd,
	}, poller)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	limitWorkload(w)
	prepareDrive(w)
	return w, nil
}

// PowerOff writes back and ends the machine.
func PowerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

// mountModules mounts the drive with the kernel's modules; without one, only what is in the initramfs can be loaded.
func mountModules() string {
	drive, err := findDrive("modules")
	if err != nil {
		console.Printf("modules: %v", err)
		return ""
	}
	for _, kind := range []string{"squashfs", "ext4"} {
		if err = mountAt(drive, ModulesMount, kind, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err == nil {
			answerModprobe()
			return ModulesMount
		}
	}
	console.Printf("modules: %v", err)
	return ""
}

// answerModprobe puts the agent's binary where the kernel looks for modprobe.
func answerModprobe() {
	_ = os.MkdirAll("/sbin", 0o755)
	if err := os.Symlink("/init", "/sbin/modprobe"); err != nil && !os.IsExist(err) {
		console.Printf("modprobe: %v", err)
	}
}

func mountKernelFilesystems() error {
	for _, m := range []struct{ kind, path, data string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"devtmpfs", "/dev", ""},
		{"cgroup2", "/sys/fs/cgroup", "nsdelegate"},
	} {
		if err := mountAt(m.kind, m.path, m.kind, unix.MS_NOSUID|unix.MS_NOEXEC, m.data); err != nil && err != unix.EBUSY {
			return err
		}
	}
	return nil
}

func mountAt(source, path, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, path, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, path, err)
	}
	return nil
}
