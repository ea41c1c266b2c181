package main

import (
	"strings"

	"space/guest/internal/boot"
	"space/guest/internal/modules"

	"golang.org/x/sys/unix"
)

// modprobe is what the kernel runs, as /sbin/modprobe of the initramfs, when it misses a module.
func modprobe(args []string) int {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return 1
	}
	folder := boot.ModulesMount + "/" + unix.ByteSliceToString(system.Release[:])
	for _, name := range args {
		if strings.HasPrefix(name, "-") {
			continue
		}
		if err := modules.Load(folder, name); err != nil {
			return 1
		}
		return 0
	}
	return 1
}
